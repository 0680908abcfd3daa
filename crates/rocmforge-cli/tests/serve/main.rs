//! `serve` and `ps`: a server of a small random model, asked over HTTP, and its end.

mod process;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
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
        // A journal shows a line with control characters as binary data.
        assert!(said.contains("loaded") && !said.contains('\x1b'), "{said}");
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
        let output = ps
            .args(["ps", "--check", "--url", &server.url])
            .output()
            .expect("the program");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success() && text.starts_with("llama  ready  0 requests"),
            "{text}"
        );
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

#[test]
fn a_hangup_reloads_the_keys_and_a_broken_file_leaves_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("keys");
    let (old, new) = ("old:0123456789abcdef", "new:fedcba9876543210");
    std::fs::write(&path, old).expect("written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_rocmforge"));
    command.args(["serve", "--device", "cpu", "--port", "0", "-m", TINY, "--keys"]);
    let child = command.arg(&path).stderr(Stdio::piped()).stdin(Stdio::null());
    let mut child = child.stdout(Stdio::null()).spawn().expect("the program");
    let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
    let mut line_with = |text: &str| {
        let mut lines = lines.by_ref().map_while(Result::ok);
        let line = lines.find(|line| line.contains(text));
        line.unwrap_or_else(|| panic!("it does not say {text}"))
    };
    let listens = line_with("listening on ");
    let url = listens.trim_start_matches("listening on ").split(',').next();
    let server = Server {
        child,
        url: url.expect("an address").to_owned(),
    };
    let status = |line: &str| {
        let key = line.split_once(':').expect("a name").1;
        let request = ureq::get(format!("{}/v1/models", server.url)).header("x-api-key", key);
        let answer = request.config().http_status_as_error(false).build().call();
        answer.expect("an answer").status().as_u16()
    };
    let hangup = || {
        let id = rustix::process::Pid::from_child(&server.child);
        rustix::process::kill_process(id, rustix::process::Signal::HUP).expect("it runs");
    };
    assert_eq!((status(old), status(new)), (200, 401));
    std::fs::write(&path, new).expect("written");
    hangup();
    line_with("are reloaded");
    assert_eq!((status(old), status(new)), (401, 200));
    std::fs::write(&path, "short").expect("written");
    hangup();
    let line = line_with("cannot be reloaded");
    assert!(line.contains("keys") && line.contains("5 characters"), "{line}");
    assert_eq!((status(old), status(new)), (401, 200));
    server.end();
}

