//! Headless Chromium, for tests of the inspector page: opens a page and evaluates expressions.
//!
//! It uses the DevTools protocol over two pipes, which needs neither a driver nor a port. `CHROMIUM` selects another
//! program; `SERVICEBUS_SKIP_BROWSER=1` skips such tests.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::{env, fs, path::PathBuf};

use serde_json::{Value, json};

/// How long a page may take to show an expected text.
const WITHIN_MS: u32 = 30_000;
const NAMES: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
];

/// Returns whether tests with a browser are skipped.
pub fn is_left_out() -> bool {
    env::var_os("SERVICEBUS_SKIP_BROWSER").is_some_and(|value| value == "1")
}

/// A browser with one page.
#[derive(Debug)]
pub struct Browser {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    profile: PathBuf,
    session: Value,
    last: u64,
}

impl Browser {
    /// Starts the browser.
    ///
    /// # Panics
    ///
    /// Panics if there is none; the panic says what to install.
    pub fn start(profile: PathBuf) -> Self {
        let program = program().unwrap_or_else(|| {
            panic!(
                "there is no Chromium: install it (on Debian `apt-get install chromium`), name it in CHROMIUM, or leave \
                 tests with a browser out by SERVICEBUS_SKIP_BROWSER=1"
            )
        });
        // The protocol uses the descriptors 3 and 4; the browser's output goes elsewhere.
        let mut child = Command::new("sh")
            .args([
                "-c",
                r#"exec "$0" "$@" 3<&0 4>&1 0</dev/null 1>/dev/null 2>/dev/null"#,
            ])
            .arg(program)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--no-first-run",
            ])
            .args(["--disable-dev-shm-usage", "--remote-debugging-pipe"])
            .arg(format!("--user-data-dir={}", profile.display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell starts");
        let to = child.stdin.take().expect("it is piped");
        let from = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut browser = Self {
            child,
            to,
            from,
            profile,
            session: Value::Null,
            last: 0,
        };
        let page = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": page["targetId"], "flatten": true });
        browser.session = browser.call("Target.attachToTarget", attach)["sessionId"].take();
        browser
    }

    /// Opens an address.
    pub fn open(&mut self, url: &str) {
        let answer = self.call("Page.navigate", json!({ "url": url }));
        assert!(answer["errorText"].is_null(), "{url}: {answer}");
    }

    /// Evaluates an expression.
    pub fn value(&mut self, expression: &str) -> Value {
        let parameters =
            json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let mut answer = self.call("Runtime.evaluate", parameters);
        assert!(
            answer["exceptionDetails"].is_null(),
            "{expression}: {answer}"
        );
        answer["result"]["value"].take()
    }

    /// Waits until the page shows a text.
    ///
    /// # Panics
    ///
    /// Panics if it does not; the panic shows the page's text.
    pub fn wait_for_text(&mut self, text: &str) {
        let wanted = json!(text);
        let shows = format!(
            "new Promise((done) => {{
                const end = performance.now() + {WITHIN_MS};
                const look = () => {{
                    const shown = document.body?.innerText ?? '';
                    if (shown.includes({wanted}) || performance.now() > end) done(shown);
                    else setTimeout(look, 20);
                }};
                look();
            }})"
        );
        let shown = self.value(&shows);
        let shown = shown.as_str().unwrap_or_default();
        assert!(
            shown.contains(text),
            "the page does not show {text:?}:\n{shown}"
        );
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        let mut call = json!({ "id": self.last, "method": method, "params": params });
        if !self.session.is_null() {
            call["sessionId"] = self.session.clone();
        }
        let sent = write!(self.to, "{call}\0").and_then(|()| self.to.flush());
        sent.expect("the browser reads");
        loop {
            let mut message = Vec::new();
            let read = self.from.read_until(0, &mut message);
            assert!(read.is_ok_and(|read| read > 0), "the browser has ended");
            message.pop();
            let mut message: Value = serde_json::from_slice(&message).expect("it speaks JSON");
            if message["id"] == self.last {
                assert!(message["error"].is_null(), "{method}: {message}");
                return message["result"].take();
            }
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        // Its helper processes may write a moment longer.
        let _ = fs::remove_dir_all(&self.profile);
    }
}

fn program() -> Option<PathBuf> {
    if let Some(named) = env::var_os("CHROMIUM") {
        return Some(named.into());
    }
    let path = env::var_os("PATH")?;
    let candidates =
        env::split_paths(&path).flat_map(|directory| NAMES.map(|name| directory.join(name)));
    candidates.into_iter().find(|candidate| candidate.is_file())
}
