//! The process of a server: its log, its stacks, its time while nobody asks, and options that switch routes off.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use rocmforge_testkit::skip;
use serde_json::{Value, json};

use super::{Server, TINY};

/// A server whose log is read.
struct Logged {
    server: Server,
    log: JoinHandle<Vec<u8>>,
}

impl Logged {
    fn start(options: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rocmforge"));
        command.args(["serve", "--device", "cpu", "--port", "0", "-m", TINY]);
        command.args(options).envs(environment.iter().copied());
        let mut child = command.stderr(Stdio::piped()).spawn().expect("the program");
        let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
        let (listens, address) = std::sync::mpsc::channel();
        let log = std::thread::spawn(move || {
            let mut said = Vec::new();
            let mut begun = 0;
            while stderr.read_until(b'\n', &mut said).expect("a pipe") > 0 {
                let line = String::from_utf8_lossy(&said[begun..]);
                if let Some(rest) = line.strip_prefix("listening on ") {
                    let url = rest.split(',').next().expect("an address").to_owned();
                    listens.send(url).expect("somebody waits");
                }
                begun = said.len();
            }
            said
        });
        let Ok(url) = address.recv() else {
            let said = log.join().expect("no panic");
            panic!("it does not listen: {}", String::from_utf8_lossy(&said));
        };
        let server = Server { child, url };
        Self { server, log }
    }

    /// A connection to it.
    fn connect(&self) -> TcpStream {
        let address = self.server.url.strip_prefix("http://").expect("a URL");
        TcpStream::connect(address).expect("it listens")
    }

    /// The status of a GET with this key.
    fn status(&self, path: &str, key: Option<&str>) -> u16 {
        let mut request = ureq::get(format!("{}{path}", self.server.url));
        if let Some(key) = key {
            request = request.header("x-api-key", key);
        }
        let answer = request.config().http_status_as_error(false).build().call();
        answer.expect("an answer").status().as_u16()
    }

    /// Ends it, and gives its log.
    fn end(self) -> String {
        self.server.end();
        String::from_utf8(self.log.join().expect("no panic")).expect("UTF-8")
    }
}

fn completion() -> Value {
    json!({"prompt": "banana", "temperature": 0, "max_tokens": 8})
}

#[test]
fn control_characters_of_a_client_do_not_reach_the_log() {
    for level in ["info", "trace"] {
        for options in [&[][..], &["--log-json"]] {
            let logged = Logged::start(options, &[("ROCMFORGE_LOG", level)]);
            let body = |model: &str| json!({"model": model, "prompt": "a", "max_tokens": 1}).to_string();
            let mut heads: Vec<Vec<u8>> = Vec::new();
            // In paths: bytes of UTF-8, other bytes, bytes that the parser may refuse.
            for path in [
                &b"/\xc2\x9b31m"[..],
                b"/\xe2\x80\xae",
                b"/\xff",
                b"/\x1b[2J",
                b"/a\x0bb",
                b"/%0a%1b%00",
                b"/v1/models/%1b%0a2026%20INFO",
            ] {
                heads.push([b"GET ", path, b" HTTP/1.1\r\nHost: localhost\r\n"].concat());
            }
            // In ids, keys, methods, hosts and the types of bodies.
            for (method, header) in [
                ("GET", &b"X-Request-Id: a\tb"[..]),
                ("GET", b"X-Request-Id: \x1b[31m"),
                ("GET", b"X-Request-Id: a\xc2\x9bb"),
                ("GET", b"Authorization: Bearer \xc2\x9b"),
                ("GET", b"Traceparent: \xc2\x9b"),
                ("GET\x1b", b"A: b"),
                ("POST", b"Content-Type: a\xc2\x9b"),
            ] {
                heads.push(
                    [
                        method.as_bytes(),
                        b" /health HTTP/1.1\r\nHost: localhost\r\n",
                        header,
                        b"\r\n",
                    ]
                    .concat(),
                );
            }
            heads.push(b"GET / HTTP/1.1\r\nHost: \xc2\x9b\r\n".to_vec());
            let model = "a\n2026 INFO request\r\u{1b}[2J\u{9b}\0\u{202e}";
            let length = body(model).len();
            let post = "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
            heads.push(format!("{post}Content-Length: {length}\r\n").into_bytes());
            let mut answered = 0;
            for head in &heads {
                let mut connection = logged.connect();
                let end = [&b"Connection: close\r\n\r\n"[..], body(model).as_bytes()].concat();
                let _ = connection.write_all(&[&head[..], &end].concat());
                let mut answer = Vec::new();
                let _ = connection.read_to_end(&mut answer);
                answered += usize::from(answer.starts_with(b"HTTP/1.1 "));
            }
            assert!(answered * 2 > heads.len(), "{answered} of {}", heads.len());
            let log = logged.end();
            let raw = log.lines().find(|line| {
                let is_hidden = |c: char| c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c);
                line.chars().any(is_hidden)
            });
            assert_eq!(raw, None, "{level} {options:?}");
            assert!(log.contains("%0a%1b%00"), "{log}");
            // No line was begun by a client.
            assert!(!log.lines().any(|line| line.starts_with("2026 INFO")), "{log}");
            if !options.is_empty() {
                let objects = log.lines().filter(|line| line.starts_with('{'));
                objects.for_each(|line| drop(serde_json::from_str::<Value>(line).expect("an object")));
            }
        }
    }
}

