//! Time line of a process as a file that Chrome's `about:tracing` and Perfetto show: a row for each stream.
//!
//! Format: "Trace Event Format", complete events (`X`), times in microseconds of the simulated clock.

use cpp_demangle::Symbol;
use rocmforge_sim::Span;
use serde::Serialize;
use std::path::{Path, PathBuf};

#[derive(Serialize)]
struct File<'a> {
    #[serde(rename = "traceEvents")]
    events: Vec<Event<'a>>,
}

#[derive(Serialize)]
struct Event<'a> {
    name: String,
    cat: &'a str,
    ph: &'a str,
    ts: f64,
    dur: f64,
    pid: u32,
    tid: u64,
    args: Args,
}

#[derive(Serialize)]
struct Args {
    call: u64,
    bytes: u64,
    wave_instructions: u64,
}

/// Where a process writes: the first one to the file itself, others to files with their numbers before the extension.
fn path_for(path: &Path, process: u32) -> PathBuf {
    if !path.exists() {
        return path.to_owned();
    }
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!(".{process}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// Writes the time line of this process.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn write(path: &Path, spans: &[Span]) -> std::io::Result<PathBuf> {
    let process = std::process::id();
    let event = |span: &Span| {
        let name = Symbol::new(&span.name).ok().and_then(|symbol| symbol.demangle().ok());
        Event {
            name: name.unwrap_or_else(|| span.name.clone()),
            cat: if span.bytes > 0 { "memory" } else { "kernel" },
            ph: "X",
            ts: span.start.as_secs_f64() * 1e6,
            dur: span.duration.as_secs_f64() * 1e6,
            pid: process,
            tid: span.stream,
            args: Args {
                call: span.call,
                bytes: span.bytes,
                wave_instructions: span.instructions,
            },
        }
    };
    let file = File {
        events: spans.iter().map(event).collect(),
    };
    let path = path_for(path, process);
    std::fs::write(&path, serde_json::to_vec(&file)?)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn spans_become_events_of_their_stream() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.json");
        let span = Span {
            name: "_Z3addPKfS0_Pfi".to_owned(),
            bytes: 0,
            instructions: 42,
            stream: 3,
            call: 7,
            start: Duration::from_micros(10),
            duration: Duration::from_nanos(5500),
        };
        assert_eq!(write(&path, std::slice::from_ref(&span)).unwrap(), path);
        let file: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let event = &file["traceEvents"][0];
        assert_eq!(event["name"], "add(float const*, float const*, float*, int)");
        assert_eq!(
            (event["tid"].as_u64(), event["ts"].as_f64(), event["dur"].as_f64()),
            (Some(3), Some(10.0), Some(5.5))
        );
        // A second process does not write over the first.
        assert_ne!(write(&path, &[span]).unwrap(), path);
    }
}
