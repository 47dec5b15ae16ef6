//! Movements as the simulator ns-2 reads them, and as SUMO, BonnMotion and others write them: a Tcl script.
//!
//! ```tcl
//! $node_(0) set X_ 150.0
//! $node_(0) set Y_ 93.5
//! $ns_ at 2.0 "$node_(0) setdest 250.0 93.5 5.0"
//! ```
//!
//! `setdest x y speed` sends a node straight to a place; it rests there, unless another `setdest` sends it elsewhere
//! before it arrives. Nodes are there from the beginning, at the place that is set first. Heights are let go, and so are
//! lines about anything but nodes (`$god_`, `set opt(x)`).

use std::collections::BTreeMap;

use super::{Movement, MovementError, Waypoint};

/// Whether this is such a script, going by its first line that is no comment.
pub(super) fn is_script(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with('#'));
    first.is_some_and(|line| line.starts_with('$') || line.starts_with("set "))
}

/// Reads a movement from text; `file` is what errors call it.
pub(super) fn parse(file: &str, text: &str) -> Result<Movement, MovementError> {
    let mut nodes: BTreeMap<u32, Node> = BTreeMap::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = Line { file, number, text: line };
        let words: Vec<&str> = line
            .text
            .split('#')
            .next()
            .unwrap_or_default()
            .split([' ', '\t', '"', ';', '\r'])
            .filter(|word| !word.is_empty())
            .collect();
        match words.as_slice() {
            [node, "set", axis, value] if is_node(node) => {
                let node = nodes.entry(line.node(node)?).or_default();
                let value = line.number(value)?;
                match *axis {
                    "X_" => node.x = Some(value),
                    "Y_" => node.y = Some(value),
                    "Z_" => {}
                    _ => return Err(line.wrong(axis, "is no axis: X_, Y_ or Z_")),
                }
            }
            ["$ns_", "at", at, node, "setdest", x, y, speed] if is_node(node) => {
                let id = line.node(node)?;
                let [to_x, to_y] = [line.number(x)?, line.number(y)?];
                let [since, pace] = [line.number(at)?, line.number(speed)?];
                if since < 0.0 {
                    return Err(line.wrong(at, "is a time before the beginning"));
                }
                if pace < 0.0 {
                    return Err(line.wrong(speed, "is a speed below zero"));
                }
                let order = Order { at: since, x: to_x, y: to_y, speed: pace };
                nodes.entry(id).or_default().orders.push(order);
            }
            [first, ..] if is_node(first) => {
                return Err(
                    line.wrong(first, "is followed by neither \"set X_ 1.5\" nor such a Y_ or Z_")
                );
            }
            ["$ns_", "at", _, node, ..] if is_node(node) => {
                return Err(line.wrong(node, "is not told to \"setdest x y speed\""));
            }
            _ => {}
        }
    }
    let mut trajectories = Vec::with_capacity(nodes.len());
    for (expected, (id, node)) in (0..).zip(nodes) {
        let problem = match node.trajectory() {
            _ if id != expected => format!("moves node {id} and no node {expected}"),
            None => format!("says nowhere where node {id} begins: $node_({id}) set X_ and Y_"),
            Some(trajectory) => {
                trajectories.push(trajectory);
                continue;
            }
        };
        return Err(MovementError::File { file: file.into(), problem });
    }
    if trajectories.is_empty() {
        let problem = "moves nobody: there is no line of \"$node_(0) set X_ 1.5\"".into();
        return Err(MovementError::File { file: file.into(), problem });
    }
    Ok(Movement::new(trajectories))
}

fn is_node(word: &str) -> bool {
    word.starts_with("$node_(")
}

#[derive(Default)]
struct Node {
    x: Option<f64>,
    y: Option<f64>,
    orders: Vec<Order>,
}

#[derive(Clone, Copy)]
struct Order {
    at: f64,
    x: f64,
    y: f64,
    speed: f64,
}

impl Node {
    /// Whoever is sent on before it arrives turns where it is.
    fn trajectory(mut self) -> Option<Vec<Waypoint>> {
        let mut points = vec![Waypoint { at: 0.0, x: self.x?, y: self.y? }];
        // As the scheduler of ns-2 takes them, whatever their order in the file.
        self.orders.sort_by(|a, b| a.at.total_cmp(&b.at));
        for (index, order) in self.orders.iter().enumerate() {
            let here = *points.last().expect("it begins somewhere");
            if here.at < order.at {
                points.push(Waypoint { at: order.at, ..here });
            }
            let (x, y) = (order.x - here.x, order.y - here.y);
            let far = libm::hypot(x, y);
            if far == 0.0 || order.speed == 0.0 {
                continue;
            }
            let arrives = order.at + far / order.speed;
            let next = self.orders.get(index + 1).map_or(f64::INFINITY, |next| next.at);
            if arrives <= next {
                points.push(Waypoint { at: arrives, x: order.x, y: order.y });
            } else if next > order.at {
                let part = (next - order.at) / (arrives - order.at);
                points.push(Waypoint { at: next, x: here.x + part * x, y: here.y + part * y });
            }
        }
        Some(points)
    }
}

