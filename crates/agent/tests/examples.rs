//! The examples run.

#[allow(dead_code, reason = "it is a program of its own as well")]
#[path = "../examples/embed.rs"]
mod embed;

#[test]
fn the_agent_is_embedded_in_a_few_lines() {
    embed::main().expect("it leads, alone");
}
