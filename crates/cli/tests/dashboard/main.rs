//! The dashboard in a browser: as a newcomer meets it in `bellwether dev`, and before large clusters.
//!
//! Needs Chromium (Debian's package `chromium`, or any named by `CHROMIUM`); without one every test here says so and
//! does nothing. Pictures of what was seen are kept in `target/dashboard-shots`.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "tests of a host wait for real processes"
)]

mod browser;
mod crowd;
mod demo;
mod mesh;
mod played;

use std::{
    io::Write as _,
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use bellwether_proto::Epoch;
use browser::{Browser, DESKTOP, Screen};
use crowd::{Crowd, HOSTILE, TOKEN};
use demo::Demo;

const DARK: Screen = Screen { dark: true, ..DESKTOP };
const PHONE: Screen = Screen { width: 390, height: 844, dark: false, phone: true };

/// A browser for one test at a time, since frames are counted; or none, and a word about it that no test runner swallows.
fn browser() -> Option<(MutexGuard<'static, ()>, Browser)> {
    static ONE: Mutex<()> = Mutex::new(());
    let Some(program) = browser::installed() else {
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED a test of the dashboard: no Chromium here\n  \
             install Debian's package chromium, or name one in CHROMIUM"
        );
        return None;
    };
    let guard = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = browser::shots();
    let _ = writeln!(std::io::stderr(), "pictures of the dashboard go to {}", folder.display());
    Some((guard, Browser::start(&program)))
}

/// What can be seen of the election.
struct Seen {
    leader: String,
    epoch: Epoch,
}

fn seen(browser: &mut Browser) -> Seen {
    let leader = browser.text("document.querySelector('.election strong.leader').textContent");
    let epoch = browser.text("document.querySelector('.election .epoch').dataset.epoch");
    Seen { leader, epoch: epoch.parse().unwrap() }
}

/// Waits until this many are alive, all of them agree, and exactly one row is marked as the leader's.
fn wait_for_agreement(browser: &mut Browser, alive: usize) -> Seen {
    browser.wait_for(&format!(
        "document.querySelectorAll('#rows tr[data-state=alive]').length === {alive} \
         && document.querySelectorAll('#rows tr.leading').length === 1 \
         && document.querySelector('.light').dataset.light === 'all' \
         && document.querySelector('.agreement .text').textContent.startsWith('{alive} of {alive} agree on ')"
    ));
    seen(browser)
}

fn row(name: &str) -> String {
    format!("#rows tr[data-name={name:?}]")
}

fn press(browser: &mut Browser, name: &str, act: &str) {
    browser.click(&format!("{} [data-act={act}]", row(name)));
}

fn wait_for_state(browser: &mut Browser, name: &str, state: &str) {
    let row = row(name);
    browser.wait_for(&format!("document.querySelector('{row}')?.dataset.state === '{state}'"));
}

fn look_through(browser: &mut Browser, name: &str) {
    browser.value(&format!(
        "(() => {{ const select = document.querySelector('#viewpoint'); select.value = '{name}'; \
         select.dispatchEvent(new Event('change')); }})()"
    ));
    browser.wait_for(&format!("document.querySelector('#viewer').textContent === '{name}'"));
}

fn no_complaints(browser: &mut Browser, when: &str) {
    let complaints = browser.complaints();
    assert!(complaints.is_empty(), "{when}: {complaints:#?}");
}

fn fits_the_screen(browser: &mut Browser) {
    let widths = browser.value("[document.documentElement.scrollWidth, innerWidth]");
    assert!(widths[0].as_u64() <= widths[1].as_u64(), "scrolls sideways: {widths}");
}

