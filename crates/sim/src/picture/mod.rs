//! Fields as pictures: one instant as an SVG, or a whole run as one that moves.
//!
//! A node's disc has the colour of the leader it names, and the halo around it that of the part of the network it
//! is in, by its smallest member; so that a part that agrees is one colour inside and one outside. Whoever names
//! itself has a black rim. Lines are links; an empty disc names nobody, a grey one is down.

use std::{cell::RefCell, collections::BTreeMap, fmt::Write as _, rc::Rc, sync::Arc};

use bellwether_proto::{Duration, Time};

use crate::{
    observe::{Log, Naming, Namings},
    run::{run_logged, world::movement},
    scenario::{Placement, Scenario},
    world::{
        Disconnected,
        mobility::{LinkChange, Movement, Waypoint},
    },
};

/// A run as far as it can be seen.
pub struct Story {
    movement: Arc<Movement>,
    range: f64,
    end: f64,
    /// The corner of the field with the smallest coordinates, and its size.
    corner: (f64, f64),
    size: (f64, f64),
    changes: Vec<LinkChange>,
    namings: Vec<Naming>,
}

/// How things are at one instant.
#[derive(Clone)]
struct Scene {
    linked: Vec<Vec<u32>>,
    up: Vec<bool>,
    leader: Vec<Option<u32>>,
}

impl Story {
    /// Runs a scenario and keeps what there is to see; `None` if its nodes have no positions.
    ///
    /// # Errors
    ///
    /// [`Disconnected`] if a random placement, or a fault that keeps it connected, cannot be drawn.
    pub fn of(scenario: &Scenario, seed: u64) -> Result<Option<Self>, Disconnected> {
        let (Some(movement), Some(range)) =
            (movement(scenario, seed)?, scenario.network.placement.range())
        else {
            return Ok(None);
        };
        let namings: Namings = Rc::new(RefCell::new(Vec::new()));
        run_logged(scenario, seed, Log::naming(&namings))?;
        let end = scenario.duration.as_secs_f64();
        let mut low = (f64::INFINITY, f64::INFINITY);
        let mut high = (f64::NEG_INFINITY, f64::NEG_INFINITY);
        let mut take = |x: f64, y: f64| {
            low = (low.0.min(x), low.1.min(y));
            high = (high.0.max(x), high.1.max(y));
        };
        if let Placement::Field { side, .. } = scenario.network.placement {
            take(0.0, 0.0);
            take(side, side);
        }
        let points = (0..movement.nodes()).flat_map(|node| movement.waypoints(node));
        points.filter(|point| point.at <= end).for_each(|point| take(point.x, point.y));
        let changes = movement.link_changes(range, end).collect();
        // A point is no picture.
        let size = (f64::max(high.0 - low.0, range), f64::max(high.1 - low.1, range));
        let namings = namings.take();
        Ok(Some(Self { movement, range, end, corner: low, size, changes, namings }))
    }

