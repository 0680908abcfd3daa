//! TLS: a certificate with its key, read from PEM files, and the handshakes of connections.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{InconsistentKeys, ServerConfig};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::files;

/// Most certificates of a chain.
const LONGEST_CHAIN: usize = 16;
/// Time in which a client that speaks no TLS may take its alert, and most bytes of it that are dropped meanwhile.
const LINGER: Duration = Duration::from_secs(1);
const MOST_UNREAD: usize = 64 << 10;

/// A certificate and its key. Clones are the same.
#[derive(Clone)]
pub struct Tls(Arc<ServerConfig>);

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

/// Why a certificate or its key is not taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// A file is no PEM.
    #[error("{} is no PEM file: {error}", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// Why.
        error: pem::Error,
    },
    /// There is no certificate.
    #[error("{} has no certificate: BEGIN CERTIFICATE is not there", .0.display())]
    NoCertificate(PathBuf),
    /// There are too many certificates.
    #[error("{} has more than {LONGEST_CHAIN} certificates: it must have that of the server and those between it and a root", .0.display())]
    LongChain(PathBuf),
    /// There is no key.
    #[error("{} has no key: BEGIN PRIVATE KEY, RSA PRIVATE KEY or EC PRIVATE KEY is not there; a key with a passphrase is not taken", .0.display())]
    NoKey(PathBuf),
    /// The key is not that of the certificate.
    #[error("the key of {} is not that of the first certificate of {}", key.display(), certificate.display())]
    Mismatch {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
    },
    /// The certificate or the key cannot be used.
    #[error("{} and {} cannot be used: {error}", certificate.display(), key.display())]
    Unusable {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
        /// Why.
        error: rustls::Error,
    },
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    files::read_small(path).map_err(|error| TlsError::File {
        path: path.to_owned(),
        error,
    })
}

fn chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let bytes = read(path)?;
    let mut chain = Vec::new();
    for certificate in CertificateDer::pem_slice_iter(&bytes) {
        let certificate = certificate.map_err(|error| TlsError::Pem {
            path: path.to_owned(),
            error,
        })?;
        if chain.len() == LONGEST_CHAIN {
            return Err(TlsError::LongChain(path.to_owned()));
        }
        chain.push(certificate);
    }
    match chain.is_empty() {
        true => Err(TlsError::NoCertificate(path.to_owned())),
        false => Ok(chain),
    }
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_slice(&read(path)?).map_err(|error| match error {
        pem::Error::NoItemsFound => TlsError::NoKey(path.to_owned()),
        error => TlsError::Pem {
            path: path.to_owned(),
            error,
        },
    })
}

/// Whether users other than the owner and the group of a file may use it.
#[cfg(unix)]
fn is_open_to_others(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|meta| meta.permissions().mode() & 0o007 != 0)
}

#[cfg(not(unix))]
fn is_open_to_others(_: &Path) -> bool {
    false
}

impl Tls {
    /// Reads PEM files: one with the server's certificate and those between it and a root, the other with the key of the first. A key that other
    /// users of the machine may read is a warning in the log.
    ///
    /// # Errors
    /// A file cannot be read or has not what it must have; the key is not that of the certificate.
    pub fn read(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let (chain, private) = (chain(certificate)?, private_key(key)?);
        if is_open_to_others(key) {
            tracing::warn!(path = %key.display(), "other users of this machine may read the key of the certificate: chmod o= takes that away");
        }
        // The one that the workspace's client uses, too.
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|versions| versions.with_no_client_auth().with_single_cert(chain, private));
        let (certificate, key) = (certificate.to_owned(), key.to_owned());
        let mut config = config.map_err(|error| match error {
            rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => TlsError::Mismatch { certificate, key },
            error => TlsError::Unusable {
                certificate,
                key,
                error,
            },
        })?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(Arc::new(config)))
    }

    /// The handshake of a connection, within a time. `None` if it fails; the connection is closed then.
    pub(crate) async fn accept<S>(&self, stream: S, time: Duration) -> Option<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let accept = TlsAcceptor::from(Arc::clone(&self.0)).accept(stream).into_fallible();
        match tokio::time::timeout(time, accept).await {
            Ok(Ok(stream)) => Some(stream),
            Ok(Err((error, stream))) => {
                tracing::debug!(%error, "no TLS");
                // What the client has sent and nobody has read would reset the connection, and our alert with it.
                let _ = tokio::time::timeout(LINGER, close(stream)).await;
                None
            }
            Err(_) => {
                tracing::debug!("a TLS handshake took too long");
                None
            }
        }
    }
}

/// Ends a connection, and reads what still comes.
async fn close(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let mut left = MOST_UNREAD;
    let mut bytes = [0; 4096];
    let _ = stream.shutdown().await;
    while let Ok(read @ 1..) = stream.read(&mut bytes).await {
        match left.checked_sub(read) {
            Some(rest) => left = rest,
            None => return,
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_key_is_open_if_others_than_its_group_may_read_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("key.pem");
        std::fs::write(&path, "").expect("written");
        for (mode, is_open) in [(0o600, false), (0o640, false), (0o644, true), (0o604, true)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("its mode");
            assert_eq!(is_open_to_others(&path), is_open, "{mode:o}");
        }
    }
}
