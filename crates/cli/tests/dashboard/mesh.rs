//! The map of a central election, before meshes that do not exist.

use std::{thread, time::Duration};

use bellwether_agent::status::{CentralStatus, MapNode, MapStatus};
use bellwether_proto::{
    NodeId, Seed,
    topology::{Graph, closeness},
};

use crate::{
    DARK, PHONE, browser,
    browser::DESKTOP,
    crowd::{Crowd, HOSTILE},
    fits_the_screen, no_complaints,
};

/// Nodes scattered over a square, those near each other linked, and whoever is cut off linked to the one before it.
fn mesh(count: u32, range: f64) -> MapStatus {
    let mut rng = Seed::new(u64::from(count)).rng();
    let mut places = Vec::new();
    for _ in 0..count {
        let [x, y] = [0, 1].map(|_| rng.below(1_000_000) as f64 / 1e6);
        places.push((x, y));
    }
    let near = |a: u32, b: u32| {
        let ((ax, ay), (bx, by)) = (places[a as usize], places[b as usize]);
        (ax - bx).hypot(ay - by) <= range
    };
    let pairs = (0..count).flat_map(|b| (0..b).map(move |a| (a, b)));
    let mut graph = Graph::with_links(count as usize, pairs.filter(|&(a, b)| near(a, b)));
    for node in 1..count {
        if graph.distances(0)[node as usize].is_none() {
            graph.connect(node - 1, node);
        }
    }
    let sums = closeness::sums(&graph);
    let mut order: Vec<u32> = (0..count).collect();
    order.sort_by_key(|&node| (sums[node as usize], node));
    let hops = graph.distances(0);
    let node = |(rank, &at): (usize, &u32)| MapNode {
        id: NodeId::new(u64::from(at) + 1),
        name: if rank == 2 { HOSTILE.to_owned() } else { format!("radio-{at:03}") },
        rank: rank as u32 + 1,
        score: sums[at as usize],
        degree: graph.neighbours(at).len() as u32,
        hops: hops[at as usize].expect("all are linked"),
    };
    let nodes: Vec<MapNode> = order.iter().enumerate().map(node).collect();
    let place = |node: u32| order.iter().position(|&at| at == node).expect("all are there") as u32;
    let linked = (0..count).flat_map(|b| (0..b).map(move |a| (a, b)));
    let linked = linked.filter(|&(a, b)| graph.linked(a, b)).map(|(a, b)| (place(a), place(b)));
    MapStatus {
        election: "mesh".to_owned(),
        leader: Some(nodes[0].id),
        own: NodeId::new(1),
        central: CentralStatus {
            criterion: "closeness",
            members: count,
            unknown: 0,
            score: nodes[0].score,
            map: "5eed5eed5eed5eed".to_owned(),
            neighbours: vec![],
            problem: None,
        },
        links: linked.map(|(a, b)| (a.min(b), a.max(b))).collect(),
        nodes,
    }
}

/// How many pixels of the map's canvas are of the leader's colour, and how many are painted at all.
const PAINTED: &str = "(() => { const canvas = document.getElementById('mesh'); \
     const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height); \
     let [gold, any] = [0, 0]; \
     for (let at = 0; at < data.length; at += 4) { \
       if (data[at + 3] > 200) any += 1; \
       if (data[at] === 208 && data[at + 1] === 154 && data[at + 2] === 28) gold += 1; \
     } return [gold, any]; })()";

#[test]
fn the_map_of_a_mesh_shows_its_middle_and_stays_light_with_five_hundred_nodes() {
    let Some((_guard, mut browser)) = browser() else { return };
    // Until the end: a page whose server goes away complains.
    let mut crowds = Vec::new();
    for (count, range) in [(16, 0.3), (500, 0.07)] {
        let map = mesh(count, range);
        let (leader, links) = (map.nodes[0].name.clone(), map.links.len());
        let crowd = Crowd::on_map(map);
        browser.show(DESKTOP);
        browser.open(&format!("http://{}/", crowd.address));
        browser.wait_for("!document.getElementById('map').hidden && document.querySelectorAll('#ranks li').length > 0");
        browser.settle();
        let note = browser.text("document.getElementById('map-note').textContent");
        assert_eq!(note, format!("{count} nodes · {links} links · by closeness · map 5eed5eed"));
        let first = browser.text("document.querySelector('#ranks li.leading strong').textContent");
        assert_eq!(first, leader);
        let rows = browser.value("document.querySelectorAll('#ranks li').length");
        assert_eq!(rows, if count > 100 { 101 } else { count });
        let third =
            browser.text("document.querySelector('#ranks li:nth-child(3) strong').textContent");
        assert_eq!(third, HOSTILE, "text, never markup");
        let says = browser.text("document.querySelector('.agreement .text').textContent");
        assert_eq!(says, format!("{leader} is the most central of {count}"));
        let more = browser.text("document.querySelector('.agreement .more').textContent");
        let differs = format!("{HOSTILE} has other settings: criterion, beacon");
        assert!(more.starts_with(&differs), "{more}");
        let light = browser.text("document.querySelector('.light').dataset.light");
        assert_eq!(light, "some", "not all is well");
        let painted = browser.value(PAINTED);
        let [gold, any] = [0, 1].map(|at| painted[at].as_u64().unwrap());
        assert!(gold > 100 && any > 20 * u64::from(count), "{painted}");
        browser.shoot(&format!("map-{count}-light"));
        browser.show(DARK);
        browser.settle();
        browser.shoot(&format!("map-{count}-dark"));
        browser.show(PHONE);
        browser.settle();
        fits_the_screen(&mut browser);
        browser.shoot_whole(&format!("map-{count}-phone"), PHONE);
        let before = browser.busy();
        thread::sleep(Duration::from_secs(3));
        let busy = browser.busy() - before;
        println!("{count} nodes: busy for {busy:.3} s of 3 s while nothing changes");
        assert!(busy < 0.3, "{busy} s of 3 s while nothing changes");
        no_complaints(&mut browser, "with a map");
        crowds.push(crowd);
    }
}
