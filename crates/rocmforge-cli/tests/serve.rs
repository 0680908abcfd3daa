//! `serve` and `ps`: a server of a small random model, asked over HTTP, and its end.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

const TINY: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../rocmforge-models/tests/reference/tiny/llama.gguf"
);

/// A running server, which is killed if the test fails.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(options: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rocmforge"));
        command.args(["serve", "--port", "0", "-m", TINY]).args(options);
        let mut child = command.stderr(Stdio::piped()).spawn().expect("the program");
        let lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        let mut said = String::new();
        let mut url = None;
        for line in lines.map_while(Result::ok) {
            said.push_str(&line);
            said.push('\n');
            if let Some(rest) = line.strip_prefix("listening on ") {
                url = rest.split(',').next().map(str::to_owned);
                // From here on nobody reads the log, which must not matter.
                break;
            }
        }
        let url = url.unwrap_or_else(|| panic!("it does not listen: {said}"));
        Self { child, url }
    }

    fn ask(&self, path: &str, body: &Value) -> Value {
        let mut answer = ureq::post(format!("{}{path}", self.url))
            .header("content-type", "application/json")
            .send(body.to_string())
            .expect("an answer");
        serde_json::from_str(&answer.body_mut().read_to_string().expect("text")).expect("JSON")
    }

    /// Asks for the end as systemd does, and waits for it.
    fn end(mut self) {
        let id = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(id, rustix::process::Signal::TERM).expect("it runs");
        let status = self.child.wait().expect("it ends");
        assert!(status.success(), "{status}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What the command `run` prints for a greedy request.
fn run(device: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rocmforge"));
    command.args([
        "run", "--device", device, "-m", TINY, "--temp", "0", "--tokens", "8", "--json", "banana",
    ]);
    let output = command.output().expect("the program");
    let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    answer["text"].as_str().expect("a text").to_owned()
}

#[test]
fn a_server_answers_as_run_does_and_ends_when_asked() {
    for device in ["cpu", "sim"] {
        let server = Server::start(&["--device", device]);
        let request = json!({"prompt": "banana", "temperature": 0, "max_tokens": 8});
        let answer = server.ask("/v1/completions", &request);
        assert_eq!(answer["choices"][0]["text"], run(device), "{device}: {answer}");
        let mut ps = Command::new(env!("CARGO_BIN_EXE_rocmforge"));
        let output = ps.args(["ps", "--url", &server.url]).output().expect("the program");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.starts_with("llama  ready  0 requests"), "{text}");
        server.end();
    }
}

#[test]
fn a_server_for_other_machines_wants_keys() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rocmforge"));
    command.args([
        "serve", "--device", "cpu", "--port", "0", "--host", "0.0.0.0", "-m", TINY,
    ]);
    let output = command.output().expect("the program");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("there are no keys"), "{said}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_rocmforge"));
    let output = command
        .args(["ps", "--url", "http://127.0.0.1:1"])
        .output()
        .expect("the program");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("no server listens"), "{said}");
}