#[test]
fn a_newcomer_kills_the_leader_cuts_and_heals_by_button() {
    let Some((_guard, mut browser)) = browser() else { return };
    let demo = Demo::start(27739);
    browser.show(DESKTOP);
    browser.open(&demo.address);
    let first = wait_for_agreement(&mut browser, 5);
    browser.shoot("5-light");
    browser.show(DARK);
    browser.shoot("5-dark");
    browser.show(DESKTOP);

    press(&mut browser, &first.leader, "kill");
    wait_for_state(&mut browser, &first.leader, "failed");
    let second = wait_for_agreement(&mut browser, 4);
    assert_ne!(second.leader, first.leader);
    assert!(second.epoch > first.epoch, "{} after {}", second.epoch, first.epoch);
    browser.shoot("5-leader-killed");

    press(&mut browser, &first.leader, "revive");
    let third = wait_for_agreement(&mut browser, 5);
    assert!(third.epoch >= second.epoch, "{} after {}", third.epoch, second.epoch);

    // Seen by somebody else, the leader loses its cable; seen by itself, everybody else has gone.
    let other = (1..=5).map(|at| format!("node-{at}")).find(|name| *name != third.leader).unwrap();
    look_through(&mut browser, &other);
    press(&mut browser, &third.leader, "cut");
    wait_for_state(&mut browser, &third.leader, "failed");
    let fourth = wait_for_agreement(&mut browser, 4);
    assert_ne!(fourth.leader, third.leader);
    assert!(fourth.epoch > third.epoch, "{} after {}", fourth.epoch, third.epoch);
    browser.value("scrollTo(0, 0)");
    browser.shoot("5-partition-light");
    browser.show(DARK);
    browser.shoot("5-partition-dark");
    browser.show(DESKTOP);
    look_through(&mut browser, &third.leader);
    wait_for_state(&mut browser, &other, "failed");
    browser.shoot("5-partition-other-side");
    look_through(&mut browser, &other);
    press(&mut browser, &third.leader, "heal");
    let fifth = wait_for_agreement(&mut browser, 5);
    assert!(fifth.epoch >= fourth.epoch, "{} after {}", fifth.epoch, fourth.epoch);

    // Who dies while we look through its eyes: the page looks through another's.
    press(&mut browser, &other, "kill");
    browser.wait_for(&format!("document.querySelector('#viewer').textContent !== '{other}'"));
    wait_for_state(&mut browser, &other, "failed");
    press(&mut browser, &other, "revive");
    wait_for_agreement(&mut browser, 5);

    // All of them: the page stays, and one is enough to go on.
    for at in 1..=5 {
        press(&mut browser, &format!("node-{at}"), "kill");
        browser.wait_for(&format!(
            "document.querySelector('{} [data-act=revive]') !== null",
            row(&format!("node-{at}"))
        ));
    }
    browser.wait_for(
        "document.querySelector('#banner-text').textContent === 'All nodes are dead. Revive one.'",
    );
    browser.shoot("5-all-dead");
    press(&mut browser, "node-2", "revive");
    let last = wait_for_agreement(&mut browser, 1);
    assert_eq!(last.leader, "node-2");
    no_complaints(&mut browser, "from beginning to end");

    // Nothing came from anywhere else.
    let foreign = browser.value(
        "performance.getEntriesByType('resource').filter(one => !one.name.startsWith(origin)).length",
    );
    assert_eq!(foreign, 0);
}

