//! `bellwether play` and `sim --film` in a browser.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{
    DARK, DESKTOP, PHONE, browser,
    browser::{Browser, Screen},
    fits_the_screen, no_complaints,
};

/// A running `bellwether play`.
struct Theatre {
    child: Child,
    address: String,
}

impl Theatre {
    fn open(args: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_bellwether"))
            .arg("play")
            .args(args)
            .args(["--port", "27790"])
            .current_dir(root())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.split_whitespace().next().expect("an address to look at").to_owned();
        Self { child, address }
    }
}

impl Drop for Theatre {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The trace that the command gives.
fn simulated(file: &Path, args: &[&str]) -> String {
    let run = Command::new(env!("CARGO_BIN_EXE_bellwether"))
        .arg("sim")
        .arg(file)
        .args(args)
        .arg("--json")
        .current_dir(root())
        .output()
        .unwrap();
    let answer: Value = serde_json::from_slice(&run.stdout).unwrap();
    answer["trace_hashes"][0].as_str().unwrap().to_owned()
}

/// Waits until all that is wanted has been computed and is shown; returns the trace.
fn computed(browser: &mut Browser) -> String {
    wait_long_for(browser, "play.panels.every((one) => !one.making && Boolean(one.film?.tail))");
    browser.text("play.panels[0].film.tail.trace")
}

fn jump(browser: &mut Browser, seconds: f64) {
    browser.value(&format!("play.jump({})", seconds * 1e6));
    // Words follow the picture by a moment.
    thread::sleep(Duration::from_millis(300));
    browser.settle();
}

fn number(browser: &mut Browser, expression: &str) -> i64 {
    browser.value(expression).as_i64().unwrap_or_else(|| panic!("{expression} is no number"))
}

/// Waits for what takes its time to be simulated.
fn wait_long_for(browser: &mut Browser, expression: &str) {
    let deadline = Instant::now() + Duration::from_secs(180);
    while browser.value(expression) != json!(true) {
        assert!(Instant::now() < deadline, "not within three minutes: {expression}");
        thread::sleep(Duration::from_millis(200));
    }
}

fn leader(browser: &mut Browser) -> i64 {
    let leader = number(browser, "play.panels[0].scene.opinion().leader");
    assert!(leader >= 0, "somebody leads");
    leader
}

fn place(browser: &mut Browser, node: i64) -> (f64, f64) {
    browser.value("play.panels[0].canvas.scrollIntoView({ block: 'center' })");
    browser.settle();
    let at = browser.value(&format!(
        "(() => {{ const box = play.panels[0].canvas.getBoundingClientRect(); \
         const [x, y] = play.panels[0].field.places[{node}]; return [box.x + x, box.y + y]; }})()"
    ));
    (at[0].as_f64().unwrap(), at[1].as_f64().unwrap())
}

fn tool(browser: &mut Browser, tool: &str) {
    browser.click(&format!("#tools [data-tool={tool}]"));
}

fn click_node(browser: &mut Browser, node: i64) {
    let (x, y) = place(browser, node);
    browser.click_at(x, y);
}

/// Draws a loop around these nodes, with nobody between them.
fn lasso(browser: &mut Browser, nodes: &[i64]) {
    let places: Vec<(f64, f64)> = nodes.iter().map(|&node| place(browser, node)).collect();
    let most = |of: fn(&(f64, f64)) -> f64| places.iter().map(of).fold(f64::MIN, f64::max) + 45.0;
    let least = |of: fn(&(f64, f64)) -> f64| places.iter().map(of).fold(f64::MAX, f64::min) - 45.0;
    let (west, east) = (least(|at| at.0), most(|at| at.0));
    let (north, south) = (least(|at| at.1), most(|at| at.1));
    browser.mouse("mouseMoved", west, north, 0);
    browser.mouse("mousePressed", west, north, 1);
    for (x, y) in [(east, north), (east, south), (west, south)] {
        browser.mouse("mouseMoved", x, y, 1);
    }
    browser.mouse("mouseReleased", west, south, 1);
}

fn light(browser: &mut Browser) -> String {
    browser.text("document.querySelector('.promise .light').dataset.light")
}

#[test]
fn the_tutorial_is_gone_through_by_hand_from_start_to_end() {
    let Some((_guard, mut browser)) = browser() else { return };
    let theatre = Theatre::open(&[]);
    browser.show(DESKTOP);
    browser.open(&theatre.address);
    computed(&mut browser);
    browser.click("#teach");
    let done = |browser: &mut Browser, title: &str| {
        browser.wait_for("document.querySelector('#lesson').dataset.done === 'yes'");
        assert_eq!(browser.text("document.querySelector('#lesson-title').textContent"), title);
        assert!(browser.text("document.querySelector('#lesson-done').textContent").len() > 60);
        browser.click("#lesson-next");
        browser.wait_for("document.querySelector('#lesson').dataset.done !== 'yes'");
    };
    let at = |browser: &mut Browser, world: &str, seconds: f64| {
        browser.wait_for(&format!("play.panels[0].film?.head?.file === '{world}'"));
        computed(browser);
        jump(browser, seconds);
    };

    at(&mut browser, "five", 10.0);
    browser.shoot("play-lesson");
    tool(&mut browser, "kill");
    let first = leader(&mut browser);
    click_node(&mut browser, first);
    computed(&mut browser);
    assert_eq!(browser.text("document.querySelector('#lesson').dataset.done"), "no");
    jump(&mut browser, 25.0);
    assert_ne!(leader(&mut browser), first);
    done(&mut browser, "Who leads?");

    at(&mut browser, "five", 10.0);
    let first = leader(&mut browser);
    tool(&mut browser, "part");
    lasso(&mut browser, &[first, (first + 1) % 5]);
    computed(&mut browser);
    jump(&mut browser, 40.0);
    done(&mut browser, "A network in two halves");

    at(&mut browser, "five", 12.0);
    let first = leader(&mut browser);
    tool(&mut browser, "part");
    lasso(&mut browser, &[first]);
    computed(&mut browser);
    jump(&mut browser, 40.0);
    assert_ne!(leader(&mut browser), first);
    assert_ne!(light(&mut browser), "broken");
    done(&mut browser, "And the same, leased");

    at(&mut browser, "five", 12.0);
    let first = leader(&mut browser);
    tool(&mut browser, "way");
    click_node(&mut browser, first);
    click_node(&mut browser, (first + 2) % 5);
    computed(&mut browser);
    jump(&mut browser, 24.0);
    assert_eq!(leader(&mut browser), first, "one bad cable deposes nobody");
    done(&mut browser, "Only one direction");

    at(&mut browser, "hasty", 25.0);
    assert_ne!(light(&mut browser), "broken");
    jump(&mut browser, 28.0);
    browser.wait_for("document.querySelector('#lesson').dataset.done === 'yes'");
    assert_eq!(light(&mut browser), "broken");
    browser.click("#lesson-next");
    browser.wait_for("document.querySelector('#lesson').hidden");
    no_complaints(&mut browser, "in the tutorial");
}

#[test]
fn what_is_done_to_a_run_is_in_its_address_and_in_its_scenario() {
    let Some((_guard, mut browser)) = browser() else { return };
    let theatre = Theatre::open(&["scenarios/node-leased.toml"]);
    browser.show(DESKTOP);
    browser.open(&theatre.address);
    let untouched = computed(&mut browser);
    assert_eq!(untouched, simulated(Path::new("scenarios/node-leased.toml"), &["--seed", "1"]));

    // Kill.
    jump(&mut browser, 8.0);
    let first = leader(&mut browser);
    tool(&mut browser, "kill");
    click_node(&mut browser, first);
    let killed = computed(&mut browser);
    assert_ne!(killed, untouched);
    jump(&mut browser, 12.0);
    assert_eq!(browser.text(&format!("play.panels[0].scene.state[{first}]")), "down");
    let second = leader(&mut browser);
    assert_ne!(second, first);

    // Cut one direction: who is not heard still hears.
    tool(&mut browser, "way");
    let other = (0..5).find(|node| ![first, second].contains(node)).unwrap();
    click_node(&mut browser, second);
    click_node(&mut browser, other);
    computed(&mut browser);
    jump(&mut browser, 16.0);
    assert_eq!(browser.value("play.panels[0].scene.cuts"), json!([[second, other]]));
    let arrived = |from: i64, to: i64| {
        format!(
            "(() => {{ const f = play.panels[0].film; return f.sent.filter((t, i) => t > 12.05e6 && t < 15.9e6 && \
             f.from[i] === {from} && f.to[i] === {to} && f.fate[i] === 0).length; }})()"
        )
    };
    assert_eq!(number(&mut browser, &arrived(second, other)), 0);
    assert!(number(&mut browser, &arrived(other, second)) > 0);
    browser.shoot("play-one-direction");

    // Part, and heal.
    tool(&mut browser, "part");
    lasso(&mut browser, &[second]);
    computed(&mut browser);
    jump(&mut browser, 19.0);
    browser.wait_for("play.panels[0].scene.sides.some((side) => side > 0)");
    browser.shoot("play-parted");
    browser.click("#heal");
    let all = computed(&mut browser);
    jump(&mut browser, 19.5);
    assert_eq!(
        browser.value("play.panels[0].scene.sides.length + play.panels[0].scene.cuts.length"),
        0
    );
    assert_eq!(number(&mut browser, "play.state.edits.length"), 4);

    // Back to before everything, and forth: as it was, to the last answer.
    let beliefs = "JSON.stringify([play.panels[0].scene.leader, play.panels[0].scene.epoch])";
    let late = browser.text(beliefs);
    jump(&mut browser, 7.9);
    assert_eq!(leader(&mut browser), first);
    assert_eq!(browser.text("document.querySelector('#clock').textContent"), "7.900 s");
    jump(&mut browser, 19.5);
    assert_eq!(browser.text(beliefs), late);

    // Its address, opened elsewhere, and its scenario, run by the command.
    let address = browser.text("location.href");
    let body = "JSON.stringify({ world: play.state.world, seed: play.state.seed, sets: play.state.sets, edits: play.state.edits })";
    let text = browser.text(&format!(
        "fetch('/api/scenario', {{ method: 'POST', headers: {{ 'content-type': 'application/json' }}, body: {body} }})\
         .then((answer) => answer.text())"
    ));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("played.toml");
    fs::write(&file, &text).unwrap();
    assert_eq!(simulated(&file, &["--seed", "1"]), all, "{text}");
    browser.open("about:blank");
    browser.open(&address);
    assert_eq!(computed(&mut browser), all);
    assert_eq!(browser.value("play.clock.t"), 19_500_000.0);
    assert_eq!(browser.text(beliefs), late);

    // What is undone is undone.
    for _ in 0..4 {
        browser.click("#edits li:first-child button");
        computed(&mut browser);
        thread::sleep(Duration::from_millis(200));
    }
    assert_eq!(computed(&mut browser), untouched);
    no_complaints(&mut browser, "while it was played with");
}

#[test]
fn two_modes_side_by_side_have_one_seed_and_one_instant() {
    let Some((_guard, mut browser)) = browser() else { return };
    let theatre = Theatre::open(&[]);
    browser.show(DESKTOP);
    browser.open(&theatre.address);
    computed(&mut browser);
    browser.value("play.edit({ at: '12s', kind: 'partition', groups: [[0, 1]] })");
    computed(&mut browser);
    browser.value(
        "(() => { const select = document.querySelector('#beside'); select.value = 'leased'; \
         select.dispatchEvent(new Event('change')); })()",
    );
    browser.wait_for("play.panels.length === 2");
    let left = computed(&mut browser);
    let right = browser.text("play.panels[1].film.tail.trace");
    assert_ne!(left, right);
    assert_eq!(browser.text("play.panels[1].film.head.mode"), "leased");
    jump(&mut browser, 30.0);
    assert_eq!(
        browser.value("play.panels.map((one) => one.scene.t)"),
        json!([30_000_000, 30_000_000])
    );
    // The half without a majority has a leader under eventual, and none under leased.
    let leaders = "play.panels.map((one) => one.scene.opinion().leading.length)";
    assert_eq!(browser.value(leaders), json!([2, 1]));
    browser.shoot("play-side-by-side");
    no_complaints(&mut browser, "side by side");
}

#[test]
fn nodes_are_dragged_and_chosen_by_key_and_what_lasts_is_ended_by_doing_it_again() {
    let Some((_guard, mut browser)) = browser() else { return };
    let theatre = Theatre::open(&[]);
    browser.show(DESKTOP);
    browser.open(&format!("{}#scenario=members&seed=1&at=12", theatre.address));
    let untouched = computed(&mut browser);
    // A node on a field is put elsewhere, and is there from then on.
    let (x, y) = place(&mut browser, 7);
    browser.mouse("mouseMoved", x, y, 0);
    browser.mouse("mousePressed", x, y, 1);
    browser.mouse("mouseMoved", x + 30.0, y + 20.0, 1);
    browser.mouse("mouseMoved", x + 60.0, y + 40.0, 1);
    browser.mouse("mouseReleased", x + 60.0, y + 40.0, 1);
    browser.wait_for("play.state.edits.length === 1 && play.state.edits[0].kind === 'place'");
    assert_ne!(computed(&mut browser), untouched);
    jump(&mut browser, 13.0);
    let (now_x, now_y) = place(&mut browser, 7);
    assert!((now_x - x - 60.0).abs() < 1.5 && (now_y - y - 40.0).abs() < 1.5);
    jump(&mut browser, 11.0);
    let (then_x, then_y) = place(&mut browser, 7);
    assert!((then_x - x).abs() < 1.5 && (then_y - y).abs() < 1.5);
    // A slider lasts until it is moved again.
    let slide = |browser: &mut Browser, id: &str, value: u32| {
        browser.value(&format!(
            "(() => {{ const it = document.querySelector('#{id}'); it.value = {value}; \
             it.dispatchEvent(new Event('change')); }})()"
        ));
        computed(browser);
    };
    jump(&mut browser, 15.0);
    slide(&mut browser, "loss", 40);
    slide(&mut browser, "delay", 200);
    jump(&mut browser, 18.0);
    assert_eq!(
        browser.value("[play.panels[0].scene.loss, play.panels[0].scene.delay]"),
        json!([0.4, 200_000])
    );
    assert_eq!(browser.text("document.querySelector('#loss-said').textContent"), "40 %");
    slide(&mut browser, "loss", 0);
    jump(&mut browser, 19.0);
    assert_eq!(
        browser.value("[play.panels[0].scene.loss, play.panels[0].scene.delay]"),
        json!([0, 200_000])
    );
    // By key: a tool, a node, what the tool does; and again, which ends it.
    browser.value("play.panels[0].canvas.focus()");
    browser.key("z");
    browser.key("ArrowRight");
    browser.key("Enter");
    computed(&mut browser);
    jump(&mut browser, 22.0);
    let frozen = browser.value("play.panels[0].scene.frozen.indexOf(true)").as_i64().unwrap();
    assert!(frozen >= 0, "somebody is frozen");
    browser.key("Enter");
    computed(&mut browser);
    jump(&mut browser, 23.0);
    assert_eq!(browser.value("play.panels[0].scene.frozen.indexOf(true)"), -1);
    let lasted = "play.state.edits.find((one) => one.kind === 'pause').for";
    assert_eq!(browser.text(lasted), "3000000us");
    browser.key(".");
    browser.wait_for("play.clock.t > 23e6 && play.clock.t < 24e6");
    browser.key(",");
    browser.wait_for("play.clock.t <= 23e6");
    no_complaints(&mut browser, "when nodes were dragged");
}

#[test]
fn a_rule_left_out_turns_the_light_red_at_the_moment_the_command_names() {
    let Some((_guard, mut browser)) = browser() else { return };
    let theatre = Theatre::open(&[]);
    browser.show(DESKTOP);
    browser.open(&format!("{}#scenario=hasty&seed=1&at=26.2", theatre.address));
    let trace = computed(&mut browser);
    let world = root().join("crates/cli/src/play/worlds/hasty.toml");
    assert_eq!(trace, simulated(&world, &["--seed", "1"]));
    let told = Command::new(env!("CARGO_BIN_EXE_bellwether"))
        .arg("sim")
        .arg(&world)
        .args(["--replay", "1", "--leaders"])
        .output()
        .unwrap();
    assert_eq!(told.status.code(), Some(1), "the command finds it broken too");
    let at = browser.value("play.panels[0].film.broken[0].t").as_f64().unwrap() / 1e6;
    assert!((26.2..26.5).contains(&at), "{at}");
    jump(&mut browser, at - 0.000_001);
    assert_ne!(light(&mut browser), "broken");
    assert_eq!(browser.text("document.querySelector('.promise .broken').textContent"), "");
    jump(&mut browser, at);
    assert_eq!(light(&mut browser), "broken");
    let sentence = browser.text("document.querySelector('.promise .broken').textContent");
    assert!(sentence.contains("Two leases were valid at the same instant"), "{sentence}");
    assert!(sentence.contains(&format!("{at:.3} s")), "{sentence}");
    browser.shoot("play-broken");
    // The rule, put back.
    browser.value(
        "(() => { const sets = document.querySelector('#sets'); sets.value = 'election.waits=true'; \
         sets.dispatchEvent(new Event('change')); })()",
    );
    browser.wait_for("play.state.sets.length === 1");
    assert_ne!(computed(&mut browser), trace);
    jump(&mut browser, 59.0);
    assert_ne!(light(&mut browser), "broken");
    no_complaints(&mut browser, "when a rule was broken");
}

#[test]
fn a_film_is_one_file_that_shows_the_run_with_the_trace_of_the_command() {
    let Some((_guard, mut browser)) = browser() else { return };
    let folder = tempfile::tempdir().unwrap();
    let film = folder.path().join("film.html");
    let scenario = Path::new("scenarios/node-leased.toml");
    let trace = simulated(scenario, &["--seed", "7", "--film", film.to_str().unwrap()]);
    browser.show(DESKTOP);
    browser.open(&format!("file://{}", film.display()));
    assert_eq!(computed(&mut browser), trace);
    jump(&mut browser, 15.0);
    assert!(browser.text("document.querySelector('.trace').textContent").contains(&trace));
    let first = leader(&mut browser);
    assert!(number(&mut browser, "play.panels[0].field.flying") >= 0);
    jump(&mut browser, 24.0);
    assert_eq!(browser.value(&format!("play.panels[0].scene.frozen[{first}]")), json!(true));
    browser.shoot("play-film");
    click_node(&mut browser, first);
    browser.wait_for("!document.querySelector('#node').hidden");
    browser.wait_for("/^isfrozen.*waits for[a-z]+ ?[a-z]*until/.test(document.querySelector('#node-facts').textContent)");
    // It goes on by itself, and asks nobody for anything.
    browser.value("play.jump(30e6)");
    browser.click("#go");
    browser.wait_for("play.clock.t > 30.2e6");
    assert_eq!(browser.value("performance.getEntriesByType('resource').length"), 0);
    assert!(browser.value("document.querySelector('#tools').offsetParent === null") == json!(true));
    no_complaints(&mut browser, "in a film");
}

#[test]
fn five_forty_nine_and_five_hundred_are_drawn_on_desktop_phone_and_in_the_dark() {
    let Some((_guard, mut browser)) = browser() else { return };
    let theatre = Theatre::open(&[]);
    browser.show(DESKTOP);
    for (world, nodes, at) in [("five", 5, 20.0), ("members", 49, 41.0), ("crowd", 500, 10.0)] {
        browser.open("about:blank");
        browser.open(&format!("{}#scenario={world}&seed=1&at={at}", theatre.address));
        let known = format!(
            "play.panels[0].film?.head?.capacity === {nodes} && play.panels[0].film.horizon > {at}e6"
        );
        wait_long_for(&mut browser, &known);
        jump(&mut browser, at);
        assert_eq!(number(&mut browser, "play.panels[0].scene.opinion().up"), nodes);
        for (name, screen) in [("desktop", DESKTOP), ("dark", DARK), ("phone", PHONE)] {
            browser.show(screen);
            browser.value("play.panels[0].field.repaint()");
            fits_the_screen(&mut browser);
            browser.shoot_whole(&format!("play-{nodes}-{name}"), screen);
        }
        browser.show(DESKTOP);
        no_complaints(&mut browser, world);
    }
    frame_time(&mut browser, DESKTOP);
}

/// Five hundred nodes that move, at full speed: what a frame costs the page's thread.
fn frame_time(browser: &mut Browser, screen: Screen) {
    browser.show(screen);
    wait_long_for(browser, "play.panels[0].film.horizon > 16e6");
    jump(browser, 8.0);
    browser.value(
        "window.frames500 = 0; (function count() { frames500 += 1; requestAnimationFrame(count); })(); play.start()",
    );
    thread::sleep(Duration::from_millis(500));
    let (before, frames) = (browser.busy(), number(browser, "frames500"));
    thread::sleep(Duration::from_secs(4));
    let (busy, frames) = (browser.busy() - before, number(browser, "frames500") - frames);
    let moved = browser.value("play.clock.t").as_f64().unwrap();
    assert!(moved > 8.5e6, "time goes on: {moved}");
    let each = busy * 1000.0 / frames as f64;
    let _ = writeln!(
        std::io::stderr(),
        "500 moving nodes: {frames} frames in 4 s, {each:.1} ms of processor each"
    );
    // At thirty frames a second there are 33.3 ms for one. How many there are depends on what else the machine does.
    assert!(each < 33.3, "a frame costs {each:.1} ms");
}
