//! A headless Chromium, driven over its debugging pipe: JSON with a zero byte behind each message, on descriptors 3
//! and 4. That is all the driver there is; a browser is the only thing these tests need that a Rust toolchain is not.

use std::{
    collections::VecDeque,
    fs::{self, File},
    io::{BufRead as _, BufReader, Write as _},
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, getuid, kill_process_group};
use serde_json::{Value, json};
use tempfile::TempDir;

/// How long anything may take that should take a moment, on a machine that does other things besides.
const PATIENCE: Duration = Duration::from_secs(20);

/// A browser with one page.
pub(crate) struct Browser {
    child: Child,
    input: File,
    messages: Receiver<Value>,
    /// Events that came while an answer was awaited.
    events: VecDeque<Value>,
    next: u64,
    session: String,
    _home: TempDir,
}

/// How the page is shown.
#[derive(Clone, Copy)]
pub(crate) struct Screen {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) dark: bool,
    pub(crate) phone: bool,
}

pub(crate) const DESKTOP: Screen = Screen { width: 1360, height: 900, dark: false, phone: false };

/// Where Chromium is, if it is anywhere.
pub(crate) fn installed() -> Option<PathBuf> {
    let named = std::env::var_os("CHROMIUM").map(PathBuf::from);
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&folders).collect();
    let found = ["chromium", "chromium-browser", "google-chrome"]
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    named.into_iter().chain(found).find(|path| path.is_file())
}

