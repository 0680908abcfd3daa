//! Reports for machines: [`serde::Serialize`] for [`Report`], with the feature `serde`.
//!
//! The schema, every key always there, `null` where there is nothing to say:
//!
//! ```json
//! {
//!   "kind": "lds_race", "tool": "racecheck", "title": "race in LDS: two accesses that nothing orders",
//!   "message": "write and read by two waves of a workgroup, no barrier between them",
//!   "api": "kernel", "call": 7, "stream": 1, "kernel": "reduce", "pc": "0x1a40",
//!   "access": "write", "address": "0x10", "size": 4, "count": 32, "stopped": false,
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
//! numbers lose bits above 2^53. `frames` start with the innermost inlined function.

use crate::report::{AllocationInfo, AllocationState, Report, ReportKind, Side};
use rocmforge_amdgcn::Frame;
use serde::{Serialize, Serializer};

#[derive(Serialize)]
struct ReportView<'a> {
    kind: String,
    tool: String,
    title: String,
    message: &'a str,
    api: &'a str,
    call: u64,
    stream: Option<u64>,
    kernel: Option<&'a str>,
    pc: Option<String>,
    access: Option<String>,
    address: String,
    size: u64,
    count: u64,
    stopped: bool,
    workgroup: Option<[u32; 3]>,
    wave: u32,
    lane: u32,
    frames: Vec<FrameView<'a>>,
    allocation: Option<AllocationView<'a>>,
    other: Option<SideView<'a>>,
}

#[derive(Serialize)]
struct SideView<'a> {
    api: &'a str,
    call: u64,
    stream: Option<u64>,
    kernel: Option<&'a str>,
    pc: Option<String>,
    access: Option<String>,
    workgroup: Option<[u32; 3]>,
    wave: u32,
    lane: u32,
    frames: Vec<FrameView<'a>>,
}

#[derive(Serialize)]
struct FrameView<'a> {
    function: &'a str,
    file: &'a str,
    line: u32,
    column: u32,
}

#[derive(Serialize)]
struct AllocationView<'a> {
    label: Option<&'a str>,
    site: Option<&'a str>,
    address: String,
    size: u64,
    allocated_by: u64,
    freed_by: Option<u64>,
}

fn hex(value: u64) -> String {
    format!("{value:#x}")
}

fn frames(frames: &[Frame]) -> Vec<FrameView<'_>> {
    fn view(frame: &Frame) -> FrameView<'_> {
        FrameView {
            function: &frame.function,
            file: &frame.file,
            line: frame.line,
            column: frame.column,
        }
    }
    frames.iter().map(view).collect()
}

fn allocation(of: &AllocationInfo) -> AllocationView<'_> {
    AllocationView {
        label: of.label.as_deref(),
        site: of.site.as_deref(),
        address: hex(of.address),
        size: of.size,
        allocated_by: of.allocated_by,
        freed_by: match of.state {
            AllocationState::Live => None,
            AllocationState::Freed(call) => Some(call),
        },
    }
}

fn side(side: &Side) -> SideView<'_> {
    SideView {
        api: side.api,
        call: side.call,
        stream: side.stream,
        kernel: side.kernel.as_deref(),
        pc: side.pc.map(hex),
        access: side.access.map(|access| access.to_string()),
        workgroup: side.workgroup,
        wave: side.wave,
        lane: side.lane,
        frames: frames(&side.frames),
    }
}

impl ReportKind {
    /// Its name in snake case: `lds_race`.
    pub fn name(self) -> String {
        let mut name = String::new();
        for c in format!("{self:?}").chars() {
            if c.is_ascii_uppercase() && !name.is_empty() {
                name.push('_');
            }
            name.push(c.to_ascii_lowercase());
        }
        name
    }
}

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Every field by name: one that is added has to be thought of here.
        let Report {
            kind,
            api,
            call,
            stream,
            kernel,
            pc,
            address,
            size,
            access,
            frames: at,
            workgroup,
            wave,
            lane,
            count,
            stopped,
            allocation: of,
            other,
            message,
        } = self;
        ReportView {
            kind: kind.name(),
            tool: kind.tool().to_string(),
            title: kind.to_string(),
            message,
            api,
            call: *call,
            stream: *stream,
            kernel: kernel.as_deref(),
            pc: pc.map(hex),
            access: access.map(|access| access.to_string()),
            address: hex(*address),
            size: *size,
            count: *count,
            stopped: *stopped,
            workgroup: *workgroup,
            wave: *wave,
            lane: *lane,
            frames: frames(at),
            allocation: of.as_ref().map(allocation),
            other: other.as_deref().map(side),
        }
        .serialize(serializer)
    }
}