#[test]
fn why_and_everything_else_is_reached_by_keyboard_and_the_page_survives_a_restart() {
    let Some((_guard, mut browser)) = browser() else { return };
    let demo = Demo::start(28739);
    browser.show(DESKTOP);
    browser.open(&demo.address);
    wait_for_agreement(&mut browser, 5);

    // The first node stands on top of the ring.
    let place = browser.value(
        "(() => { const box = document.querySelector('#graph').getBoundingClientRect(); \
         return [box.x + box.width / 2, box.y + 78]; })()",
    );
    browser.click_at(place[0].as_f64().unwrap(), place[1].as_f64().unwrap());
    let told = "document.querySelector('#why').open && \
         document.querySelector('#why-name').textContent === 'node-1' && \
         document.querySelector('.summary').textContent.includes('has been alive for')";
    browser.wait_for(told);
    browser.shoot("5-why");
    browser.key("Escape");
    browser.wait_for("!document.querySelector('#why').open");

    browser.value("document.querySelector('#graph').focus()");
    browser.key("ArrowRight");
    browser.key("Enter");
    browser.wait_for("document.querySelector('#why').open");
    browser.key("Escape");
    browser.wait_for("document.activeElement.id === 'graph'");

    // Tab comes by everything there is to press, in the order of the page.
    browser.value("document.activeElement.blur()");
    let mut passed = Vec::new();
    for _ in 0..60 {
        browser.key("Tab");
        passed.push(browser.text(
            "document.activeElement.id || document.activeElement.dataset.act || document.activeElement.className",
        ));
    }
    for stop in [
        "viewpoint",
        "theme",
        "zoom-in",
        "graph",
        "timeline",
        "members-search",
        "name",
        "kill",
        "cut",
    ] {
        assert!(passed.iter().any(|one| one == stop), "{stop} is not reached: {passed:?}");
    }

    browser.show(PHONE);
    browser.value("scrollTo(0, 0)");
    fits_the_screen(&mut browser);
    browser.shoot_whole("5-phone", PHONE);
    browser.shoot_whole("5-phone-dark", Screen { dark: true, ..PHONE });
    browser.show(DESKTOP);
    no_complaints(&mut browser, "before the restart");

    let port = demo.address.trim_end_matches('/').rsplit(':').next().unwrap().parse().unwrap();
    let before = browser.text("document.querySelector('#rows tr').dataset.id");
    drop(demo);
    browser.wait_for(
        "!document.querySelector('#banner').hidden && \
         /Connection lost, retrying in [0-9]+ s/.test(document.querySelector('#banner-text').textContent)",
    );
    assert_eq!(
        browser.text("document.querySelector('#rows tr').dataset.id"),
        before,
        "data is kept"
    );
    thread::sleep(Duration::from_millis(400));
    browser.shoot("5-lost");
    let again = Demo::start(port);
    assert!(again.address.contains(&port.to_string()), "{}", again.address);
    wait_for_agreement(&mut browser, 5);
    browser.wait_for("document.querySelector('#banner').hidden");
    assert_ne!(browser.text("document.querySelector('#rows tr').dataset.id"), before);
}

#[test]
fn fifty_members_two_elections_and_a_hostile_name() {
    let Some((_guard, mut browser)) = browser() else { return };
    let crowd = Crowd::gather(50, false, false);
    browser.show(DESKTOP);
    browser.open(&format!("http://{}/", crowd.address));
    browser.wait_for("document.querySelectorAll('#rows tr').length === 50");
    browser.wait_for("document.querySelectorAll('.election').length === 2");
    let agreement = browser.text("document.querySelector('.agreement').textContent");
    assert!(agreement.contains("48 of 49 agree on creek-004@17"), "{agreement}");
    assert!(agreement.contains("gate-001 says ridge-001"), "{agreement}");
    let lights = browser
        .text("[...document.querySelectorAll('.light')].map(light => light.dataset.light).join()");
    assert_eq!(lights, "some,all");
    // Names are text, whatever is in them, and there is nothing to press here that only a demo has.
    let hostile = browser.text("[...document.querySelectorAll('.name')].map(one => one.textContent).find(name => name.includes('img'))");
    assert_eq!(hostile, HOSTILE);
    assert_eq!(browser.value("document.querySelectorAll('main img, [data-act]').length"), 0);
    // One of the elections is learned: what was learnt of its voters is a column.
    let scores = browser.text("[...document.querySelectorAll('#rows tr')].map(row => row.querySelector('td.score').textContent).filter(text => text !== '–').sort().join(' | ')");
    assert!(scores.contains("98.5 %, no. 1") && scores.contains("18.5 %, last"), "{scores}");
    assert_eq!(scores.split(" | ").count(), 9);
    browser.click("[data-sort=score]");
    let best = browser.text("document.querySelector('#rows tr td.score').textContent");
    assert_eq!(best, "98.5 %, no. 1");
    browser.value("document.querySelector('#members').scrollIntoView()");
    browser.shoot("50-scores");
    browser.click("[data-sort=name]");
    browser.value("scrollTo(0, 0)");
    browser.shoot("50-light");
    browser.show(DARK);
    browser.shoot("50-dark");
    browser.show(DESKTOP);
    browser.click("#members-filter .chip:nth-child(3)");
    browser.wait_for(
        "[...document.querySelectorAll('#rows tr')].every(row => row.dataset.state === 'suspect')",
    );
    let suspicion = browser.text("document.querySelector('#rows .suspicion').textContent");
    assert!(suspicion.contains("s left, accused by "), "{suspicion}");
    browser.shoot("50-suspects");
    browser.show(PHONE);
    fits_the_screen(&mut browser);
    browser.click("#members-filter .chip:nth-child(1)");
    browser.value("scrollTo(0, 0)");
    browser.shoot("50-phone");
    no_complaints(&mut browser, "at fifty");
}

