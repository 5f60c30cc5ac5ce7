//! A headless Chromium, driven by its DevTools protocol over a pipe: objects of JSON with a zero byte behind each.
#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "what goes wrong here fails the test"
)]

use base64::Engine;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Bound against hangs; nothing here takes nearly as long.
const PATIENCE: Duration = Duration::from_secs(20);

/// The browser with one tab. It ends with this value.
#[derive(Debug)]
pub struct Browser {
    child: Child,
    /// `None` once it is to end.
    to: Option<ChildStdin>,
    from: Receiver<Value>,
    sent: u64,
    session: Option<String>,
    /// What the page complained of: exceptions, messages on the console, refusals by its policy.
    pub complaints: Vec<String>,
    /// Where the browser keeps what it has to.
    _profile: tempfile::TempDir,
}

impl Browser {
    /// Starts one; `None`, where there is no Chromium: the test is skipped.
    #[track_caller]
    pub fn start() -> Option<Self> {
        let found = ["chromium", "chromium-browser", "google-chrome"]
            .into_iter()
            .find(|name| {
                let paths = std::env::var_os("PATH").unwrap_or_default();
                std::env::split_paths(&paths).any(|path| path.join(name).is_file())
            });
        let Some(program) = found else {
            crate::skip(
                "there is no chromium to open the page with (Debian: apt-get install chromium)",
            );
            return None;
        };
        let profile = tempfile::tempdir().unwrap();
        let flags = "--headless=new --no-sandbox --disable-gpu --no-first-run --disable-extensions --remote-debugging-pipe";
        // The protocol is spoken on descriptors 3 and 4.
        let line = format!("exec {program} {flags} \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1");
        let mut child = Command::new("sh")
            .args([
                "-c",
                &line,
                "sh",
                &format!("--user-data-dir={}", profile.path().display()),
                "about:blank",
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (to, mut out) = (child.stdin.take(), child.stdout.take().unwrap());
        let (said, from) = channel();
        thread::spawn(move || {
            let (mut rest, mut piece) = (Vec::new(), [0; 1 << 16]);
            while let Ok(n @ 1..) = out.read(&mut piece) {
                rest.extend_from_slice(&piece[..n]);
                while let Some(end) = rest.iter().position(|byte| *byte == 0) {
                    let message: Vec<u8> = rest.drain(..=end).collect();
                    let _ = said.send(serde_json::from_slice(&message[..end]).unwrap_or_default());
                }
            }
        });
        let (session, complaints) = (None, Vec::new());
        let mut browser = Self {
            child,
            to,
            from,
            sent: 0,
            session,
            complaints,
            _profile: profile,
        };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let attached = browser.call("Target.attachToTarget", attach);
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page.enable", "Runtime.enable", "Log.enable"] {
            browser.call(domain, json!({}));
        }
        Some(browser)
    }

    /// Calls a method of the protocol; what it returns.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        self.sent += 1;
        let mut message = json!({"id": self.sent, "method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = session.as_str().into();
        }
        let to = self.to.as_mut().unwrap();
        to.write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let answer = self
                .from
                .recv_timeout(PATIENCE)
                .unwrap_or_else(|e| panic!("no answer to {method}: {e}"));
            if answer["id"] == self.sent {
                assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return answer["result"].clone();
            }
            if matches!(
                answer["method"].as_str(),
                Some(
                    "Runtime.exceptionThrown"
                        | "Runtime.consoleAPICalled"
                        | "Log.entryAdded"
                        | "Page.javascriptDialogOpening"
                )
            ) {
                self.complaints.push(answer.to_string());
            }
        }
    }

    /// Opens a page in a window of that size and waits until it has drawn everything.
    pub fn open(&mut self, page: &Path, width: u32, height: u32, dark: bool) {
        let size =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", size);
        let scheme = if dark { "dark" } else { "light" };
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.call("Emulation.setEmulatedMedia", features);
        self.call(
            "Page.navigate",
            json!({"url": format!("file://{}", page.display())}),
        );
        self.until("globalThis.stackline?.picture.done && stackline.ready");
    }

    /// The value of an expression in the page.
    pub fn eval(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let answer = self.call("Runtime.evaluate", params);
        assert!(
            answer["exceptionDetails"].is_null(),
            "{expression}: {}",
            answer["exceptionDetails"]
        );
        answer["result"]["value"].clone()
    }

    /// Waits until an expression is true.
    pub fn until(&mut self, expression: &str) {
        let begun = Instant::now();
        while self.eval(&format!("Boolean({expression})")) != true {
            assert!(
                begun.elapsed() < PATIENCE,
                "never: {expression}; {:?}",
                self.complaints
            );
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until what was changed is drawn.
    pub fn drawn(&mut self) {
        self.eval(
            "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))",
        );
        self.until("stackline.picture.done");
    }

    /// Presses a key.
    pub fn key(&mut self, key: &str) {
        for kind in ["keyDown", "keyUp"] {
            let text = if key.len() == 1 { key } else { "" };
            self.call(
                "Input.dispatchKeyEvent",
                json!({"type": kind, "key": key, "text": text}),
            );
        }
        self.drawn();
    }

    /// Something with the mouse: `mousePressed`, `mouseMoved`, `mouseReleased`, `mouseWheel`.
    pub fn mouse(&mut self, kind: &str, x: f64, y: f64, more: Value) {
        let mut params = json!({"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1});
        if let (Value::Object(params), Value::Object(more)) = (&mut params, more) {
            params.extend(more);
        }
        self.call("Input.dispatchMouseEvent", params);
    }

    /// Presses and releases.
    pub fn click(&mut self, x: f64, y: f64) {
        for kind in ["mouseMoved", "mousePressed", "mouseReleased"] {
            self.mouse(kind, x, y, json!({}));
        }
        self.drawn();
    }

    /// What the window shows, as PNG.
    pub fn picture(&mut self) -> Vec<u8> {
        let shot = self.call("Page.captureScreenshot", json!({"format": "png"}));
        base64::engine::general_purpose::STANDARD
            .decode(shot["data"].as_str().unwrap())
            .unwrap()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It ends when its pipe does; the group of its own processes with it.
        self.to = None;
        let begun = Instant::now();
        while self.child.try_wait().is_ok_and(|status| status.is_none())
            && begun.elapsed() < Duration::from_secs(5)
        {
            thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