/// The log at every level has no text of a prompt or an answer, no key and no query string, whatever becomes of the request.
#[test]
fn the_log_has_no_prompts_and_no_keys() {
    const KEY: &str = "sesame-0123456789abcdef";
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("keys");
    std::fs::write(&path, format!("ada:{KEY}")).expect("written");
    for (level, options) in [
        ("trace", &[][..]),
        ("trace", &["--log-json"]),
        ("debug", &["--log-json"]),
        ("info", &[]),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rocmforge"));
        command
            .args(["serve", "--device", "cpu", "--port", "0", "-m", TINY, "--keys"])
            .arg(&path)
            .args(options);
        command
            .env("ROCMFORGE_LOG", level)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program");
        let mut stdout = child.stdout.take().expect("piped");
        let stdout = std::thread::spawn(move || {
            let mut said = String::new();
            stdout.read_to_string(&mut said).map(|_| said)
        });
        let (listens, address) = std::sync::mpsc::channel();
        let stderr = BufReader::new(child.stderr.take().expect("piped"));
        let stderr = std::thread::spawn(move || {
            let mut said = String::new();
            for line in stderr.lines().map_while(Result::ok) {
                if let Some(rest) = line.strip_prefix("listening on ") {
                    let url = rest.split(',').next().expect("an address").to_owned();
                    listens.send(url).expect("somebody waits");
                }
                said.push_str(&line);
                said.push('\n');
            }
            said
        });
        let url = address.recv().expect("it listens");
        let server = Server { child, url };
        let ask = |path: &str, key: &str, body: &str| {
            let request =
                ureq::post(format!("{}{path}?secret=quince", server.url)).header("content-type", "application/json");
            let request = request.header("authorization", format!("Bearer {key}"));
            let request = request.config().http_status_as_error(false).build();
            let mut answer = request.send(body).expect("an answer");
            let text = answer.body_mut().read_to_string().expect("text");
            (answer.status().as_u16(), text)
        };
        let messages = json!([{"role": "system", "content": "papaya"}, {"role": "user", "content": "papaya"}]);
        for is_stream in [false, true] {
            for (path, body) in [
                ("/v1/completions", json!({"prompt": "papaya"})),
                (
                    "/v1/completions",
                    json!({"prompt": "papaya", "stop": ["papaya"], "logprobs": 1, "echo": true}),
                ),
                ("/completion", json!({"prompt": "papaya"})),
                (
                    "/api/generate",
                    json!({"model": "llama", "prompt": "papaya", "raw": true}),
                ),
                ("/tokenize", json!({"content": "papaya"})),
            ] {
                let mut body = body;
                (body["max_tokens"], body["n_predict"]) = (2.into(), 2.into());
                body["options"] = json!({"num_predict": 2});
                if path != "/tokenize" {
                    body["stream"] = is_stream.into();
                }
                let (status, answer) = ask(path, KEY, &body.to_string());
                assert_eq!(status, 200, "{path}: {answer}");
            }
            // What is refused is often quoted.
            for (path, body) in [
                (
                    "/v1/chat/completions",
                    json!({"messages": messages, "max_tokens": "papaya", "stream": is_stream}),
                ),
                (
                    "/v1/messages",
                    json!({"model": "papaya", "messages": "papaya", "max_tokens": 1, "stream": is_stream}),
                ),
                (
                    "/v1/completions",
                    json!({"prompt": "papaya ".repeat(5000), "stream": is_stream}),
                ),
                (
                    "/api/chat",
                    json!({"model": "llama", "messages": [{"role": "papaya", "content": "papaya"}]}),
                ),
            ] {
                let (status, answer) = ask(path, KEY, &body.to_string());
                assert_eq!(status, 400, "{path}: {answer}");
            }
        }
        assert_eq!(ask("/v1/completions", KEY, "{\"prompt\": \"papaya\"").0, 400);
        assert_eq!(
            ask("/v1/completions", "medlar-0123456789abcdef", "{\"prompt\": \"papaya\"}").0,
            401
        );
        server.end();
        let said = stderr.join().expect("no panic") + &stdout.join().expect("no panic").expect("text");
        assert!(
            said.contains("/v1/completions") && said.contains("401"),
            "{level} {options:?}: {said}"
        );
        for secret in ["papaya", "quince", "sesame", "medlar"] {
            let line = said.lines().find(|line| line.contains(secret));
            assert_eq!(line, None, "{level} {options:?}: the log has {secret}");
        }
    }
}

#[test]
fn keys_that_cannot_be_read_are_an_error_before_a_model_is_fetched() {
    let store = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_rocmforge"));
    command.env("ROCMFORGE_STORE", store.path());
    command.env("PIP_INDEX_URL", "http://127.0.0.1:1");
    command.args(["serve", "--device", "cpu", "--port", "0", "--keys"]);
    let output = command.arg(store.path().join("keys")).output().expect("the program");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("keys: "), "{said}");
    assert!(!said.contains("127.0.0.1:1"), "{said}");
}

#[test]
fn a_check_fails_where_the_server_does_not_work() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("its address"));
    let answers = std::thread::spawn(move || {
        for _ in 0..2 {
            let (mut client, _) = listener.accept().expect("a client");
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                client.read_exact(&mut byte).expect("a request");
                head.push(byte[0]);
            }
            let body = r#"{"models": [{"model": "m", "state": "failing"}]}"#;
            let length = body.len();
            write!(
                client,
                "HTTP/1.1 503 Service Unavailable\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
            )
            .expect("an answer");
        }
    });
    let ps = |check: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rocmforge"));
        command.args(["ps", "--url", &url]).args(check);
        let output = command.output().expect("the program");
        assert!(output.stdout.starts_with(b"m  failing"));
        (
            output.status.success(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    assert!(ps(&[]).0);
    let (success, said) = ps(&["--check"]);
    assert!(!success && said.contains("503"), "{said}");
    answers.join().expect("both were answered");
}