#[test]
fn five_hundred_members_that_change_all_the_time_are_drawn_smoothly() {
    let Some((_guard, mut browser)) = browser() else { return };
    let crowd = Crowd::gather(500, true, false);
    browser.show(DESKTOP);
    browser.open(&format!("http://{}/", crowd.address));
    browser.wait_for("document.querySelectorAll('#rows tr').length === 500");
    browser.settle();
    // Frames while everything happens at once: news three times a second, and a hand that drags the graph about.
    browser.value(
        "window.frames500 = []; window.last500 = performance.now(); \
         (function next(now) { frames500.push(now - last500); last500 = now; requestAnimationFrame(next); })(performance.now()); 0",
    );
    let frame = browser.value(
        "(() => { const box = document.querySelector('#graph').getBoundingClientRect(); \
         return [box.x, box.y, box.width, box.height]; })()",
    );
    let side = |i: usize| frame[i].as_f64().unwrap();
    let at = |x: f64, y: f64| (side(0) + side(2) * x, side(1) + side(3) * y);
    let before = browser.busy();
    let (x, y) = at(0.1, 0.15);
    browser.mouse("mousePressed", x, y, 1);
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(4) {
        let turn = began.elapsed().as_secs_f64() * 3.0;
        let (x, y) = at(0.1 + 0.05 * turn.cos(), 0.15 + 0.05 * turn.sin());
        browser.mouse("mouseMoved", x, y, 1);
        thread::sleep(Duration::from_millis(8));
    }
    browser.mouse("mouseReleased", x, y, 1);
    let busy = browser.busy() - before;
    let frames = browser.value("frames500");
    let mut frames: Vec<f64> =
        frames.as_array().unwrap().iter().skip(1).filter_map(|one| one.as_f64()).collect();
    let each = busy * 1000.0 / frames.len() as f64;
    frames.sort_by(f64::total_cmp);
    let share = |part: f64| frames[((frames.len() - 1) as f64 * part) as usize];
    let _ = writeln!(
        std::io::stderr(),
        "500 members: {} frames in 4 s, {each:.1} ms of processor each; apart {:.1} ms (median), {:.1} ms (95 %), {:.1} ms (longest)",
        frames.len(),
        share(0.5),
        share(0.95),
        share(1.0),
    );
    // How far apart frames are depends on what else the machine does; what one costs does not, and at sixty a second
    // there are 16.7 ms for it. Without a graphics card everything is counted here, drawing included.
    assert!(each < 12.0, "a frame costs {each:.1} ms");
    assert!(frames.len() > 40, "{} frames in 4 s", frames.len());
    browser.click("#zoom-fit");
    browser.value("scrollTo(0, 0)");
    browser.shoot("500-light");
    browser.show(DARK);
    browser.shoot("500-dark");
    browser.show(PHONE);
    fits_the_screen(&mut browser);
    browser.shoot("500-phone");
    no_complaints(&mut browser, "at five hundred");
}

#[test]
fn an_agent_that_wants_its_token_gets_it_from_whoever_looks() {
    let Some((_guard, mut browser)) = browser() else { return };
    let crowd = Crowd::gather(8, false, true);
    browser.show(DESKTOP);
    browser.open(&format!("http://{}/", crowd.address));
    browser.wait_for("!document.querySelector('#token-form').hidden");
    assert_eq!(browser.value("document.querySelectorAll('#rows tr').length"), 0);
    browser.shoot("token");
    browser.type_text(TOKEN);
    browser.key("Enter");
    browser.wait_for("document.querySelectorAll('#rows tr').length === 8");
    browser.wait_for("document.querySelector('#token-form').hidden");
    assert!(!browser.text("location.href").contains(TOKEN));
    browser.shoot("8-light");
}