/// Threads of Rust have the stack that the environment says, unless the program says it: with 32 KiB none of them could do its work.
#[test]
fn stacks_of_threads_are_those_that_the_program_says() {
    let small = [("RUST_MIN_STACK", "32768")];
    let logged = Logged::start(&["--threads", "2"], &small);
    let mut deepest = json!(1);
    for _ in 0..120 {
        deepest = json!([deepest]);
    }
    let mut body = completion();
    body["unknown"] = deepest;
    let answer = logged.server.ask("/v1/completions", &body);
    assert_eq!(answer["usage"]["completion_tokens"], 8, "{answer}");
    logged.end();
}

/// Nanoseconds that the threads of a process have run, and how often they went to sleep, by their names.
fn times(id: u32) -> BTreeMap<String, (u64, u64)> {
    let mut times: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    let tasks = std::fs::read_dir(format!("/proc/{id}/task")).expect("it runs");
    for task in tasks.flatten() {
        let read = |name: &str| std::fs::read_to_string(Path::new(&task.path()).join(name)).unwrap_or_default();
        let number = |text: &str| text.trim().parse::<u64>().ok();
        let ran = read("schedstat").split(' ').next().and_then(number).unwrap_or(0);
        let status = read("status");
        let slept = status
            .lines()
            .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        let slept = slept.and_then(number).unwrap_or(0);
        let sum = times.entry(read("comm").trim().to_owned()).or_default();
        *sum = (sum.0 + ran, sum.1 + slept);
    }
    times
}

/// What the threads did between two looks.
fn between(before: &BTreeMap<String, (u64, u64)>, after: &BTreeMap<String, (u64, u64)>) -> (Duration, u64) {
    let sum = |times: &BTreeMap<String, (u64, u64)>| {
        let add = |sum: (u64, u64), one: &(u64, u64)| (sum.0 + one.0, sum.1 + one.1);
        times.values().fold((0, 0), add)
    };
    let (before, after) = (sum(before), sum(after));
    let ran = Duration::from_nanos(after.0.saturating_sub(before.0));
    (ran, after.1.saturating_sub(before.1))
}

#[test]
fn an_idle_server_does_not_run() {
    let logged = Logged::start(&["--threads", "2"], &[]);
    let id = logged.server.child.id();
    let begun = times(id);
    if begun.values().all(|(ran, _)| *ran == 0) {
        logged.end();
        skip!("this kernel does not count the time of threads");
    }
    logged.server.ask("/v1/completions", &completion());
    let (ran, woken) = between(&begun, &times(id));
    assert!(ran > Duration::ZERO && woken > 0, "a request is work that is counted");
    // Clients that keep their connections and ask nothing.
    let connections: Vec<TcpStream> = (0..4).map(|_| logged.connect()).collect();
    std::thread::sleep(Duration::from_secs(1));
    let before = times(id);
    std::thread::sleep(Duration::from_secs(2));
    let after = times(id);
    let (ran, woken) = between(&before, &after);
    // Half a percent of a core, and no poll in 200 ms. Measured: 0 and 0.
    assert!(ran < Duration::from_millis(10), "{ran:?}: {before:?} {after:?}");
    assert!(woken < 10, "{woken}: {before:?} {after:?}");
    drop(connections);
    logged.end();
}

#[test]
fn options_switch_routes_off_and_slots_are_for_admins() {
    let logged = Logged::start(&[], &[]);
    for (path, status) in [("/metrics", 200), ("/props", 200), ("/", 200), ("/slots", 501)] {
        assert_eq!(logged.status(path, None), status, "{path}");
    }
    logged.end();
    let folder = tempfile::tempdir().expect("a folder");
    let [users, admins] =
        [("users", "ada:0123456789abcdef"), ("admins", "eve:fedcba9876543210")].map(|(name, text)| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("written");
            path.to_str().expect("UTF-8").to_owned()
        });
    let (user, admin) = (Some("0123456789abcdef"), Some("fedcba9876543210"));
    let options = [
        "--no-metrics",
        "--no-props",
        "--no-page",
        "--slots",
        "--keys",
        &users,
        "--admin-keys",
        &admins,
    ];
    let logged = Logged::start(&options, &[]);
    for (path, status) in [("/metrics", 501), ("/props", 501), ("/", 404), ("/v1/models", 200)] {
        assert_eq!(
            (logged.status(path, user), logged.status(path, admin)),
            (status, status),
            "{path}"
        );
    }
    assert_eq!(
        (
            logged.status("/slots", None),
            logged.status("/slots", user),
            logged.status("/slots", admin)
        ),
        (401, 403, 200)
    );
    logged.end();
    // Slots that nobody could see.
    let mut command = Command::new(env!("CARGO_BIN_EXE_rocmforge"));
    command.args([
        "serve", "--device", "cpu", "--port", "0", "-m", TINY, "--slots", "--keys", &users,
    ]);
    let output = command.output().expect("the program");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("admins"), "{said}");
}
