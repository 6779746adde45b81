//! Drives a headless Chromium through its debugging pipe.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

/// A browser with one page open.
pub(crate) struct Browser {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    session: String,
    next: u64,
    /// Addresses that the page asked for, its own among them.
    pub(crate) requests: Vec<String>,
    /// Errors that its scripts did not catch.
    pub(crate) failures: Vec<String>,
    _profile: Folder,
}

/// A folder that is removed with its owner.
pub(crate) struct Folder(pub(crate) std::path::PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("gridloom-view-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder for temporary files");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn program() -> Option<String> {
    let named = std::env::var("GRIDLOOM_CHROMIUM").ok();
    let known = ["chromium", "chromium-browser", "google-chrome"].map(str::to_owned);
    named.into_iter().chain(known).find(|program| {
        Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
    })
}

impl Browser {
    /// Opens a file in a window of this size, or returns `None` where no Chromium is installed.
    pub(crate) fn open(page: &Path, name: &str, size: (u32, u32), dark: bool) -> Option<Browser> {
        let program = program()?;
        let profile = Folder::new(name);
        // The debugging pipe is file 3 for commands and file 4 for answers.
        let mut process = Command::new("sh")
            .arg("-c")
            .arg("exec \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>/dev/null")
            .arg("sh")
            .arg(program)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
            .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
            .arg("--remote-debugging-pipe")
            .arg(format!("--user-data-dir={}", profile.0.display()))
            .arg(format!("--window-size={},{}", size.0, size.1))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let input = process.stdin.take().expect("piped");
        let output = BufReader::new(process.stdout.take().expect("piped"));
        let mut browser = Browser {
            process,
            input,
            output,
            session: String::new(),
            next: 0,
            requests: Vec::new(),
            failures: Vec::new(),
            _profile: profile,
        };
        let target = browser.call("Target.createTarget", &json!({ "url": "about:blank" }));
        let attached = browser
            .call("Target.attachToTarget", &json!({ "targetId": target["targetId"], "flatten": true }));
        browser.session = attached["sessionId"].as_str().expect("a session").to_owned();
        for domain in ["Page.enable", "Network.enable", "Runtime.enable"] {
            browser.call(domain, &json!({}));
        }
        browser.resize(size);
        let scheme = if dark { "dark" } else { "light" };
        browser.call(
            "Emulation.setEmulatedMedia",
            &json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] }),
        );
        browser.call("Page.navigate", &json!({ "url": format!("file://{}", page.display()) }));
        browser.until("typeof fit === 'function' && document.readyState === 'complete' && (drawn.length > 0 || nodes.size === 0)");
        Some(browser)
    }

    /// Gives the window another size.
    pub(crate) fn resize(&mut self, (width, height): (u32, u32)) {
        self.call(
            "Emulation.setDeviceMetricsOverride",
            &json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false }),
        );
    }

    /// Calls a method of the protocol and waits for its answer.
    pub(crate) fn call(&mut self, method: &str, params: &Value) -> Value {
        self.next += 1;
        let id = self.next;
        let mut message = json!({ "id": id, "method": method, "params": params });
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.input.write_all(&bytes).expect("a browser that listens");
        loop {
            let mut answer = Vec::new();
            let length = self.output.read_until(0, &mut answer).expect("a browser that answers");
            assert!(length > 0, "the browser ended");
            answer.pop();
            let answer: Value = serde_json::from_slice(&answer).expect("JSON");
            match answer["method"].as_str() {
                Some("Network.requestWillBeSent") => {
                    self.requests
                        .push(answer["params"]["request"]["url"].as_str().unwrap_or_default().to_owned());
                }
                Some("Runtime.exceptionThrown") => {
                    self.failures.push(answer["params"]["exceptionDetails"].to_string());
                }
                _ => {}
            }
            if answer["id"] == id {
                assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return answer["result"].clone();
            }
        }
    }

    /// Returns the value of an expression of the page's.
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        let answer =
            self.call("Runtime.evaluate", &json!({ "expression": expression, "returnByValue": true }));
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {}", answer["exceptionDetails"]);
        answer["result"]["value"].clone()
    }

    /// Waits until an expression holds.
    pub(crate) fn until(&mut self, expression: &str) {
        for _ in 0..600 {
            let answer =
                self.call("Runtime.evaluate", &json!({ "expression": expression, "returnByValue": true }));
            if answer["result"]["value"] == json!(true) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        panic!("the page never came to: {expression}");
    }

    pub(crate) fn mouse(&mut self, kind: &str, (x, y): (f64, f64), button: &str, more: &Value) {
        let mut params = json!({ "type": kind, "x": x, "y": y, "button": button, "clickCount": 1 });
        for (key, value) in more.as_object().into_iter().flatten() {
            params[key] = value.clone();
        }
        self.call("Input.dispatchMouseEvent", &params);
    }

    pub(crate) fn click(&mut self, at: (f64, f64)) {
        self.mouse("mouseMoved", at, "none", &json!({}));
        self.mouse("mousePressed", at, "left", &json!({}));
        self.mouse("mouseReleased", at, "left", &json!({}));
    }

    pub(crate) fn wheel(&mut self, at: (f64, f64), delta: f64) {
        self.mouse("mouseWheel", at, "none", &json!({ "deltaX": 0, "deltaY": delta }));
    }

    pub(crate) fn write(&mut self, text: &str) {
        self.call("Input.insertText", &json!({ "text": text }));
    }

    pub(crate) fn key(&mut self, key: &str) {
        let mut params = json!({ "type": "keyDown", "key": key });
        if key == "Enter" {
            params["text"] = json!("\r");
            params["windowsVirtualKeyCode"] = json!(13);
        }
        self.call("Input.dispatchKeyEvent", &params);
        params["type"] = json!("keyUp");
        self.call("Input.dispatchKeyEvent", &params);
    }

    /// Writes what the window shows to a PNG file.
    pub(crate) fn screenshot(&mut self, path: &Path) {
        use std::process::Stdio;
        let answer = self.call("Page.captureScreenshot", &json!({ "format": "png" }));
        let data = answer["data"].as_str().expect("a picture").to_owned();
        let mut decode = Command::new("base64")
            .arg("-d")
            .stdin(Stdio::piped())
            .stdout(std::fs::File::create(path).expect("a file to write"))
            .spawn()
            .expect("base64");
        decode.stdin.take().expect("piped").write_all(data.as_bytes()).expect("base64 that listens");
        assert!(decode.wait().expect("base64").success());
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
