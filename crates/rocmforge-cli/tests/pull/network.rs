//! Pulls through a proxy, without a network, and ended by a signal.

use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::hub::Answer;
use super::{FILE, NAME, PART, User, tiny};

/// A proxy that connects every client to one server, whatever host it asks for.
struct Proxy {
    url: String,
    /// The first line of each request.
    asked: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    /// One before the server of this URL, or one that refuses all.
    fn new(server: Option<&str>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let server = server.map(|url| url.trim_start_matches("http://").to_owned());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&asked);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (server, asked) = (server.clone(), Arc::clone(&shared));
                // A client that goes away is not our matter.
                std::thread::spawn(move || client.and_then(|client| pass(client, server.as_deref(), &asked)));
            }
        });
        Self { url, asked }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("whole").clone()
    }
}

/// Answers a CONNECT, and passes bytes in both directions.
fn pass(client: TcpStream, server: Option<&str>, asked: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut lines = BufReader::new(&client).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    for line in lines {
        if line?.is_empty() {
            break;
        }
    }
    asked.lock().expect("whole").push(first);
    let Some(server) = server else {
        return (&client).write_all(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n");
    };
    let server = TcpStream::connect(server)?;
    (&client).write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?;
    let (mut from, mut to) = (client.try_clone()?, server.try_clone()?);
    std::thread::spawn(move || std::io::copy(&mut from, &mut to).and_then(|_| to.shutdown(Shutdown::Write)));
    std::io::copy(&mut &server, &mut &client)?;
    client.shutdown(Shutdown::Write)
}

/// A host that no machine knows: only the proxy can reach it.
const FAR: &str = "http://hub.invalid";

#[test]
fn a_pull_goes_through_the_proxy_of_the_environment() {
    for variable in ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "ALL_PROXY"] {
        let user = User::new();
        user.list_files(&[("tiny-Q8_0.gguf", &tiny())]);
        user.hub.set(FILE, Answer::Pieces(tiny(), 2000));
        let proxy = Proxy::new(Some(&user.hub.url));
        let pull = |no_proxy: &str| {
            let mut command = user.command(&["pull", NAME]);
            command.env("HF_ENDPOINT", FAR).env(variable, &proxy.url);
            command.env("NO_PROXY", no_proxy).output().expect("started")
        };
        let output = pull("");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{variable}: {said}");
        assert_eq!(user.listed(), [NAME]);
        let asked = proxy.asked();
        assert!(!asked.is_empty(), "{variable}");
        for line in &asked {
            // The name is resolved by the proxy, which may be the only one that can.
            assert_eq!(line, "CONNECT hub.invalid:80 HTTP/1.1", "{variable}");
        }
        // It goes on through the proxy too, where a response broke off.
        assert!(user.hub.ranges(FILE).contains(&Some(2000)), "{variable}");
        user.ok(&["rm", NAME]);
        // Hosts that are reached without it.
        assert_eq!(pull("hub.invalid").status.code(), Some(1), "{variable}");
        assert_eq!(proxy.asked().len(), asked.len(), "{variable}");
    }
}

/// Whatever is between the program and a server: the message says what to do.
#[test]
fn a_server_that_cannot_be_reached_is_named_with_what_to_do() {
    let user = User::new();
    let refusing = Proxy::new(None);
    // A port without a server.
    let closed = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let closed = format!("http://{}", closed.expect("a port"));
    let url = format!("{FAR}/tiny.gguf");
    for name in ["smollm2", NAME, url.as_str()] {
        for proxy in [None, Some(&refusing.url), Some(&closed)] {
            let mut command = user.command(&["pull", name]);
            command
                .env("HF_ENDPOINT", FAR)
                .env("PIP_INDEX_URL", format!("{FAR}/pypi/simple"));
            if let Some(proxy) = proxy {
                command.env("HTTPS_PROXY", proxy);
            }
            let output = command.output().expect("started");
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(1), "{said}");
            for part in [
                "http://hub.invalid/",
                "cannot be reached",
                "HTTPS_PROXY",
                "PIP_INDEX_URL",
                "HF_ENDPOINT",
                "rocmforge pull PATH",
            ] {
                assert!(said.contains(part), "{name}, {proxy:?}: {part:?} is missing: {said}");
            }
        }
    }
    assert!(user.folders().is_empty(), "nothing was fetched, and nothing stays");
}

/// Ctrl-C in the middle of a file whose server sends nothing any more.
#[test]
fn an_interrupted_pull_leaves_what_the_next_goes_on_from() {
    let user = User::new();
    user.list_files(&[("tiny-Q8_0.gguf", &tiny())]);
    user.hub.set(FILE, Answer::Stalls(tiny(), 1000));
    let mut command = user.command(&["pull", NAME]);
    let mut child = command.stderr(Stdio::piped()).spawn().expect("started");
    let part = user.in_store(PART).join("tiny-Q8_0.gguf.part");
    let end = Instant::now() + Duration::from_secs(60);
    while part.metadata().map_or(0, |part| part.len()) < 1000 {
        assert!(Instant::now() < end, "the part does not come");
        std::thread::sleep(Duration::from_millis(10));
    }
    let begun = Instant::now();
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("sent");
    let status = child.wait().expect("ends");
    assert!(begun.elapsed() < Duration::from_secs(10), "it ends at once");
    assert!(status.signal() == Some(2) || status.code() == Some(130), "{status}");
    assert_eq!(std::fs::read(&part).expect("it stays"), tiny()[..1000]);
    assert!(user.listed().is_empty(), "a part is no model");
    user.ok(&["pull", NAME]);
    assert_eq!(user.hub.ranges(FILE), [None, Some(1000)]);
    assert_eq!(user.listed(), [NAME]);
    assert_eq!(user.folders(), ["hf%3Aa%2Fb%3AQ8_0"], "no part and no lock is left");
}
