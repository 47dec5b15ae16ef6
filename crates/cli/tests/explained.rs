//! What `config explain` says of settings is what `sim --settings` shows of the same file.

use std::{fs, path::Path};

use bellwether_agent::{
    Config,
    config::{Explained, Inputs, explain},
};
use bellwether_proto::node::{Timing, TimingProfile};
use bellwether_sim::{
    observe::Metric,
    run::{Report, run_many},
    scenario::Scenario,
};

const WORLD: &str = "../../scenarios/worlds/sixteen-hosts.toml";
const HEAD: &str = "name = 'a'\ncluster = 'c'\nkey_file = '/k'\ndata_dir = '/d'\n";

/// What is said of these settings for sixteen members, and what is seen of them in so many runs.
fn said_and_seen(settings: &str, runs: u64) -> (Explained, Report) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("bellwether.toml");
    fs::write(&file, format!("{HEAD}{settings}")).expect("room");
    let scenario = Scenario::load_with(Path::new(WORLD), &file, &[]);
    let scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
    let inputs = Inputs { file: Some(file), ..Inputs::default() };
    let config = Config::load(&inputs).unwrap_or_else(|error| panic!("{error}"));
    (explain(&config, 16), run_many(&scenario, 1, runs, || {}).expect("a mesh"))
}

/// Typical and rare times are met within 15%: the median of 150 has a standard error of about 5% here, the 95th percentile
/// one of about 8%.
fn check(settings: &str) {
    let (explained, report) = said_and_seen(settings, 150);
    let said = &explained.elections[0];
    let seen = report.summary(Metric::RecoveryTime).expect("they agree again");
    for (what, said, seen) in
        [("typical", said.typical_s, seen.p50), ("rare", said.rare_s, seen.p95)]
    {
        let off = said / seen - 1.0;
        assert!(off.abs() < 0.15, "{settings} {what}: said {said:.2}, seen {seen:.2}");
    }
    let (worst, seen) = (said.worst_s, seen.p99);
    assert!(worst > seen, "{settings} worst: said {worst:.2}, seen {seen:.2}");
}

#[test]
fn how_long_nobody_leads_is_as_said_with_the_waits_of_every_profile() {
    TimingProfile::ALL.iter().for_each(|(name, _)| check(&format!("timing = '{name}'")));
}

#[test]
fn and_in_every_mode() {
    let five = "['a', 'b', 'c', 'd', 'e']";
    check("election.e = { mode = 'announced' }");
    check(&format!("election.e = {{ mode = 'leased', members = {five} }}"));
    check(&format!("election.e = {{ mode = 'learned', voters = {five} }}"));
    check("election.e = { mode = 'central' }");
}

/// Of membership and election alone, without the words that members carry for each other.
#[test]
fn the_datagrams_of_quiet_times_are_as_said() {
    for (name, profile) in TimingProfile::ALL {
        let Timing { period, ack, suspicion, beat, election, grace, refresh, .. } =
            profile.timing();
        let text = format!(
            r#"
            name = "sixteen hosts"
            duration = "90s"
            network = {{ nodes = 16 }}
            [membership]
            kind = "medley"
            exponent = 0.0
            feedback = "none"
            lifeguard = "health"
            period = "{period}"
            ack = "{ack}"
            suspicion = "{suspicion}"
            beat = "{beat}"
            [election]
            kind = "churn-tolerant"
            variant = "hybrid"
            c = 4
            f = 1
            timeout = "{election}"
            grace = "{grace}"
            refresh = "{refresh}"
            "#
        );
        let scenario = Scenario::parse("explained", &text, &[]).expect("a scenario");
        let report = run_many(&scenario, 1, 20, || {}).expect("a mesh");
        let mut config = Config::new("a", "b", "c");
        config.timing = profile.timing();
        // Joining and electing are in what is seen, but not in quiet times.
        let seen = report.summary(Metric::Messages).expect("messages").mean / 90.0;
        let said = explain(&config, 16).idle_kbit_per_s * 1000.0 / 8.0 / 110.0;
        let off = said / seen - 1.0;
        assert!(off.abs() < 0.25, "{name}: said {said:.1} datagrams/s, seen {seen:.1}");
    }
}
