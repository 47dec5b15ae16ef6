//! Test vector V1 of `docs/rules/central.md`: the kite, and small graphs.

use alloc::vec::Vec;

use super::*;

/// Best by score, ties to the highest number.
fn best<T: Ord>(scores: &[T]) -> usize {
    (0..scores.len()).max_by(|&a, &b| scores[a].cmp(&scores[b]).then(a.cmp(&b))).unwrap()
}

fn least(scores: &[u64]) -> usize {
    let reversed: Vec<_> = scores.iter().map(|&score| core::cmp::Reverse(score)).collect();
    best(&reversed)
}

fn kite() -> Graph {
    let links = [
        (0, 1),
        (0, 2),
        (0, 3),
        (0, 5),
        (1, 3),
        (1, 4),
        (1, 6),
        (2, 3),
        (2, 5),
        (3, 4),
        (3, 5),
        (3, 6),
        (4, 6),
        (5, 6),
        (5, 7),
        (6, 7),
        (7, 8),
        (8, 9),
    ];
    Graph::with_links(10, links)
}

#[test]
fn everybody_sees_another_centre_in_the_kite() {
    let kite = kite();
    let degrees: Vec<usize> = (0..10).map(|node| kite.neighbours(node).len()).collect();
    assert_eq!(degrees, [4, 4, 3, 6, 3, 5, 5, 3, 2, 1]);
    assert_eq!(best(&degrees), 3);
    let sums = closeness::sums(&kite);
    assert_eq!(sums, [17, 17, 18, 15, 18, 14, 14, 15, 21, 29]);
    assert_eq!(least(&sums), 6);
    let shares = betweenness::shares(&kite).unwrap();
    let expected = [5. / 6., 5. / 6., 0., 11. / 3., 0., 25. / 3., 25. / 3., 14., 8., 0.];
    for (share, expected) in shares.iter().zip(expected) {
        assert!((share.to_f64() - expected).abs() < 1e-12);
    }
    assert!(shares[0] == shares[1] && shares[5] == shares[6]);
    assert_eq!(best(&shares), 7);
    for steps in [4, 8, 16, 200] {
        assert_eq!(best(&walks::count(&kite, steps)), 3);
    }
}

#[test]
fn the_centre_of_a_tree_depends_on_who_began_it() {
    let kite = kite();
    let centre = |root| {
        let sums: Vec<u64> = tree::sums(&kite, root).into_iter().map(Option::unwrap).collect();
        let centre = least(&sums);
        (centre, sums[centre])
    };
    assert_eq!(centre(0), (0, 17));
    assert_eq!(centre(3), (3, 15));
    assert_eq!(centre(5), (5, 14));
    assert_eq!([7, 8, 9].map(centre), [(7, 15); 3]);
}

#[test]
fn small_graphs() {
    let ring = Graph::with_links(4, [(0, 1), (1, 2), (2, 3), (3, 0)]);
    assert_eq!(closeness::sums(&ring), [4; 4]);
    assert!(betweenness::shares(&ring).unwrap().iter().all(|share| share.to_f64() == 0.5));
    let path = Graph::with_links(5, [(0, 1), (1, 2), (2, 3), (3, 4)]);
    let shares = betweenness::shares(&path).unwrap();
    assert_eq!(
        shares.iter().map(betweenness::Shares::to_f64).collect::<Vec<_>>(),
        [0., 3., 4., 3., 0.]
    );
    assert_eq!(closeness::sums(&Graph::new(1)), [0]);
    assert_eq!(Graph::with_links(5, [(0, 2), (3, 4)]).components(), [0, 1, 0, 3, 3]);
}
