//! What `bellwether sim` writes about nodes that have places: how they move, their links, and pictures of them.

use std::{
    fs,
    io::{BufWriter, Write},
    path::Path,
};

use bellwether_proto::{Duration, Time};
use bellwether_sim::{
    picture::Story,
    run::world::movement,
    scenario::Scenario,
    world::mobility::{LinkChange, Movement, to_text},
};
use flate2::{Compression, write::GzEncoder};

use crate::{
    output::{Failure, about},
    sim::create,
};

/// How the nodes move, in BonnMotion's format; compressed if the file's name ends in `.gz`.
pub(crate) fn write_movement(scenario: &Scenario, seed: u64, path: &Path) -> Result<(), Failure> {
    let movement = placed(scenario, seed, "--movement")?;
    let text = to_text(&movement);
    let mut file = create(path)?;
    if path.extension().is_some_and(|extension| extension == "gz") {
        let mut packed = GzEncoder::new(file, Compression::default());
        packed.write_all(text.as_bytes()).and_then(|()| packed.finish().map(drop))
    } else {
        file.write_all(text.as_bytes())
    }
    .map_err(about(path))
}

/// When two nodes come into range and leave it: those in range at the beginning first, at time zero.
pub(crate) fn write_links(scenario: &Scenario, seed: u64, path: &Path) -> Result<(), Failure> {
    let movement = placed(scenario, seed, "--links")?;
    let range = scenario.network.placement.range().expect("who has a place has a range");
    let mut out = BufWriter::new(create(path)?);
    let mut write = |change: LinkChange| {
        let LinkChange { at, a, b, up } = change;
        writeln!(out, "{:.6},{a},{b},{}", at.as_secs_f64(), u8::from(up))
    };
    let first = (0..).zip(movement.neighbours(range, 0.0)).flat_map(|(a, near)| {
        let later = near.into_iter().filter(move |&b| b > a);
        later.map(move |b| LinkChange { at: Time::ZERO, a, b, up: true })
    });
    let changes = movement.link_changes(range, scenario.duration.as_secs_f64());
    let written = first.chain(changes).try_for_each(&mut write);
    written.and_then(|()| out.flush()).map_err(about(path))
}

/// A picture every so often, one that moves, and a page to look at them.
pub(crate) fn write_frames(
    scenario: &Scenario,
    seed: u64,
    folder: &Path,
    every: Duration,
) -> Result<(), Failure> {
    let frames = scenario.duration.as_micros().div_ceil(every.as_micros().max(1));
    if frames > MOST_FRAMES {
        return Err(Failure::Other(format!(
            "--every {every}: {frames} frames of {} are more than {MOST_FRAMES}; ask for fewer",
            scenario.duration
        )));
    }
    let story = Story::of(scenario, seed)?.ok_or_else(|| nowhere("--frames"))?;
    fs::create_dir_all(folder).map_err(about(folder))?;
    let write = |name: String, text: &str| {
        let path = folder.join(name);
        create(&path)?.write_all(text.as_bytes()).map_err(about(&path))
    };
    for frame in 0..frames {
        let at = (every * frame).as_secs_f64();
        write(format!("frame-{frame:05}.svg"), &story.frame(at))?;
    }
    write("animation.svg".into(), &story.animation())?;
    let page = PLAYER
        .replace("FRAMES", &frames.to_string())
        .replace("EVERY", &every.as_secs_f64().to_string());
    write("index.html".into(), &page)
}

fn placed(
    scenario: &Scenario,
    seed: u64,
    option: &str,
) -> Result<std::sync::Arc<Movement>, Failure> {
    movement(scenario, seed)?.ok_or_else(|| nowhere(option))
}

fn nowhere(option: &str) -> Failure {
    let problem = "the nodes of this scenario have no positions";
    let kinds = "placement = { kind = \"field\" }, \"grid\", \"random\" or \"cluster\"";
    Failure::Other(format!("{option}: {problem}; {kinds} gives them some"))
}

/// Arbitrary: hours of looking.
const MOST_FRAMES: u64 = 100_000;

const PLAYER: &str = r#"<!DOCTYPE html>
<meta charset="utf-8"><title>frames</title>
<style>body{font:14px sans-serif;margin:1em}img{display:block;max-width:100%;border:1px solid #ccc}</style>
<p><button id="go">play</button> <input id="at" type="range" min="0" value="0" style="width:30em"> <span id="time"></span>
 <a href="animation.svg">animation</a></p>
<img id="frame" alt="the field at this instant">
<script>
const frames = FRAMES, every = EVERY, at = document.getElementById("at"), go = document.getElementById("go");
at.max = frames - 1;
const show = () => {
  document.getElementById("frame").src = "frame-" + String(at.value).padStart(5, "0") + ".svg";
  document.getElementById("time").textContent = (at.value * every).toFixed(1) + " s";
};
let timer = null;
go.onclick = () => {
  go.textContent = timer ? "play" : "stop";
  timer = timer ? clearInterval(timer) : setInterval(() => { at.value = (+at.value + 1) % frames; show(); }, 100);
};
at.oninput = show;
show();
</script>
"#;
