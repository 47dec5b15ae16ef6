//! The examples run.

#[allow(dead_code, reason = "it is a program of its own as well")]
#[path = "../examples/by_hand.rs"]
mod by_hand;

#[test]
fn three_nodes_are_driven_by_hand() {
    by_hand::main().expect("they agree on a leader");
}