    /// The instant `at`, in seconds.
    pub fn frame(&self, at: f64) -> String {
        let mut scene = self.opening();
        let now = Time::from_micros((at * 1e6) as u64);
        scene.linked = self.movement.neighbours(self.range, at);
        self.namings.iter().take_while(|naming| naming.at <= now).for_each(|one| scene.name(one));
        let mut svg = self.head();
        let place = |node: u32| self.place(self.movement.position(node, at));
        for (a, b) in scene.links() {
            let ((x1, y1), (x2, y2)) = (place(a), place(b));
            let _ = writeln!(svg, r#"<path d="M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}"/>"#);
        }
        svg.push_str("</g>\n");
        let parts = scene.parts();
        for node in 0..self.movement.nodes() {
            let (x, y) = place(node);
            let look = scene.look(node, &parts);
            let _ = writeln!(
                svg,
                r#"<g transform="translate({x:.1} {y:.1})"><circle r="{HALO}" fill="{}" fill-opacity=".3"/><circle r="{DISC}" fill="{}" stroke="{}" stroke-width="2"/>{}</g>"#,
                look.part,
                look.disc,
                look.rim,
                self.label(node),
            );
        }
        let _ = writeln!(svg, r#"<text x="6" y="14" text-anchor="start">{at:.1} s</text>"#);
        svg.push_str("</svg>\n");
        svg
    }

    /// The whole run as one picture that moves by itself and begins again, in half a minute or less.
    pub fn animation(&self) -> String {
        let mut svg = self.head();
        let mut scene = self.opening();
        scene.linked = self.movement.neighbours(self.range, 0.0);
        let nodes = self.movement.nodes();
        let mut looks: Vec<Vec<(f64, Look)>> = vec![Vec::new(); nodes as usize];
        let mut open: BTreeMap<(u32, u32), f64> = scene.links().map(|link| (link, 0.0)).collect();
        let mut links = Vec::new();
        let (mut changes, mut namings) =
            (self.changes.iter().peekable(), self.namings.iter().peekable());
        let mut now = Time::ZERO;
        loop {
            while let Some(change) = changes.next_if(|change| change.at <= now) {
                scene.link(change);
                let (link, at) = ((change.a, change.b), change.at.as_secs_f64());
                match change.up {
                    true => drop(open.insert(link, at)),
                    false => links.extend(open.remove(&link).map(|from| (link, from, at))),
                }
            }
            while let Some(naming) = namings.next_if(|naming| naming.at <= now) {
                scene.name(naming);
            }
            let parts = scene.parts();
            for node in 0..nodes {
                let (look, seen) = (scene.look(node, &parts), &mut looks[node as usize]);
                if seen.last().is_none_or(|(_, last)| *last != look) {
                    seen.push((now.as_secs_f64(), look));
                }
            }
            let next = [changes.peek().map(|change| change.at), namings.peek().map(|one| one.at)];
            let Some(next) = next.into_iter().flatten().min() else { break };
            // Nobody sees less than a thousandth of the whole.
            now = next.max(now + Duration::from_micros((self.end * 1e3) as u64));
            if now.as_secs_f64() >= self.end {
                break;
            }
        }
        links.extend(open.into_iter().map(|(link, from)| (link, from, self.end)));
        for ((a, b), from, to) in links {
            self.draw_link(&mut svg, a, b, (from, to.min(self.end)));
        }
        svg.push_str("</g>\n");
        for (node, looks) in (0..).zip(&looks) {
            self.draw_node(&mut svg, node, looks);
        }
        svg.push_str("</svg>\n");
        svg
    }

    fn draw_link(&self, svg: &mut String, a: u32, b: u32, (from, to): (f64, f64)) {
        if to - from < self.end / 1e3 {
            return;
        }
        svg.push_str("<line opacity=\"0\">");
        let (shown, hidden) = (self.part(from), self.part(to));
        let (mut values, mut times) = ("0;1".to_owned(), format!("0;{shown}"));
        if from <= 0.0 {
            (values, times) = ("1".into(), "0".into());
        }
        if to < self.end {
            values.push_str(";0");
            let _ = write!(times, ";{hidden}");
        }
        self.animate(svg, "opacity", &values, &times, true);
        for (node, x, y) in [(a, "x1", "y1"), (b, "x2", "y2")] {
            let points = self.points(node, from, to);
            let times = self.times(&points);
            let coordinate = |of: fn((f64, f64)) -> f64| {
                let values = points.iter().map(|&(_, place)| format!("{:.1}", of(place)));
                values.collect::<Vec<_>>().join(";")
            };
            self.animate(svg, x, &coordinate(|place| place.0), &times, false);
            self.animate(svg, y, &coordinate(|place| place.1), &times, false);
        }
        svg.push_str("</line>\n");
    }

    fn draw_node(&self, svg: &mut String, node: u32, looks: &[(f64, Look)]) {
        let points = self.points(node, 0.0, self.end);
        let (x, y) = points[0].1;
        let _ = write!(svg, r#"<g transform="translate({x:.1} {y:.1})">"#);
        if points.iter().any(|point| point.1 != points[0].1) {
            let places = points.iter().map(|(_, (x, y))| format!("{x:.1} {y:.1}"));
            let _ = write!(
                svg,
                r#"<animateTransform attributeName="transform" type="translate" dur="{}s" repeatCount="indefinite" keyTimes="{}" values="{}"/>"#,
                self.shown(),
                self.times(&points),
                places.collect::<Vec<_>>().join(";"),
            );
        }
        let _ = write!(svg, r#"<circle r="{HALO}" fill="{}" fill-opacity=".3">"#, looks[0].1.part);
        self.colours(svg, "fill", looks, |look| &look.part);
        let _ = write!(
            svg,
            r#"</circle><circle r="{DISC}" fill="{}" stroke="{}" stroke-width="2">"#,
            looks[0].1.disc, looks[0].1.rim
        );
        self.colours(svg, "fill", looks, |look| &look.disc);
        self.colours(svg, "stroke", looks, |look| &look.rim);
        let _ = writeln!(svg, "</circle>{}</g>", self.label(node));
    }

    /// How a colour changes, if it does.
    fn colours(
        &self,
        svg: &mut String,
        name: &str,
        looks: &[(f64, Look)],
        of: fn(&Look) -> &String,
    ) {
        let mut seen: Vec<(f64, &String)> = Vec::new();
        for (at, look) in looks {
            if seen.last().is_none_or(|(_, last)| *last != of(look)) {
                seen.push((*at, of(look)));
            }
        }
        if seen.len() > 1 {
            let values: Vec<&str> = seen.iter().map(|(_, colour)| colour.as_str()).collect();
            let times: Vec<String> = seen.iter().map(|&(at, _)| self.part(at)).collect();
            self.animate(svg, name, &values.join(";"), &times.join(";"), true);
        }
    }

    fn animate(&self, svg: &mut String, name: &str, values: &str, times: &str, discrete: bool) {
        let mode = if discrete { r#" calcMode="discrete""# } else { "" };
        let _ = write!(
            svg,
            r#"<animate attributeName="{name}" dur="{}s" repeatCount="indefinite"{mode} keyTimes="{times}" values="{values}"/>"#,
            self.shown(),
        );
    }

    /// Where a node is in the picture at both instants and wherever it turns in between; before and after that it is
    /// not looked at and may stand still.
    fn points(&self, node: u32, from: f64, to: f64) -> Vec<(f64, (f64, f64))> {
        let place = |at: f64| (at, self.place(self.movement.position(node, at)));
        let mut points = Vec::new();
        if from > 0.0 {
            points.push((0.0, place(from).1));
        }
        points.push(place(from));
        let turns = self.movement.waypoints(node).iter();
        let turns = turns.filter(|turn| turn.at > from && turn.at < to);
        points.extend(turns.map(|&Waypoint { at, x, y }| (at, self.place((x, y)))));
        points.push(place(to));
        if to < self.end {
            points.push((self.end, place(to).1));
        }
        points
    }

    /// Instants as shares of the whole.
    fn times(&self, points: &[(f64, (f64, f64))]) -> String {
        points.iter().map(|&(at, _)| self.part(at)).collect::<Vec<_>>().join(";")
    }

    fn part(&self, at: f64) -> String {
        let text = format!("{:.5}", (at / self.end).clamp(0.0, 1.0));
        let text = text.trim_end_matches('0').trim_end_matches('.');
        text.strip_prefix("0.").map_or_else(|| text.to_owned(), |digits| format!(".{digits}"))
    }

    /// Seconds that the animation lasts.
    fn shown(&self) -> f64 {
        libm::round(self.end.min(LONGEST) * 10.0) / 10.0
    }

    fn opening(&self) -> Scene {
        let nodes = self.movement.nodes() as usize;
        // Who runs no election is never heard of, and taken to be up.
        let up = vec![self.namings.is_empty(); nodes];
        Scene { linked: vec![Vec::new(); nodes], up, leader: vec![None; nodes] }
    }

    fn scale(&self) -> f64 {
        WIDTH / f64::max(self.size.0, self.size.1)
    }

    fn place(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let scale = self.scale();
        // Upwards is up.
        (MARGIN + (x - self.corner.0) * scale, MARGIN + (self.corner.1 + self.size.1 - y) * scale)
    }

    fn head(&self) -> String {
        let (width, height) = (self.size.0 * self.scale(), self.size.1 * self.scale());
        let border = format!(
            r##"<rect x="{MARGIN}" y="{MARGIN}" width="{width:.1}" height="{height:.1}" fill="none" stroke="#e4e4e4"/>"##
        );
        let (width, height) = (width + 2.0 * MARGIN, height + 2.0 * MARGIN);
        format!(
            r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0} {height:.0}" width="{width:.0}" height="{height:.0}" font-family="sans-serif" font-size="9" text-anchor="middle">
<rect width="100%" height="100%" fill="#fff"/>
{border}
<g stroke="#b4b4b4" stroke-width="1" fill="none">
"##
        )
    }

    fn label(&self, node: u32) -> String {
        match self.movement.nodes() {
            0..=MOST_LABELS => format!(r##"<text y="3" fill="#222">{node}</text>"##),
            _ => String::new(),
        }
    }
}

/// The colours of a node.
#[derive(Clone, Debug, PartialEq)]
struct Look {
    part: String,
    disc: String,
    rim: String,
}

impl Scene {
    fn name(&mut self, naming: &Naming) {
        let node = naming.node.get() as usize;
        // A client moves nowhere.
        if node < self.up.len() {
            self.up[node] = naming.up;
            self.leader[node] = naming.leader.map(|leader| leader.get() as u32);
        }
    }

    fn link(&mut self, change: &LinkChange) {
        for (from, to) in [(change.a, change.b), (change.b, change.a)] {
            let list = &mut self.linked[from as usize];
            match (list.binary_search(&to), change.up) {
                (Ok(place), false) => drop(list.remove(place)),
                (Err(place), true) => list.insert(place, to),
                _ => {}
            }
        }
    }

    /// Every link once, the smaller node first.
    fn links(&self) -> impl Iterator<Item = (u32, u32)> {
        let of = |(node, near): (u32, &Vec<u32>)| {
            near.iter().map(move |&other| (node, other)).filter(|(a, b)| a < b).collect::<Vec<_>>()
        };
        (0..).zip(&self.linked).flat_map(of).collect::<Vec<_>>().into_iter()
    }

    /// The smallest node of each node's part.
    fn parts(&self) -> Vec<u32> {
        let mut parts = vec![u32::MAX; self.linked.len()];
        for root in 0..self.linked.len() as u32 {
            let mut stack = vec![root];
            while let Some(node) = stack.pop() {
                let slot = node as usize;
                if self.up[slot] && parts[slot] == u32::MAX {
                    parts[slot] = root;
                    stack.extend(&self.linked[slot]);
                }
            }
        }
        parts
    }

    fn look(&self, node: u32, parts: &[u32]) -> Look {
        let slot = node as usize;
        if !self.up[slot] {
            return Look { part: "none".into(), disc: "#ddd".into(), rim: "#bbb".into() };
        }
        let leads = self.leader[slot] == Some(node);
        Look {
            part: colour(parts[slot]),
            disc: self.leader[slot].map_or_else(|| "#fff".into(), colour),
            rim: if leads { "#000".into() } else { "#fff".into() },
        }
    }
}

/// A colour of a node's own, far from those of its neighbours by number.
fn colour(node: u32) -> String {
    let hue = (f64::from(node) * 137.508) % 360.0;
    // Red, green and blue of that hue at two thirds of full light.
    let channel = |shift: f64| {
        let at = (shift + hue / 30.0) % 12.0;
        let light = 0.62 - 0.3 * f64::min(at - 3.0, 9.0 - at).clamp(-1.0, 1.0);
        (light * 255.0) as u8
    };
    format!("#{:02x}{:02x}{:02x}", channel(0.0), channel(8.0), channel(4.0))
}

/// Pixels along the longer side, and around it.
const WIDTH: f64 = 640.0;
const MARGIN: f64 = 20.0;
const DISC: u32 = 8;
const HALO: u32 = 15;
/// Seconds that an animation lasts at most.
const LONGEST: f64 = 30.0;
/// Nodes up to which they have their numbers on.
const MOST_LABELS: u32 = 120;

#[cfg(test)]
mod tests;