struct Line<'a> {
    file: &'a str,
    number: usize,
    text: &'a str,
}

impl Line<'_> {
    fn node(&self, word: &str) -> Result<u32, MovementError> {
        let id = word.strip_prefix("$node_(").and_then(|rest| rest.strip_suffix(')'));
        match id.and_then(|id| id.parse().ok()).filter(|id| *id < MOST) {
            Some(id) => Ok(id),
            None => Err(self.wrong(word, "is no node: $node_(0), $node_(1) and so on")),
        }
    }

    fn number(&self, word: &str) -> Result<f64, MovementError> {
        match word.parse::<f64>() {
            Ok(number) if number.is_finite() && number.abs() <= FARTHEST => Ok(number),
            Ok(_) => Err(self.wrong(word, "is beyond any field: at most 1e9")),
            Err(_) => Err(self.wrong(word, "is not a number")),
        }
    }

    fn wrong(&self, word: &str, problem: &str) -> MovementError {
        let start = word.as_ptr() as usize - self.text.as_ptr() as usize;
        MovementError::Value {
            file: self.file.into(),
            line: self.number,
            column: self.text[..start].chars().count() + 1,
            value: word.chars().take(LONGEST_SHOWN).collect(),
            problem: problem.into(),
        }
    }
}

/// Most nodes. Arbitrary: far more than any field of ours holds.
const MOST: u32 = 1 << 20;
/// Farthest coordinate and latest time, as in BonnMotion's files.
const FARTHEST: f64 = 1e9;
/// Characters of a wrong value that are shown.
const LONGEST_SHOWN: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    fn points(text: &str) -> Vec<(f64, f64, f64)> {
        let movement = parse("walk.tcl", text).unwrap();
        movement.waypoints(0).iter().map(|point| (point.at, point.x, point.y)).collect()
    }

    const BEGINS: &str = "$node_(0) set X_ 10.0\n$node_(0) set Y_ 20\n$node_(0) set Z_ 0.0\n";

    #[test]
    fn a_node_goes_where_it_is_sent_and_rests_there() {
        let text =
            format!("# made by hand\n{BEGINS}$ns_ at 2.0 \"$node_(0) setdest 20.0 20.0 5.0\"\n");
        assert!(is_script(&text));
        assert_eq!(points(&text), [(0.0, 10.0, 20.0), (2.0, 10.0, 20.0), (4.0, 20.0, 20.0)]);
    }

    #[test]
    fn a_node_that_is_sent_on_before_it_arrives_turns_where_it_is() {
        let text = format!(
            "{BEGINS}$ns_ at 4 \"$node_(0) setdest 20 10 5\"\n$ns_ at 0 \"$node_(0) setdest 20 20 2\"\n"
        );
        assert_eq!(
            points(&text),
            [(0.0, 10.0, 20.0), (4.0, 18.0, 20.0), (4.0 + 104f64.sqrt() / 5.0, 20.0, 10.0)]
        );
        let stops = format!(
            "{BEGINS}$ns_ at 0 \"$node_(0) setdest 20 20 2\"\n$ns_ at 1 \"$node_(0) setdest 20 20 0\"\n"
        );
        assert_eq!(points(&stops), [(0.0, 10.0, 20.0), (1.0, 12.0, 20.0)]);
    }

    #[test]
    fn what_is_wrong_has_its_place() {
        let wrong = |text: &str| parse("walk.tcl", text).unwrap_err().to_string();
        for (line, problem) in [
            ("$node_(0) set X_ far", "walk.tcl:4:18: \"far\" is not a number"),
            ("$node_(x) set X_ 1", "walk.tcl:4:1: \"$node_(x)\" is no node"),
            ("$node_(0) set W_ 1", "walk.tcl:4:15: \"W_\" is no axis"),
            ("$ns_ at -1 \"$node_(0) setdest 1 1 1\"", "walk.tcl:4:9: \"-1\" is a time before"),
            ("$ns_ at 1 \"$node_(0) setdest 1 1 -1\"", "is a speed below zero"),
            ("$ns_ at 1 \"$node_(0) dance\"", "is not told to"),
            ("$node_(2) set X_ 1", "moves node 2 and no node 1"),
            ("$node_(1) set X_ 1", "says nowhere where node 1 begins"),
            ("$node_(0) set X_ 1e10", "beyond any field"),
        ] {
            let error = wrong(&format!("{BEGINS}{line}\n"));
            assert!(error.contains(problem), "{error}");
        }
        assert!(wrong("set opt(x) 5\n").contains("moves nobody"));
        assert!(!is_script("0 1 2 3 4 5\n"));
    }
}
