//! Reports for machines: the fields of [`Report`](crate::Report) as JSON, with the feature `serde`.
//!
//! The schema, every key always there, `null` where there is nothing to say:
//!
//! ```json
//! {
//!   "kind": "lds_race", "tool": "racecheck", "title": "race in LDS: two accesses that nothing orders",
//!   "message": "write and read by two waves of a workgroup, no barrier between them",
//!   "api": "kernel", "call": 7, "stream": 1, "kernel": "reduce", "pc": "0x1a40",
//!   "access": "write", "address": "0x10", "size": 4, "count": 32, "instructions": 1, "stopped": false,
//!   "workgroup": [0, 0, 0], "wave": 1, "lane": 0,
//!   "frames": [{ "function": "reduce", "file": "reduce.hip", "line": 14, "column": 9 }],
//!   "allocation": { "label": "x", "site": "src/model.rs:71:20", "address": "0x800000000000", "size": 256,
//!                   "allocated_by": 3, "freed_by": null },
//!   "other": { "api": "kernel", "call": 7, "stream": 1, "kernel": "reduce", "pc": "0x1a58", "access": "read",
//!              "workgroup": [0, 0, 0], "wave": 0, "lane": 0, "frames": [] }
//! }
//! ```
//!
//! `kind` is the name of a [`ReportKind`] in snake case. Addresses and program counters are hexadecimal text: JSON
//! numbers lose bits above 2^53. `frames` start with the innermost inlined function; the last
//! ones are those of its callers.

use rocmforge_amdgcn::Frame;
use serde::ser::{Serialize, Serializer};
use std::sync::Arc;

/// A text, if there is one.
pub(crate) fn text<S: Serializer>(text: &Option<Arc<str>>, serializer: S) -> Result<S::Ok, S::Error> {
    text.as_deref().serialize(serializer)
}

/// An address.
pub(crate) fn hex<S: Serializer>(value: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{value:#x}"))
}

/// A program counter, if there is one.
pub(crate) fn hex_or_null<S: Serializer>(value: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
    value.map(|value| format!("{value:#x}")).serialize(serializer)
}

/// Frames, whose type is in another crate.
pub(crate) fn frames<S: Serializer>(frames: &[Frame], serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(serde::Serialize)]
    struct View<'a> {
        function: &'a str,
        file: &'a str,
        line: u32,
        column: u32,
    }
    serializer.collect_seq(frames.iter().map(|frame| View {
        function: &frame.function,
        file: &frame.file,
        line: frame.line,
        column: frame.column,
    }))
}
