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

use crate::report::{AllocationInfo, AllocationState, Report, ReportKind, Side, Tool};
use rocmforge_amdgcn::Frame;
use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::{Serialize, SerializeStruct, Serializer};

fn hex(value: u64) -> String {
    format!("{value:#x}")
}

/// A frame in JSON; its type is in another crate.
#[derive(serde::Serialize)]
struct FrameView<'a> {
    function: &'a str,
    file: &'a str,
    line: u32,
    column: u32,
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

impl Serialize for AllocationInfo {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self {
            address,
            size,
            allocated_by,
            state,
            label,
            site,
        } = self;
        let freed_by = match state {
            AllocationState::Live => None,
            AllocationState::Freed(call) => Some(call),
        };
        let mut out = serializer.serialize_struct("AllocationInfo", 6)?;
        out.serialize_field("label", &label.as_deref())?;
        out.serialize_field("site", &site.as_deref())?;
        out.serialize_field("address", &hex(*address))?;
        out.serialize_field("size", size)?;
        out.serialize_field("allocated_by", allocated_by)?;
        out.serialize_field("freed_by", &freed_by)?;
        out.end()
    }
}

impl Serialize for Side {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self {
            api,
            call,
            stream,
            kernel,
            access,
            pc,
            frames: at,
            workgroup,
            wave,
            lane,
        } = self;
        let mut out = serializer.serialize_struct("Side", 10)?;
        out.serialize_field("api", api)?;
        out.serialize_field("call", call)?;
        out.serialize_field("stream", stream)?;
        out.serialize_field("kernel", kernel)?;
        out.serialize_field("pc", &pc.map(hex))?;
        out.serialize_field("access", &access.map(|access| access.to_string()))?;
        out.serialize_field("workgroup", workgroup)?;
        out.serialize_field("wave", wave)?;
        out.serialize_field("lane", lane)?;
        out.serialize_field("frames", &frames(at))?;
        out.end()
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

/// The value of a list that has a name.
fn named<'de, D: Deserializer<'de>, T: Copy>(
    deserializer: D,
    all: &[T],
    name: impl Fn(T) -> String,
) -> Result<T, D::Error> {
    let wanted = String::deserialize(deserializer)?;
    let found = all.iter().copied().find(|value| name(*value) == wanted);
    found.ok_or_else(|| D::Error::custom(format!("there is no `{wanted}`")))
}

impl Serialize for ReportKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.name())
    }
}

impl<'de> Deserialize<'de> for ReportKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        named(deserializer, &Self::ALL, Self::name)
    }
}

impl Serialize for Tool {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Tool {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        named(deserializer, &Self::ALL, |tool| tool.to_string())
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
            allocation,
            other,
            message,
        } = self;
        let mut out = serializer.serialize_struct("Report", 20)?;
        out.serialize_field("kind", kind)?;
        out.serialize_field("tool", &kind.tool())?;
        out.serialize_field("title", &kind.to_string())?;
        out.serialize_field("message", message)?;
        out.serialize_field("api", api)?;
        out.serialize_field("call", call)?;
        out.serialize_field("stream", stream)?;
        out.serialize_field("kernel", kernel)?;
        out.serialize_field("pc", &pc.map(hex))?;
        out.serialize_field("access", &access.map(|access| access.to_string()))?;
        out.serialize_field("address", &hex(*address))?;
        out.serialize_field("size", size)?;
        out.serialize_field("count", count)?;
        out.serialize_field("stopped", stopped)?;
        out.serialize_field("workgroup", workgroup)?;
        out.serialize_field("wave", wave)?;
        out.serialize_field("lane", lane)?;
        out.serialize_field("frames", &frames(at))?;
        out.serialize_field("allocation", allocation)?;
        out.serialize_field("other", &other.as_deref())?;
        out.end()
    }
}
