//! What `config explain` says is what the simulator shows, for the waits of every profile.

use bellwether_agent::{
    Config,
    config::{Profile, Timing, explain},
};
use bellwether_sim::{run::run_many, scenario::Scenario};

/// Sixteen hosts of which the leader fails after a while, with a profile's waits.
fn scenario(timing: &Timing) -> Scenario {
    let Timing { period, ack, suspicion, beat, election, grace, refresh, .. } = timing;
    let text = format!(
        r#"
        name = "sixteen hosts"
        duration = "90s"
        [network]
        nodes = 16
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
        churn = 4
        crashes = 1
        timeout = "{election}"
        grace = "{grace}"
        refresh = "{refresh}"
        [[fault]]
        at = "60s"
        spread = "2s"
        kind = "crash"
        target = "leader"
        "#
    );
    Scenario::parse("explained", &text, &[]).expect("a scenario")
}

#[test]
fn the_simulator_agrees_with_what_settings_are_said_to_mean() {
    for profile in [Profile::Local, Profile::Lan, Profile::Wan, Profile::Mesh] {
        let mut config = Config::new("a", "b", "c");
        config.timing = profile.timing();
        let explained = explain(&config, 16);
        let said = &explained.elections[0];
        let report = run_many(&scenario(&config.timing), 1, 300, || {}).expect("a mesh");
        let metrics = &report.to_json()["metrics"];
        let recovery = |part: &str| metrics["recovery_time"][part].as_f64().expect("a time");
        // The median of 300 has a standard error of about 4% here, the 95th percentile one of about 6%.
        for (what, said, seen) in
            [("typical", said.typical_s, recovery("p50")), ("rare", said.rare_s, recovery("p95"))]
        {
            let off = said / seen - 1.0;
            assert!(off.abs() < 0.15, "{profile:?} {what}: said {said:.2}, seen {seen:.2}");
        }
        let (worst, seen) = (said.worst_s, recovery("p99"));
        assert!(worst > seen, "{profile:?} worst: said {worst:.2}, seen {seen:.2}");
        // Joining and electing are in what is seen, but not in quiet times.
        let datagrams = metrics["messages"]["mean"].as_f64().expect("a number") / 90.0;
        let said = explained.idle_kbit_per_s * 1000.0 / 8.0 / 110.0;
        let off = said / datagrams - 1.0;
        assert!(off.abs() < 0.25, "{profile:?}: said {said:.1} datagrams/s, seen {datagrams:.1}");
    }
}