impl Browser {
    pub(crate) fn start(program: &Path) -> Self {
        let home = tempfile::tempdir().unwrap();
        let (to, from) = (home.path().join("to"), home.path().join("from"));
        assert!(Command::new("mkfifo").args([&to, &from]).status().unwrap().success());
        let mut command = Command::new("sh");
        command
            .args(["-c", r#"exec "$@" 3<"$0/to" 4>"$0/from""#])
            .arg(home.path())
            .arg(program)
            .args(["--headless=new", "--remote-debugging-pipe", "--disable-gpu"])
            .args(["--no-first-run", "--no-default-browser-check", "--disable-extensions"])
            .args([
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
            ])
            .args(["--disable-dev-shm-usage", "--hide-scrollbars", "--mute-audio"])
            .arg(format!("--user-data-dir={}", home.path().join("profile").display()))
            .env("HOME", home.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0);
        if getuid().is_root() {
            // Chromium refuses to sandbox itself as root.
            command.arg("--no-sandbox");
        }
        let child = command.arg("about:blank").spawn().unwrap();
        // Opening a pipe waits for the other end: in the order in which the shell opens them.
        let input = File::options().write(true).open(&to).unwrap();
        let output = BufReader::new(File::open(&from).unwrap());
        let (sender, messages) = mpsc::channel();
        thread::spawn(move || {
            for message in output.split(0).map_while(Result::ok) {
                let Ok(message) = serde_json::from_slice(&message) else { continue };
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let mut browser = Self {
            child,
            input,
            messages,
            events: VecDeque::new(),
            next: 0,
            session: String::new(),
            _home: home,
        };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let target = json!({ "targetId": target["targetId"], "flatten": true });
        let session = browser.call("Target.attachToTarget", target);
        browser.session = session["sessionId"].as_str().unwrap().to_owned();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// Sends a command and waits for its answer.
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let mut message = json!({ "id": self.next, "method": method, "params": params });
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        self.input.write_all(message.to_string().as_bytes()).unwrap();
        self.input.write_all(&[0]).unwrap();
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let message = self.messages.recv_timeout(left);
            let mut message = message.unwrap_or_else(|error| panic!("{method}: {error}"));
            if message["id"] == self.next {
                assert!(message["error"].is_null(), "{method}: {}", message["error"]);
                return message["result"].take();
            }
            self.events.push_back(message);
        }
    }

    pub(crate) fn show(&mut self, screen: Screen) {
        let Screen { width, height, dark, phone } = screen;
        self.call(
            "Emulation.setDeviceMetricsOverride",
            json!({ "width": width, "height": height, "deviceScaleFactor": if phone { 2 } else { 1 }, "mobile": phone }),
        );
        let scheme = if dark { "dark" } else { "light" };
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call("Emulation.setEmulatedMedia", json!({ "features": features }));
        self.settle();
    }

    pub(crate) fn open(&mut self, address: &str) {
        self.call("Page.navigate", json!({ "url": address }));
        self.wait_for("document.readyState === 'complete'");
    }

    /// The value of an expression, which may be a promise.
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        let params =
            json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let mut answer = self.call("Runtime.evaluate", params);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].take()
    }

    pub(crate) fn text(&mut self, expression: &str) -> String {
        self.value(expression).as_str().unwrap_or_default().to_owned()
    }

    /// Waits until it holds.
    pub(crate) fn wait_for(&mut self, expression: &str) {
        let deadline = Instant::now() + PATIENCE;
        while self.value(expression) != json!(true) {
            if Instant::now() > deadline {
                let seen = self.text("document.body.innerText");
                panic!("not within {PATIENCE:?}: {expression}\n{seen}");
            }
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Lets two frames pass, so that what has been asked for has been drawn.
    pub(crate) fn settle(&mut self) {
        self.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))");
    }

    /// Presses the mouse where the element is, as a person would, so that what covers it is in the way.
    pub(crate) fn click(&mut self, selector: &str) {
        let place = self.value(&format!(
            "(() => {{ const it = document.querySelector({}); it.scrollIntoView({{ block: 'center' }}); \
             const box = it.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; }})()",
            json!(selector)
        ));
        self.click_at(place[0].as_f64().unwrap(), place[1].as_f64().unwrap());
    }

    pub(crate) fn click_at(&mut self, x: f64, y: f64) {
        self.mouse("mouseMoved", x, y, 0);
        self.mouse("mousePressed", x, y, 1);
        self.mouse("mouseReleased", x, y, 1);
    }

    pub(crate) fn mouse(&mut self, what: &str, x: f64, y: f64, buttons: u32) {
        let button = if what == "mouseMoved" && buttons == 0 { "none" } else { "left" };
        self.call(
            "Input.dispatchMouseEvent",
            json!({ "type": what, "x": x, "y": y, "button": button, "buttons": buttons, "clickCount": 1 }),
        );
    }

    pub(crate) fn key(&mut self, key: &str) {
        let text = if key == "Enter" { "\r" } else { "" };
        let code = match key {
            "Enter" => 13,
            "Tab" => 9,
            "Escape" => 27,
            "ArrowRight" => 39,
            "ArrowDown" => 40,
            _ => 0,
        };
        let press = json!({ "type": "keyDown", "key": key, "code": key, "text": text, "windowsVirtualKeyCode": code });
        self.call("Input.dispatchKeyEvent", press);
        let release =
            json!({ "type": "keyUp", "key": key, "code": key, "windowsVirtualKeyCode": code });
        self.call("Input.dispatchKeyEvent", release);
    }

    pub(crate) fn type_text(&mut self, text: &str) {
        self.call("Input.insertText", json!({ "text": text }));
    }

    /// Keeps a picture of the page, on a screen as high as it is.
    pub(crate) fn shoot_whole(&mut self, name: &str, screen: Screen) {
        self.show(screen);
        let height = self.value("document.documentElement.scrollHeight");
        let height = u32::try_from(height.as_u64().unwrap()).unwrap();
        self.show(Screen { height, ..screen });
        self.shoot(name);
        self.show(screen);
    }

    /// Keeps a picture of what is seen of the page.
    pub(crate) fn shoot(&mut self, name: &str) {
        self.settle();
        let picture = self.call("Page.captureScreenshot", json!({ "format": "png" }));
        let folder = shots();
        fs::create_dir_all(&folder).unwrap();
        let picture = base64(picture["data"].as_str().unwrap());
        fs::write(folder.join(format!("{name}.png")), picture).unwrap();
    }

    /// Seconds that the page's thread has had the processor.
    pub(crate) fn busy(&mut self) -> f64 {
        self.call("Performance.enable", json!({ "timeDomain": "threadTicks" }));
        let metrics = self.call("Performance.getMetrics", json!({}));
        let metrics = metrics["metrics"].as_array().unwrap();
        let tasks = metrics.iter().find(|one| one["name"] == "TaskDuration").unwrap();
        tasks["value"].as_f64().unwrap()
    }

    /// What the page has complained about since last asked.
    pub(crate) fn complaints(&mut self) -> Vec<String> {
        // An answer comes after all that happened before the question.
        self.value("1");
        let complaint = |event: Value| {
            let params = &event["params"];
            let said = match event["method"].as_str()? {
                "Runtime.exceptionThrown" => &params["exceptionDetails"],
                "Runtime.consoleAPICalled" => match params["type"].as_str()? {
                    "error" | "warning" | "assert" => &params["args"],
                    _ => return None,
                },
                "Log.entryAdded" => match params["entry"]["level"].as_str()? {
                    "error" | "warning" => &params["entry"],
                    _ => return None,
                },
                _ => return None,
            };
            Some(said.to_string())
        };
        self.events.drain(..).filter_map(complaint).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let group = Pid::from_child(&self.child);
        let _ = kill_process_group(group, Signal::KILL);
        let _ = self.child.wait();
    }
}

/// Where pictures are kept.
pub(crate) fn shots() -> PathBuf {
    let temporary = Path::new(env!("CARGO_TARGET_TMPDIR"));
    temporary.parent().unwrap_or(temporary).join("dashboard-shots")
}

fn base64(text: &str) -> Vec<u8> {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => u32::from(byte - b'A'),
        b'a'..=b'z' => u32::from(byte - b'a') + 26,
        b'0'..=b'9' => u32::from(byte - b'0') + 52,
        b'+' => 62,
        _ => 63,
    };
    let text = text.trim_end_matches('=').as_bytes();
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for four in text.chunks(4) {
        let bits = four.iter().fold(0, |bits, &byte| bits << 6 | digit(byte));
        let bits = bits << (6 * (4 - four.len()));
        bytes.extend_from_slice(&bits.to_be_bytes()[1..four.len()]);
    }
    bytes
}
