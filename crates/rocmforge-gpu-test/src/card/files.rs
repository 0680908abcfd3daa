//! Small files under `/sys` and `/proc`, and their folders.

use rocmforge_machine::sysfs::Sysfs;
use std::fs;
use std::path::Path;

/// What one of them says in a few words; `path` is relative to the root.
pub(crate) fn short_text(sysfs: &Sysfs, path: &str) -> Option<String> {
    let text = fs::read_to_string(sysfs.root().join(path)).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty() && text.len() < 200)
}

/// The number, hexadecimal, that a file has.
pub(crate) fn number(file: &Path) -> Option<u32> {
    let text = fs::read_to_string(file).ok()?;
    u32::from_str_radix(text.trim().strip_prefix("0x")?, 16).ok()
}

/// The names in a folder; none if it cannot be read.
pub(crate) fn names(folder: &Path) -> impl Iterator<Item = String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok())
}
