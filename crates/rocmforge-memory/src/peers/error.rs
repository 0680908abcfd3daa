//! Errors of the shared ledger.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;

use rocmforge_machine::private::PrivateError;

/// Why the holdings of other processes cannot be determined. Nothing more is granted then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PeersError {
    /// The file or its directory cannot be used, or should not be trusted.
    #[error(transparent)]
    File(#[from] PrivateError),
    /// Another process has kept the file locked.
    #[error(
        "{} has been locked for {waited:?} by {}: let it run on, or end it",
        path.display(),
        holder.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}, which may be stopped"))
    )]
    Busy {
        /// The file.
        path: PathBuf,
        /// Who has it, if the kernel says.
        holder: Option<u32>,
        /// How long we have waited.
        waited: Duration,
    },
    /// The file holds something that no process of ours writes.
    #[error("{} is damaged: end the programs that use the card, then remove it", .0.display())]
    Damaged(PathBuf),
    /// The file has no room for one more process.
    #[error("{} has no room for one more process: end some that use the card", .0.display())]
    Full(PathBuf),
    /// `/proc` does not tell which process we are.
    #[error("/proc does not say which process this is ({0}): it must be mounted for several processes to share a card")]
    NoProc(ErrorKind),
    /// This process is a fork of the one that opened the card.
    #[error("the card was opened by process {0}, of which this one is a fork: open the card after the fork")]
    Forked(u32),
}
