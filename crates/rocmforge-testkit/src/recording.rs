//! Recording of compared buffers, where the supervisor asks for it (`--against`).

use parking_lot::Mutex;
use rocmforge_gpu_test::buffers::{BUFFERS_VARIABLE, Header, write};
use rocmforge_gpu_test::tolerance::Tolerance;
use std::collections::BTreeMap;
use std::panic::Location;
use std::path::Path;

/// Appends a buffer, if the supervisor asked for it.
pub(crate) fn record(site: &Location<'_>, dtype: &str, shape: &[usize], tolerance: Tolerance, data: &[u8]) {
    static SEEN: Mutex<BTreeMap<String, u64>> = Mutex::new(BTreeMap::new());
    let Some(path) = std::env::var_os(BUFFERS_VARIABLE) else {
        return;
    };
    let site = format!("{}:{}", site.file(), site.line());
    // Held while writing: a header and its bytes stay together.
    let mut seen = SEEN.lock();
    let count = seen.entry(site.clone()).or_insert(0);
    let header = Header {
        site,
        occurrence: *count,
        dtype: dtype.to_owned(),
        shape: shape.to_vec(),
        tolerance,
        bytes: data.len(),
    };
    *count += 1;
    if let Err(error) = write(Path::new(&path), &header, data) {
        panic!("cannot record a buffer in {}: {error}", path.display());
    }
}
