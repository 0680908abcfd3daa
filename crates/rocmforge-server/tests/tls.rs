//! TLS: a client of rustls, clients that speak something else or nothing, and files that are not what they must be.

mod common;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use common::app;
use rocmforge_server::{App, ChangeError, Limits, ServerOptions, Tls, TlsError};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// A certificate of `localhost` with its key, in files.
struct Certificate {
    folder: tempfile::TempDir,
    der: CertificateDer<'static>,
}

impl Certificate {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
        std::fs::write(folder.path().join("cert.pem"), made.cert.pem()).expect("written");
        std::fs::write(folder.path().join("key.pem"), made.signing_key.serialize_pem()).expect("written");
        Self {
            folder,
            der: made.cert.der().clone(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn tls(&self) -> Tls {
        Tls::read(&self.path("cert.pem"), &self.path("key.pem")).expect("it was made so")
    }

    /// A client that trusts it.
    fn client(&self, versions: &[&'static SupportedProtocolVersion]) -> TlsConnector {
        let mut roots = RootCertStore::empty();
        roots.add(self.der.clone()).expect("a root");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_protocol_versions(versions);
        let config = config.expect("versions").with_root_certificates(roots);
        let mut config = config.with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        TlsConnector::from(Arc::new(config))
    }
}

async fn start(tls: Tls, limits: Limits) -> (SocketAddr, App) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound");
    let app = app(ServerOptions {
        tls: Some(tls),
        limits,
        ..ServerOptions::default()
    });
    let of_server = app.clone();
    tokio::spawn(async move { of_server.run_on(listener, std::future::pending()).await });
    (address, app)
}

async fn connect(client: &TlsConnector, address: SocketAddr) -> std::io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from("localhost").expect("a name");
    client.connect(name, stream).await
}

const READY: &[u8] = b"GET /ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

async fn ready(client: &TlsConnector, address: SocketAddr) -> String {
    let mut stream = connect(client, address).await.expect("a handshake");
    stream.write_all(READY).await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("a whole answer");
    answer
}

#[tokio::test]
async fn clients_of_tls_1_2_and_1_3_are_answered() {
    let certificate = Certificate::new();
    let (address, _) = start(certificate.tls(), Limits::default()).await;
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let client = certificate.client(&[version]);
        let answer = ready(&client, address).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        let stream = connect(&client, address).await.expect("a handshake");
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
    }
    let stranger = Certificate::new().client(rustls::ALL_VERSIONS);
    assert!(connect(&stranger, address).await.is_err(), "another's certificate");
}

#[tokio::test]
async fn what_is_no_tls_is_answered_by_an_alert_and_a_clean_close() {
    let certificate = Certificate::new();
    let (address, _) = start(certificate.tls(), Limits::default()).await;
    let long = [READY, &[b'x'; 20_000]].concat();
    for bytes in [READY, &long, b"\r\n\r\n", &[0xff; 64]] {
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        stream.write_all(bytes).await.expect("sent");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.expect("no reset");
        // An alert of TLS has the type 21.
        assert_eq!(answer.first(), Some(&21), "{answer:?}");
        assert!(answer.len() < 16, "{answer:?}");
    }
    let answer = ready(&certificate.client(rustls::ALL_VERSIONS), address).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[tokio::test]
async fn a_handshake_that_takes_too_long_gives_its_connection_back() {
    let certificate = Certificate::new();
    let limits = Limits {
        connections: 1,
        handshake_time: Duration::from_millis(100),
        ..Limits::default()
    };
    let (address, _) = start(certificate.tls(), limits).await;
    // One says nothing, one a part of a ClientHello. Each has the only connection until its time is over.
    for bytes in [&b""[..], &[22, 3, 1, 0, 200, 1]] {
        let mut slow = TcpStream::connect(address).await.expect("it listens");
        slow.write_all(bytes).await.expect("sent");
        let answer = ready(&certificate.client(rustls::ALL_VERSIONS), address).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        let mut rest = Vec::new();
        let read = slow.read_to_end(&mut rest).await;
        assert!(rest.is_empty(), "{read:?} {rest:?}");
    }
}

#[test]
fn files_that_are_not_what_they_must_be_are_errors() {
    let (own, other) = (Certificate::new(), Certificate::new());
    let (cert, key) = (own.path("cert.pem"), own.path("key.pem"));
    let read = |cert: &Path, key: &Path| Tls::read(cert, key).expect_err("refused");
    let write = |name: &str, text: String| {
        std::fs::write(own.path(name), text).expect("written");
        own.path(name)
    };
    assert!(matches!(read(&own.path("none"), &key), TlsError::File { .. }));
    assert!(matches!(read(&cert, &own.path("none")), TlsError::File { .. }));
    assert!(matches!(read(Path::new("/dev/zero"), &key), TlsError::File { .. }));
    assert!(matches!(read(&key, &key), TlsError::NoCertificate(path) if path == key));
    assert!(matches!(read(&cert, &cert), TlsError::NoKey(path) if path == cert));
    assert!(matches!(
        read(&cert, &other.path("key.pem")),
        TlsError::Mismatch { certificate, .. } if certificate == cert
    ));
    let text = std::fs::read_to_string(&cert).expect("it is there");
    let many = write("many.pem", text.repeat(17));
    assert!(matches!(read(&many, &key), TlsError::LongChain(_)));
    let half = write("half.pem", text[..text.len() / 2].to_owned());
    let error = read(&half, &key);
    assert!(
        matches!(error, TlsError::Pem { .. } | TlsError::NoCertificate(_)),
        "{error:?}"
    );
    let empty = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let empty = write("empty.pem", empty.to_owned());
    assert!(matches!(read(&empty, &key), TlsError::Unusable { .. }));
    let locked = std::fs::read_to_string(&key)
        .expect("it is there")
        .replace("PRIVATE", "ENCRYPTED PRIVATE");
    let error = read(&cert, &write("locked.pem", locked));
    assert!(matches!(error, TlsError::NoKey(_)), "{error:?}");
    assert!(error.to_string().contains("passphrase"), "{error}");
}

#[tokio::test]
async fn another_certificate_is_for_the_next_connections() {
    let (old, new) = (Certificate::new(), Certificate::new());
    let (address, app) = start(old.tls(), Limits::default()).await;
    let (of_old, of_new) = (old.client(rustls::ALL_VERSIONS), new.client(rustls::ALL_VERSIONS));
    let mut open = connect(&of_old, address).await.expect("a handshake");
    app.set_tls(new.tls()).expect("it speaks TLS");
    assert!(connect(&of_old, address).await.is_err(), "the old one has gone");
    assert!(ready(&of_new, address).await.starts_with("HTTP/1.1 200"));
    open.write_all(READY).await.expect("sent");
    let mut answer = String::new();
    open.read_to_string(&mut answer).await.expect("a whole answer");
    assert!(
        answer.starts_with("HTTP/1.1 200"),
        "an open connection goes on: {answer}"
    );
    let plain = common::app(ServerOptions::default());
    assert_eq!(plain.set_tls(new.tls()), Err(ChangeError::NoTls));
}
