//! Settings that all who take part in an election must have alike.
//!
//! Where one goes by closeness and another by degree they never agree, however quiet the network is. So every agent tells a
//! byte for each such setting with its introduction, and others can name the one that differs. One difference in 256
//! goes unseen.

use bellwether_proto::{ElectionId, Mode};

use crate::config::Config;

/// The bytes that others are told: one for the mode, then one for each setting.
pub(crate) fn of(config: &Config, election: &str, mode: Mode) -> Vec<u8> {
    let settings = config.settings();
    let value = |key: &&str| {
        let field = match key.starts_with("timing.") {
            true => (*key).to_owned(),
            false => format!("election.{election}.{key}"),
        };
        let set = settings.iter().find(|setting| setting.field == field);
        byte(set.map_or("", |setting| &setting.value))
    };
    [byte(&mode.to_string())].into_iter().chain(alike(mode).iter().map(value)).collect()
}

/// What somebody who tells these has otherwise than we. Who tells nothing does not differ.
pub(crate) fn differing(mode: Mode, ours: &[u8], told: &[u8]) -> Vec<&'static str> {
    let keys = [MODE].into_iter().chain(alike(mode).iter().copied());
    let pairs = keys.zip(ours.iter().zip(told));
    let found = pairs.filter(|(_, (ours, told))| ours != told).map(|(key, _)| key);
    let found: Vec<&str> = found.collect();
    // Of another mode all the rest means something else.
    if found.first() == Some(&MODE) { vec![MODE] } else { found }
}

/// New ones come last: versions that do not know them compare the others.
fn alike(mode: Mode) -> &'static [&'static str] {
    match mode {
        Mode::Eventual => &["criterion", "variant", "margin"],
        Mode::Announced => &["tenure", "timing.announce", "timing.listen"],
        Mode::Central => &["criterion", "horizon", "hysteresis", "dwell", "beacon"],
        Mode::Leased => &[
            "members",
            "flavour",
            "drift",
            "timing.lease",
            "timing.arbitration",
            "timing.step_down",
            "criterion",
            "margin",
        ],
        Mode::Learned => &["voters", "lease"],
    }
}

fn byte(value: &str) -> u8 {
    ElectionId::named(value).number() as u8
}

const MODE: &str = "mode";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Inputs;

    const MODES: [Mode; 5] =
        [Mode::Eventual, Mode::Central, Mode::Leased, Mode::Learned, Mode::Announced];

    fn terms(mode: Mode, above: &str, election: &str) -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let (file, data) = (folder.path().join("agent.toml"), folder.path().display());
        let must = match mode {
            Mode::Leased if !election.contains("members") => "members = [\"a\", \"b\"]",
            Mode::Learned if !election.contains("voters") => "voters = [\"a\", \"b\", \"c\"]",
            _ => "",
        };
        let text = format!(
            "name = \"a\"\ncluster = \"c\"\nkey_file = \"key\"\ndata_dir = \"{data}\"\n{above}\n[election.x]\nmode = \"{mode}\"\n{must}\n{election}"
        );
        std::fs::write(&file, &text).unwrap();
        let loaded = Config::load(&Inputs { file: Some(file), ..Inputs::default() });
        let config = loaded.unwrap_or_else(|error| panic!("{error}\n{text}"));
        of(&config, "x", mode)
    }

    #[test]
    fn every_setting_that_must_be_alike_is_named_when_it_differs() {
        for (mode, above, election, named) in [
            (Mode::Eventual, "", "criterion = \"learned\"\nmargin = 0", "criterion"),
            (Mode::Eventual, "", "variant = \"base\"", "variant"),
            (Mode::Eventual, "", "margin = 7", "margin"),
            (Mode::Announced, "", "tenure = \"preemptive\"", "tenure"),
            (Mode::Announced, "timing.announce = \"190ms\"", "", "timing.announce"),
            (Mode::Announced, "timing.listen = \"4s\"", "", "timing.listen"),
            (Mode::Central, "", "criterion = \"degree\"", "criterion"),
            (Mode::Central, "", "horizon = 3", "horizon"),
            (Mode::Central, "", "beacon = \"170ms\"\nsilence = \"1s\"", "beacon"),
            (Mode::Leased, "", "members = [\"a\", \"c\"]", "members"),
            (Mode::Leased, "", "flavour = \"fast\"", "flavour"),
            (Mode::Leased, "", "drift = 200", "drift"),
            (Mode::Leased, "timing.step_down = \"700ms\"", "", "timing.step_down"),
            (Mode::Learned, "", "voters = [\"a\", \"b\", \"d\"]", "voters"),
            (Mode::Learned, "", "lease = \"5s\"", "lease"),
        ] {
            let (usual, other) = (terms(mode, "", ""), terms(mode, above, election));
            assert_eq!(differing(mode, &usual, &other), [named], "{mode}: {above}{election}");
            assert_eq!(differing(mode, &usual, &usual), [""; 0]);
        }
        let both = terms(Mode::Central, "", "hysteresis = 10\ndwell = \"7s\"");
        let usual = terms(Mode::Central, "", "");
        assert_eq!(differing(Mode::Central, &usual, &both), ["hysteresis", "dwell"]);
    }

    #[test]
    fn what_is_each_nodes_own_affair_does_not_differ() {
        for (mode, above, election) in [
            (Mode::Eventual, "", "priority = 7\nc = 2\non_isolation = \"step-down\""),
            (Mode::Eventual, "timing.period = \"400ms\"", ""),
            (Mode::Announced, "", "priority = 7"),
            (Mode::Central, "", "spread = \"tick\""),
            (Mode::Leased, "", "role = \"witness\""),
            (Mode::Learned, "", "memory = 30"),
        ] {
            let (usual, other) = (terms(mode, "", ""), terms(mode, above, election));
            assert_eq!(differing(mode, &usual, &other), [""; 0], "{mode}: {above}{election}");
        }
    }

    #[test]
    fn of_another_mode_only_that_is_told() {
        for ours in MODES {
            for theirs in MODES {
                let found = differing(ours, &terms(ours, "", ""), &terms(theirs, "", ""));
                let expected = if ours == theirs { vec![] } else { vec!["mode"] };
                assert_eq!(found, expected, "{ours} and {theirs}");
            }
        }
    }

    /// What is chosen from a list never shares a byte with another choice.
    #[test]
    fn choices_do_not_collide() {
        for choices in [
            &["eventual", "central", "leased", "learned", "announced"][..],
            &["\"closeness\"", "\"degree\"", "\"betweenness\"", "\"tree\"", "\"eigenvector\""],
            &["\"base\"", "\"optimistic\"", "\"preferred\"", "\"hybrid\""],
            &["\"priority\"", "\"learned\"", "\"hash\""],
            &["\"quorum\"", "\"conservative\"", "\"fast\""],
            &["\"sticky\"", "\"preemptive\""],
        ] {
            let mut bytes: Vec<u8> = choices.iter().map(|choice| byte(choice)).collect();
            bytes.sort_unstable();
            bytes.dedup();
            assert_eq!(bytes.len(), choices.len(), "{choices:?}");
        }
    }

    /// A version that knows more settings, or tells nothing at all.
    #[test]
    fn what_is_not_told_does_not_differ() {
        let ours = terms(Mode::Central, "", "");
        assert_eq!(differing(Mode::Central, &ours, &[]), [""; 0]);
        let longer = [&ours[..], &[9, 9]].concat();
        assert_eq!(differing(Mode::Central, &ours, &longer), [""; 0]);
        assert_eq!(differing(Mode::Central, &longer, &ours), [""; 0]);
    }
}
