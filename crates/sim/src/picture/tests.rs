//! Pictures are right if a browser can follow them: as many instants as values, in order, from 0 to 1.

use super::*;

fn story(mobility: &str, protocol: &str) -> Story {
    let text = format!(
        r#"
        name = "seen"
        duration = "60s"
        [network]
        nodes = 12
        placement = {{ kind = "field", side = 300.0, range = 100.0 }}
        {mobility}
        {protocol}
        [[fault]]
        at = "20s"
        kind = "crash"
        count = 2
        "#
    );
    let scenario = Scenario::parse("seen", &text, &[]).unwrap_or_else(|error| panic!("{error}"));
    Story::of(&scenario, 1).unwrap().unwrap()
}

const ELECTION: &str = r#"
    [election]
    kind = "announce"
    variant = "le-a"
    announce = "1s"
    listen = "3s"
"#;
const MOVING: &str = r#"mobility = { kind = "random-waypoint", pause = "1s" }"#;

/// The value of an attribute in an element.
fn attribute<'a>(element: &'a str, name: &str) -> Option<&'a str> {
    let start = element.find(&format!(" {name}=\""))? + name.len() + 3;
    element[start..].split('"').next()
}

#[test]
fn every_animation_is_one_that_browsers_play() {
    let svg = story(MOVING, ELECTION).animation();
    let mut seen = 0;
    for element in svg.split('<').filter(|element| element.starts_with("animate")) {
        let times: Vec<f64> = attribute(element, "keyTimes")
            .unwrap()
            .split(';')
            .map(|time| time.parse().unwrap())
            .collect();
        let values = attribute(element, "values").unwrap().split(';').count();
        assert_eq!(times.len(), values, "{element}");
        assert!(times.is_sorted() && times[0] == 0.0, "{element}");
        let discrete = attribute(element, "calcMode") == Some("discrete");
        assert!(discrete || times.last() == Some(&1.0), "{element}");
        assert!(times.iter().all(|time| (0.0..=1.0).contains(time)), "{element}");
        seen += 1;
    }
    assert!(seen > 12 * 3, "{seen}");
    assert_eq!(svg.matches("<g transform").count(), 12);
    assert!(svg.len() < 200_000, "{}", svg.len());
}

#[test]
fn a_frame_shows_links_leaders_and_the_dead() {
    let story = story(MOVING, ELECTION);
    let before = story.frame(10.0);
    let links = story.movement.neighbours(100.0, 10.0).iter().map(Vec::len).sum::<usize>() / 2;
    assert!(links > 3);
    assert_eq!(before.matches("<path ").count(), links);
    assert_eq!(before.matches("<g transform").count(), 12);
    assert!(before.contains("#000"), "somebody leads");
    assert!(!before.contains("#ddd"));
    assert_eq!(story.frame(30.0).matches("#ddd").count(), 2, "two are down");
    assert!(before.contains(">10.0 s<"));
}

#[test]
fn who_stands_still_or_elects_nobody_can_be_seen_too() {
    let ping = "[membership]\nkind = \"ping\"\nperiod = \"1s\"\ntimeout = \"500ms\"";
    let story = story("", ping);
    assert!(!story.animation().contains("animateTransform"));
    assert_eq!(story.frame(0.0).matches("<g transform").count(), 12);
    let mesh = "name = \"m\"\nduration = \"1s\"\n[network]\nnodes = 3\n";
    let scenario = Scenario::parse("mesh", &format!("{mesh}{ping}"), &[]).unwrap();
    assert!(Story::of(&scenario, 1).unwrap().is_none());
}

#[test]
fn nodes_have_colours_of_their_own() {
    let mut colours: Vec<String> = (0..100).map(colour).collect();
    assert!(colours.iter().all(|colour| colour.len() == 7 && colour.starts_with('#')));
    colours.sort();
    colours.dedup();
    assert!(colours.len() > 90, "{}", colours.len());
}
