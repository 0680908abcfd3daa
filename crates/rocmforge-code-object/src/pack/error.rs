//! Errors of pack files: why one is not read.

use std::path::PathBuf;

/// Why a pack file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PackError {
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// zstd does not accept the frame.
    #[error("the pack is not a readable zstd frame: {0}")]
    Zstd(#[from] std::io::Error),
    /// More than any honest pack has.
    #[error("{what} of the pack would be more than {limit} bytes")]
    TooLarge {
        /// The file or its contents.
        what: &'static str,
        /// The limit in bytes.
        limit: u64,
    },
    /// The layout is not that of a pack.
    #[error("the {part} of the pack is malformed at byte {offset}: expected {expected}")]
    Malformed {
        /// The header or the contents.
        part: &'static str,
        /// Offset in it.
        offset: usize,
        /// What was expected there.
        expected: &'static str,
    },
    /// The frame unpacks to another size than the header says.
    #[error("the pack unpacks to {}{found} bytes, its header says {expected}", if *more { "more than " } else { "" })]
    Size {
        /// Bytes by the header.
        expected: usize,
        /// Bytes that were unpacked.
        found: usize,
        /// Whether there are more, which were not unpacked.
        more: bool,
    },
    /// The contents are not those that the header was written for.
    #[error("the pack's contents have SHA-256 {found}, its header says {expected}")]
    Hash {
        /// By the header, in hexadecimal digits.
        expected: String,
        /// Of the contents.
        found: String,
    },
    /// The pack is stored as what differs from another one, which is not there.
    #[error("the pack for {target} is stored as what differs from that of {near}, which is not there")]
    NoNear {
        /// What the pack is for.
        target: String,
        /// The target of the absent one, or its name.
        near: String,
    },
    /// Packs need each other in a circle, or over too many steps.
    #[error("the pack needs another, and that another, over more than {limit} steps")]
    Chain {
        /// The most steps.
        limit: u32,
    },
    /// A pack for another target than its place says.
    #[error("the pack is for {found}, its place is that of one for {expected}")]
    Target {
        /// By its place.
        expected: String,
        /// By its header.
        found: String,
    },
    /// Two packs have the same object.
    #[error("two packs for {target} have {object}")]
    Twice {
        /// What they are for.
        target: String,
        /// The object's name.
        object: String,
    },
    /// A folder without a pack.
    #[error("{}: there is no pack", path.display())]
    Empty {
        /// The folder.
        path: PathBuf,
    },
}
