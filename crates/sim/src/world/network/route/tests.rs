use bellwether_proto::Seed;

use super::{super::placement::distance, *};

const EDGES: [(u32, u32, f64); 5] =
    [(0, 1, 1.0), (1, 2, 1.0), (0, 2, 3.0), (2, 3, 1.0), (0, 4, 9.0)];

fn links(length: impl Fn(f64) -> f64) -> Links {
    let mut neighbours = vec![Vec::new(); 6];
    for (a, b, _) in EDGES {
        neighbours[a as usize].push(b);
        neighbours[b as usize].push(a);
    }
    Links::new(&neighbours, |a, b| {
        let is = |&&(x, y, _): &&(u32, u32, f64)| (x, y) == (a, b) || (x, y) == (b, a);
        length(EDGES.iter().find(is).unwrap().2)
    })
}

fn shortest(source: u32, dead: Option<u32>) -> Row {
    let relays = |node| Some(node) != dead;
    Search::default().shortest(&links(|length| length), source, relays, |_, _| true)
}

fn fewest(source: u32, dead: Option<u32>) -> Row {
    let relays = |node| Some(node) != dead;
    Search::default().fewest(&links(|length| length), source, relays, |_, _| true)
}

fn path(row: &Row, to: u32) -> Option<Vec<u32>> {
    let mut path = Vec::new();
    let found = row.path(&links(|length| length), to, &mut path);
    assert_eq!(row.hops(&links(|length| length), to), found.then(|| path.len() as u32 - 1));
    found.then_some(path)
}

#[test]
fn hops_and_lengths_choose_different_paths() {
    assert_eq!(path(&fewest(0, None), 3), Some(vec![0, 2, 3]));
    assert_eq!(path(&shortest(0, None), 3), Some(vec![0, 1, 2, 3]));
    for row in [fewest(0, None), shortest(0, None)] {
        assert_eq!(path(&row, 5), None);
        assert_eq!(path(&row, 0), Some(vec![0]));
    }
}

#[test]
fn the_dead_relay_nothing_but_can_be_addressed() {
    for row in [fewest(0, Some(2)), shortest(0, Some(2))] {
        assert!(row.parent(&links(|length| length), 2).is_some());
        assert_eq!(path(&row, 3), None);
    }
}

/// Both rules break ties alike, so that equal lengths and hops give equal paths.
#[test]
fn where_all_links_are_equal_both_agree() {
    for source in 0..6 {
        let equal = Search::default().shortest(&links(|_| 1.0), source, |_| true, |_, _| true);
        assert_eq!(equal, fewest(source, None));
    }
}

/// 144 nodes, at random or on a grid.
fn field(seed: u64, grid: bool) -> Links {
    let mut rng = Seed::new(seed).rng();
    let scatter = |i: u32| match grid {
        true => (f64::from(i % 12), f64::from(i / 12)),
        false => (12.0 * rng.unit(), 12.0 * rng.unit()),
    };
    let places: Vec<(f64, f64)> = (0..144).map(scatter).collect();
    let length = |a: u32, b: u32| distance(places[a as usize], places[b as usize]);
    let near = |a| (0..144).filter(move |&b| a != b && length(a, b) <= 2.0).collect();
    Links::new(&(0..144).map(near).collect::<Vec<_>>(), length)
}

/// The buckets are only a faster heap: on fields with near and far neighbours, dead relays and closed
/// links, and on a grid, where most paths have equals.
#[test]
fn buckets_find_what_a_heap_finds() {
    for (seed, grid) in (0..20).map(|seed| (seed, seed % 2 == 0)) {
        let links = field(seed, grid);
        let relays = |node: u32| node % 7 != 3;
        let works = |a: u32, b: u32| !(a + 2 * b).is_multiple_of(11);
        let (mut heap, mut buckets) = (Search::default(), Search::default());
        for source in 0..144 {
            heap.by_heap(&links, source, relays, works);
            buckets.by_buckets(&links, source, links.shortest * 0.999, relays, works);
            assert_eq!(buckets.parent, heap.parent);
            assert_eq!(buckets.length, heap.length);
        }
    }
}

/// Going around the dead is only a faster search, by hops and by length, whoever is dead.
#[test]
fn around_the_dead_lead_the_paths_a_search_finds() {
    let mut broken = 0;
    for (seed, grid) in (0..20).map(|seed| (seed, seed % 2 == 0)) {
        let links = field(seed, grid);
        let mut rng = Seed::new(seed).named("dead").rng();
        let mut search = Search::default();
        for source in 0..144 {
            let dead: Vec<u32> = (0..rng.below(4)).map(|_| rng.below(144) as u32).collect();
            let down = || dead.iter().copied();
            let relays = |node: u32| !dead.contains(&node);
            for by_hops in [true, false] {
                let length = |link| if by_hops { 1.0 } else { links.length[link] };
                let mut find = |relays: &dyn Fn(u32) -> bool| match by_hops {
                    true => search.fewest(&links, source, relays, |_, _| true),
                    false => search.shortest(&links, source, relays, |_, _| true),
                };
                let (whole, found) = (find(&|_| true), find(&relays));
                let around = search.around(down(), &links, source, &whole, length, relays);
                let relay = down().any(|node| whole.is_relay(&links, source, node));
                assert_eq!(around.as_ref().unwrap_or(&found), &found, "{seed} {source}");
                broken += u32::from(relay && around.is_some());
            }
        }
    }
    assert!(broken > 1_000, "only {broken} rows were mended");
}

/// A byte holds neither the numbers of three hundred neighbours nor a path of three hundred links.
#[test]
fn crowds_and_long_lines_have_rows_like_any_other() {
    let line = |node: u32| (0..300).filter(|&other: &u32| other.abs_diff(node) == 1).collect();
    let crowd = |node: u32| (0..300).filter(|&other| other != node).collect();
    for (hops, near) in [(299, &line as &dyn Fn(u32) -> Vec<u32>), (1, &crowd)] {
        let links = Links::new(&(0..300).map(near).collect::<Vec<_>>(), |_, _| 1.0);
        let row = Search::default().fewest(&links, 0, |_| true, |_, _| true);
        let mut path = Vec::new();
        assert!(row.path(&links, 299, &mut path));
        assert_eq!((path.len() as u32 - 1, row.hops(&links, 299)), (hops, Some(hops)));
        assert_eq!(row.is_relay(&links, 0, 298), hops > 1);
    }
}

/// Fewer links are only a faster search: on fields, and on grids, where most paths have equals.
#[test]
fn onward_links_lead_where_all_links_lead() {
    for (seed, grid) in (0..20).map(|seed| (seed, seed % 2 == 0)) {
        let links = field(seed, grid);
        links.asked.set(OFTEN);
        let (mut all, mut among_all) = (Search::default(), Search::default());
        for source in 0..144 {
            let row = all.shortest(&links, source, |_| true, |_, _| true);
            assert_eq!(among_all.shortest_among_all(&links, source), row, "{seed} {source}");
            assert_eq!(among_all.lengths(), all.lengths());
            assert_eq!(among_all.order(), all.order());
        }
        let onward = links.onward.get().and_then(Option::as_ref);
        let steps = onward.expect("no node has too many neighbours").steps();
        assert!(steps < 5 * links.count(), "{steps} steps on {} links", links.count());
    }
}
