//! Hub: a server of the tests whose answers the test sets.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// How a path answers.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// The bytes, or the part that is asked for.
    File(Vec<u8>),
    /// The same, but each response breaks off after so many bytes.
    Pieces(Vec<u8>, usize),
    /// The same, but nothing comes after so many bytes of the first response, and the connection stays.
    Stalls(Vec<u8>, usize),
    /// All bytes in any case, and each response but the third breaks off after so many.
    NoRanges(Vec<u8>, usize),
    /// The first bytes until so many; then the second ones, whatever version the range is asked of. With versions, or without.
    Changes(Vec<u8>, Vec<u8>, usize, bool),
    /// A status alone.
    Status(u16),
    /// This status so many times, then the bytes.
    Busy(u16, usize, Vec<u8>),
    /// Another path.
    Redirect(String),
    /// A length that no disk has room for.
    Endless,
    /// A file of so many bytes of which all but these are 0.
    Begin(Vec<u8>, u64),
    /// The bytes and so many zeros after them, without a length, whatever part is asked for.
    Unsized(Vec<u8>, usize),
}

/// A request: its path, and the range that it asks for.
struct Asked {
    path: String,
    from: Option<u64>,
    last: Option<u64>,
}

impl Asked {
    /// Whether a header is read, and not a file fetched.
    fn is_of_header(&self) -> bool {
        self.last.is_some()
    }
}

#[derive(Default)]
struct Behaviour {
    answers: HashMap<String, Answer>,
    /// In their order.
    requests: Vec<Asked>,
    tokens: Vec<Option<String>>,
}

/// A server on a port of its own. It ends with the process.
pub(crate) struct Hub {
    pub(crate) url: String,
    behaviour: Arc<Mutex<Behaviour>>,
}

impl Hub {
    pub(crate) fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let behaviour = Arc::new(Mutex::new(Behaviour::default()));
        let shared = Arc::clone(&behaviour);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let shared = Arc::clone(&shared);
                // A client that goes away is what some tests are about.
                std::thread::spawn(move || stream.and_then(|stream| answer(&stream, &shared)));
            }
        });
        Self { url, behaviour }
    }

    pub(crate) fn set(&self, path: &str, answer: Answer) {
        self.behaviour
            .lock()
            .expect("whole")
            .answers
            .insert(path.to_owned(), answer);
    }

    /// Where the requests that fetch a path began to read.
    pub(crate) fn ranges(&self, path: &str) -> Vec<Option<u64>> {
        self.requests(path, false)
    }

    /// Where the requests that read a path's header began.
    pub(crate) fn headers(&self, path: &str) -> Vec<Option<u64>> {
        self.requests(path, true)
    }

    fn requests(&self, path: &str, of_header: bool) -> Vec<Option<u64>> {
        let behaviour = self.behaviour.lock().expect("whole");
        let of_path = behaviour.requests.iter().filter(|asked| asked.path == path);
        let wanted = of_path.filter(|asked| asked.is_of_header() == of_header);
        wanted.map(|asked| asked.from).collect()
    }

    /// The authorization of each request.
    pub(crate) fn tokens(&self) -> Vec<Option<String>> {
        self.behaviour.lock().expect("whole").tokens.clone()
    }
}

fn answer(stream: &TcpStream, shared: &Mutex<Behaviour>) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let (mut range, mut last, mut token) = (None, None, None);
    for line in lines {
        let line = line?;
        match line.split_once(": ") {
            Some((name, value)) if name.eq_ignore_ascii_case("range") => {
                let (from, to) = value
                    .strip_prefix("bytes=")
                    .and_then(|range| range.split_once('-'))
                    .unwrap_or_default();
                (range, last) = (from.parse::<u64>().ok(), to.parse::<u64>().ok());
            }
            Some((name, value)) if name.eq_ignore_ascii_case("authorization") => token = Some(value.to_owned()),
            Some(_) => {}
            None => break,
        }
    }
    let (answer, count) = {
        let mut behaviour = shared.lock().expect("whole");
        behaviour.requests.push(Asked {
            path: path.clone(),
            from: range,
            last,
        });
        behaviour.tokens.push(token);
        let fetches = behaviour.requests.iter().filter(|asked| !asked.is_of_header());
        let count = fetches.filter(|asked| asked.path == path).count();
        (
            behaviour.answers.get(&path).cloned().unwrap_or(Answer::Status(404)),
            count,
        )
    };
    let mut out = stream;
    let head = |out: &mut &TcpStream, status: u16, more: &str, length: u64| {
        write!(
            out,
            "HTTP/1.1 {status} Status\r\n{more}Content-Length: {length}\r\nConnection: close\r\n\r\n"
        )
    };
    let part = |out: &mut &TcpStream, bytes: &[u8], most: usize, version: &str| {
        let from = (range.unwrap_or(0) as usize).min(bytes.len());
        let rest = &bytes[from..];
        let more = format!(
            "{version}Accept-Ranges: bytes\r\nContent-Range: bytes {from}-{}/{}\r\n",
            bytes.len() - 1,
            bytes.len()
        );
        head(out, if range.is_some() { 206 } else { 200 }, &more, rest.len() as u64)?;
        out.write_all(&rest[..most.min(rest.len())])
    };
    match answer {
        Answer::File(bytes) => part(&mut out, &bytes, usize::MAX, ""),
        Answer::Pieces(bytes, most) => part(&mut out, &bytes, most, ""),
        Answer::Stalls(bytes, most) if count == 1 && last.is_none() => {
            part(&mut out, &bytes, most, "")?;
            // Until the client goes away.
            std::io::copy(&mut out, &mut std::io::sink()).map(drop)
        }
        Answer::Stalls(bytes, _) => part(&mut out, &bytes, usize::MAX, ""),
        Answer::Changes(first, second, most, has_versions) => {
            let version = |number| match has_versions {
                true => format!("ETag: \"{number}\"\r\n"),
                false => String::new(),
            };
            match count {
                1 => part(&mut out, &first, most, &version(1)),
                _ => part(&mut out, &second, usize::MAX, &version(2)),
            }
        }
        Answer::NoRanges(bytes, most) => {
            head(&mut out, 200, "", bytes.len() as u64)?;
            out.write_all(&bytes[..if count < 3 { most } else { bytes.len() }])
        }
        Answer::Status(status) => head(&mut out, status, "", 0),
        Answer::Busy(status, times, _) if count <= times => head(&mut out, status, "", 0),
        Answer::Busy(_, _, bytes) => part(&mut out, &bytes, usize::MAX, ""),
        Answer::Redirect(to) => head(&mut out, 302, &format!("Location: {to}\r\n"), 0),
        Answer::Begin(bytes, whole) => {
            let from = range.unwrap_or(0).min(whole);
            let to = last.unwrap_or(u64::MAX).min(whole - 1);
            head(
                &mut out,
                206,
                &format!("Content-Range: bytes {from}-{to}/{whole}\r\n"),
                to + 1 - from,
            )?;
            let there = bytes.get(from as usize..).unwrap_or(&[]);
            let zeros = std::iter::repeat(&0);
            let part: Vec<u8> = there
                .iter()
                .chain(zeros)
                .take((to + 1 - from) as usize)
                .copied()
                .collect();
            out.write_all(&part)
        }
        Answer::Unsized(bytes, zeros) => {
            write!(out, "HTTP/1.1 200 Status\r\nConnection: close\r\n\r\n")?;
            out.write_all(&bytes)?;
            out.write_all(&vec![0; zeros])
        }
        Answer::Endless => head(&mut out, 200, "", 1 << 62),
    }
}
