//! Facts of operations: what LLVM's descriptions of their encodings say, and the tables of what they do not, put together by operation.

use super::classes::{Target, registers};
use super::llvm::piped;
use super::{Error, Row, known};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The program that prints LLVM's descriptions, compiled against LLVM's library.
pub(crate) struct Describer {
    program: PathBuf,
    _folder: tempfile::TempDir,
}

impl Describer {
    /// Compiles it with the compiler and the library that `llvm-config` names.
    pub(crate) fn build(llvm_config: &Path) -> Result<Self, Error> {
        let ask = |option: &str| -> Result<String, Error> {
            let output = Command::new(llvm_config).arg(option).output();
            let output = output.map_err(|source| start(llvm_config, source))?;
            Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
        };
        let (include, library, tools) = (ask("--includedir")?, ask("--libdir")?, ask("--bindir")?);
        let folder = tempfile::tempdir().map_err(|source| start(Path::new("a temporary folder"), source))?;
        let program = folder.path().join("facts");
        let compiler = Path::new(&tools).join("clang++");
        let mut command = Command::new(&compiler);
        command
            .args(["-x", "c++", "-std=c++17", "-fno-rtti", "-w"])
            .args(["-I", &include, "-L", &library])
            .arg(format!("-Wl,-rpath,{library}"))
            .args(["-", "-lLLVM", "-o"])
            .arg(&program)
            .stderr(Stdio::piped());
        let output = piped(&mut command, include_bytes!("facts.cpp"))?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr);
            return Err(Error::Shape(format!(
                "cannot compile against LLVM's headers (package llvm-19-dev): {text}"
            )));
        }
        Ok(Self {
            program,
            _folder: folder,
        })
    }

    /// One answer an instruction.
    pub(crate) fn describe(&self, target: Target, instructions: &[Vec<u32>]) -> Result<Vec<Description>, Error> {
        let mut input = String::new();
        for words in instructions {
            for byte in words.iter().flat_map(|word| word.to_le_bytes()) {
                let _ = write!(input, "{byte:02x} ");
            }
            input.push('\n');
        }
        let output = piped(Command::new(&self.program).arg(target.name()), input.as_bytes())?;
        let text = String::from_utf8_lossy(&output.stdout);
        let answers: Vec<Description> = text.lines().map(Description::parse).collect();
        if answers.len() != instructions.len() {
            return Err(Error::Shape(format!(
                "LLVM described {} of {} instructions",
                answers.len(),
                instructions.len()
            )));
        }
        Ok(answers)
    }
}

fn start(tool: &Path, source: std::io::Error) -> Error {
    Error::Start {
        tool: tool.display().to_string(),
        source,
    }
}

/// Registers that an operation uses without naming them: the bits of `Registers` of `rocmforge-isa`.
const SCC: u32 = 1;
const VCC: u32 = 2;
const EXEC: u32 = 4;
const M0: u32 = 8;
const MODE: u32 = 16;
const DST: u32 = 32;
const SRC: u32 = 64;
pub(crate) const REGISTERS: [(&str, u32); 7] = [
    ("SCC", SCC),
    ("VCC", VCC),
    ("EXEC", EXEC),
    ("M0", M0),
    ("MODE", MODE),
    ("DST", DST),
    ("SRC", SRC),
];

/// `SIInstrFlags` of LLVM 19: bits of the flags of an instruction.
mod flag {
    pub(super) const SALU: u64 = 1 << 0;
    pub(super) const VALU: u64 = 1 << 1;
    pub(super) const SOPP: u64 = 1 << 6;
    pub(super) const TRANS: u64 = 1 << 16;
    pub(super) const MUBUF: u64 = 1 << 17;
    pub(super) const SMEM: u64 = 1 << 19;
    /// MIMG, VIMAGE, VSAMPLE.
    pub(super) const IMAGE: u64 = 7 << 20;
    pub(super) const FLAT: u64 = 1 << 24;
    pub(super) const DS: u64 = 1 << 25;
    pub(super) const PACKED: u64 = 1 << 49;
    pub(super) const DOT: u64 = 1 << 55;
    pub(super) const ATOMIC: u64 = 3 << 57;
    pub(super) const WMMA: u64 = 1 << 59;
    /// The old destination is a source that is not read: a part of it stays.
    pub(super) const TIED_SOURCE_NOT_READ: u64 = 1 << 60;
    pub(super) const SWMMAC: u64 = 1 << 63;
}

/// What LLVM says of one encoding of an operation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Description {
    reads: u32,
    writes: u32,
    /// Sources that are the old value of a destination.
    tied: u32,
    /// The first operand is a source.
    pub(crate) source: bool,
    scalar: bool,
    load: bool,
    store: bool,
    branch: bool,
    conditional: bool,
    call: bool,
    ends: bool,
    flags: u64,
    /// `AMDGPU::OperandType` of each source, and of what modifies it; `None` for registers.
    pub(crate) kinds: Vec<Option<u32>>,
}

impl Description {
    fn parse(line: &str) -> Self {
        let mut description = Self::default();
        for word in line.split_whitespace() {
            match word.split_once(':').unwrap_or((word, "")) {
                ("reads", register) => description.reads |= bit(register),
                ("writes", register) => description.writes |= bit(register),
                ("flags", hex) => description.flags = u64::from_str_radix(hex, 16).unwrap_or_default(),
                ("kind", number) => description.kinds.push(number.parse().ok()),
                ("tied", _) => description.tied += 1,
                ("source", _) => description.source = true,
                ("scalar", _) => description.scalar = true,
                ("load", _) => description.load = true,
                ("store", _) => description.store = true,
                ("branch", _) => description.branch = true,
                ("conditional", _) => description.conditional = true,
                ("call", _) => description.call = true,
                ("return", _) => description.ends = true,
                _ => {}
            }
        }
        description
    }

    fn has(&self, flags: u64) -> bool {
        self.flags & flags != 0
    }
}

/// The bit of a register; 0 for those that a program cannot see.
fn bit(register: &str) -> u32 {
    let name = register.trim_end_matches("_LO");
    let known = REGISTERS.iter().find(|(known, _)| *known == name);
    known.map_or(0, |&(_, bit)| bit)
}

/// Facts of an operation, as names of the variants of `rocmforge-isa`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) unit: &'static str,
    pub(crate) memory: &'static str,
    /// What it makes of memory, if it changes it in one step.
    pub(crate) atomic: &'static str,
    pub(crate) flow: &'static str,
    pub(crate) reads: u32,
    pub(crate) writes: u32,
    /// Kind of the old value that an atomic gives back.
    pub(crate) returned: &'static str,
    pub(crate) element: &'static str,
    /// Bytes that its offsets count.
    pub(crate) offset_unit: u32,
    pub(crate) lanes: &'static str,
    pub(crate) relative: &'static str,
    pub(crate) op_sel: &'static str,
    pub(crate) dependence: &'static str,
    /// The source that is a literal behind the instruction.
    pub(crate) literal: Option<usize>,
    pub(crate) scalar_result: bool,
    pub(crate) two_offsets: bool,
    pub(crate) saves_exec: bool,
    /// A part of the destination stays as it was.
    pub(crate) keeps_rest: bool,
    pub(crate) waits: bool,
    pub(crate) by_lane: bool,
}

impl Facts {
    /// Names of the marks of `rocmforge-isa` that it has.
    pub(crate) fn marks(&self) -> String {
        let all = [
            ("SCALAR_RESULT", self.scalar_result),
            ("SAVES_EXEC", self.saves_exec),
            ("KEEPS_REST", self.keeps_rest),
            ("WAITS", self.waits),
            ("BY_LANE", self.by_lane),
            ("TWO_OFFSETS", self.two_offsets),
            ("LITERAL_1", self.literal == Some(1)),
            ("LITERAL_2", self.literal == Some(2)),
        ];
        let names: Vec<&str> = all.iter().filter(|(_, has)| *has).map(|&(name, _)| name).collect();
        if names.is_empty() {
            "NO".to_owned()
        } else {
            names.join(" | ")
        }
    }
}

/// Registers as constants of `Registers`.
pub(crate) fn registers_text(bits: u32) -> String {
    let names = REGISTERS.iter().filter(|(_, bit)| bits & bit != 0);
    let names: Vec<&str> = names.map(|&(name, _)| name).collect();
    if names.is_empty() {
        "NO".to_owned()
    } else {
        names.join(" | ")
    }
}

/// Operations that keep or change the old value of their destination, which LLVM's descriptions of encodings have lost.
const LOST_TIES: &[&str] = &[
    "s_cmov_b32",
    "s_cmov_b64",
    "s_cmovk_i32",
    "s_bitset0_b32",
    "s_bitset0_b64",
    "s_bitset1_b32",
    "s_bitset1_b64",
    "v_pk_fmac_f16",
];

/// Words of a mnemonic that tell what an atomic stores, which LLVM's descriptions do not; all others compute.
const STORED: &[(&str, &str)] = &[
    ("swap", "Swap"),
    ("storexchg", "Swap"),
    ("cmpswap", "CompareAndSwap"),
    ("cmpstore", "CompareAndSwap"),
];

/// What an atomic makes of memory.
fn atomic(row: &Row) -> Result<&'static str, Error> {
    let mut words = row.mnemonic.split('_');
    let stored = words.find_map(|word| STORED.iter().find(|(known, _)| *known == word));
    let atomic = stored.map_or("Compute", |(_, atomic)| *atomic);
    // Vector memory has both values in one operand, twice as wide as the one that is given back.
    let pair = match (row.types.src[1], row.returned) {
        _ if row.class.name == "DS" => return Ok(atomic),
        ("B64" | "I64" | "F64", "B32") | ("B128", "B64") => true,
        _ => false,
    };
    // The text of a buffer atomic does not tell what it gives back.
    if row.class.name != "BUFFER" && pair != (atomic == "CompareAndSwap") {
        return Err(Error::Shape(format!("{} does not look like {atomic}", row.mnemonic)));
    }
    Ok(atomic)
}

/// Facts of one row.
fn of_row(row: &Row, description: &Description) -> Result<Facts, Error> {
    let d = description;
    let memory_access = d.has(flag::SMEM | flag::FLAT | flag::DS | flag::MUBUF | flag::IMAGE);
    let unit = match () {
        () if d.has(flag::SWMMAC) => "SparseMatrix",
        () if d.has(flag::WMMA) => "Matrix",
        () if d.has(flag::DOT) => "Dot",
        () if d.has(flag::TRANS) => "Transcendental",
        () if d.has(flag::VALU) => "Vector",
        () if d.has(flag::SMEM) => "ScalarMemory",
        () if d.has(flag::DS) => "Lds",
        () if d.has(flag::FLAT | flag::MUBUF | flag::IMAGE) => "VectorMemory",
        () if d.has(flag::SALU) => "Scalar",
        // Lane reads and writes, moves and waits have neither bit.
        () if matches!(row.class.name, "VOP1" | "VOP2" | "VOPC" | "VOP3" | "VOP3P") => "Vector",
        () if matches!(row.class.name, "SOP1" | "SOP2" | "SOPC" | "SOPK" | "SOPP") => "Scalar",
        () => {
            return Err(Error::Shape(format!(
                "LLVM does not say what executes {}",
                row.mnemonic
            )));
        }
    };
    let memory = match (d.load, d.store) {
        _ if !memory_access => "None",
        // Global wave sync has counters of its own and touches no memory.
        _ if row.class.name == "GWS" => "None",
        // LLVM calls stores to LDS atomics without a result.
        (true, _) if d.has(flag::ATOMIC) => "Atomic",
        (true, true) if d.has(flag::SMEM) => "Prefetch",
        (true, true) => "Exchange",
        (true, false) => "Load",
        (false, true) => "Store",
        (false, false) => "None",
    };
    let atomic = match memory {
        "Atomic" | "Exchange" => atomic(row)?,
        _ => "None",
    };
    let flow = match () {
        () if d.ends => "End",
        () if d.call => "Call",
        () if d.conditional => "ConditionalBranch",
        () if d.branch && d.has(flag::SOPP) => "Branch",
        () if d.branch => "Jump",
        () => "Next",
    };
    // Where a wider encoding is tied, it only keeps a part of the old value.
    let accumulates = d.tied != 0 && matches!(row.class.name, "VOP1" | "VOP2" | "SOP2" | "SOPK") || d.has(flag::SWMMAC);
    let lost = LOST_TIES.contains(&row.mnemonic.as_str());
    let old = if accumulates || lost { DST } else { 0 };
    // Both destinations of an exchange have a source that is the old value of the other.
    let exchanged = if d.tied > 1 { SRC } else { 0 };
    Ok(Facts {
        unit,
        memory,
        atomic,
        flow,
        reads: d.reads | old,
        writes: d.writes | exchanged,
        returned: if memory == "Atomic" { row.returned } else { "None" },
        scalar_result: d.scalar && matches!(row.class.name, "VOP1" | "VOP3") && row.types.sdst != "Mask",
        keeps_rest: memory != "Exchange" && (d.tied != 0 || d.has(flag::TIED_SOURCE_NOT_READ)),
        literal: row.literal,
        two_offsets: row.two_offsets,
        op_sel: if row.class.name == "VOP3P" && !d.has(flag::PACKED) {
            "Mixed"
        } else {
            "Halves"
        },
        // The rest is that of all encodings: see `complete`.
        element: "None",
        offset_unit: 1,
        lanes: "Own",
        relative: "None",
        dependence: "All",
        saves_exec: false,
        waits: false,
        by_lane: false,
    })
}

impl Facts {
    /// Adds what the tables say.
    fn complete(&mut self, name: &str) -> Result<(), Error> {
        // What stays of an old destination that decides about the new one is no rest.
        self.keeps_rest &= self.reads & DST == 0;
        if matches!(self.memory, "Load" | "Store") {
            self.element = known::element(name)?;
            let keeps = self.memory == "Load" && known::keeps_half(self.element);
            if keeps != self.keeps_rest && self.element != "Format" {
                return Err(Error::Shape(format!(
                    "LLVM does not say of {name} what its element {} says",
                    self.element
                )));
            }
        }
        let calculates = matches!(self.unit, "Scalar" | "Vector");
        let relative = calculates && self.reads & M0 != 0;
        let saves = self.unit == "Scalar" && self.writes & EXEC != 0;
        let arithmetic: &[&str] = if self.memory == "None" {
            known::DEPENDENCE_WORDS
        } else {
            &[]
        };
        let op_sel: &[&str] = if self.unit == "Vector" {
            known::OP_SEL_WORDS
        } else {
            &[]
        };
        let unit = known::find(known::OFFSET_UNITS, &[], self.two_offsets, name, "units of offsets")?;
        self.offset_unit = unit.unwrap_or(1);
        let lanes = known::find(known::LANES, known::LANE_WORDS, false, name, "lanes")?;
        let matrix = matches!(self.unit, "Matrix" | "SparseMatrix");
        self.lanes = lanes.unwrap_or(if matrix { "Others" } else { "Own" });
        let relative = known::find(known::RELATIVE, &[], relative, name, "relative registers")?;
        self.relative = relative.unwrap_or("None");
        let op_sel = known::find(known::OP_SEL, op_sel, false, name, "bits of op_sel")?;
        self.op_sel = op_sel.unwrap_or(self.op_sel);
        let dependence = known::find(known::DEPENDENCE, arithmetic, false, name, "dependences")?;
        self.dependence = dependence.unwrap_or("All");
        let saves = known::find(known::SAVES_EXEC, &[], saves, name, "old values of exec")?;
        self.saves_exec = saves.unwrap_or(false);
        let waits = known::find(known::WAITS, known::WAIT_WORDS, false, name, "waits")?;
        self.waits = waits.unwrap_or(false);
        let by_lane = known::find(known::BY_LANE, known::BY_LANE_WORDS, false, name, "addresses by lane")?;
        self.by_lane = by_lane.unwrap_or(false);
        Ok(())
    }
}

/// Facts of all operations, from all their rows: `vcc` counts only where each encoding uses it, since some have a field for
/// it, and so does the old destination.
pub(crate) fn of_all(rows: &[(Row, Description)]) -> Result<BTreeMap<String, Facts>, Error> {
    let mut all: BTreeMap<String, Facts> = BTreeMap::new();
    for (row, description) in rows.iter().filter(|(row, _)| !row.class.name.starts_with("VOPD")) {
        let facts = of_row(row, description)?;
        let Some(merged) = all.get_mut(&row.mnemonic) else {
            all.insert(row.mnemonic.clone(), facts);
            continue;
        };
        let long = matches!(row.class.name, "VOP3");
        let tied = if long { merged.reads & DST } else { facts.reads & DST };
        merged.reads = (merged.reads | facts.reads) & !(VCC | DST) | merged.reads & facts.reads & VCC | tied;
        merged.keeps_rest |= facts.keeps_rest;
        merged.literal = merged.literal.or(facts.literal);
        merged.two_offsets |= facts.two_offsets;
        merged.writes = (merged.writes | facts.writes) & !VCC | merged.writes & facts.writes & VCC;
        if (merged.unit, merged.memory, merged.flow, merged.returned)
            != (facts.unit, facts.memory, facts.flow, facts.returned)
            || (merged.atomic, merged.op_sel, merged.scalar_result) != (facts.atomic, facts.op_sel, facts.scalar_result)
        {
            return Err(Error::Shape(format!(
                "encodings of {} disagree: {merged:?}, {facts:?}",
                row.mnemonic
            )));
        }
    }
    // A buffer atomic has one field for its data and what it gives back, so its text does not tell; the same atomic on a global
    // address does.
    let operation = |name: &String| Some(name.strip_prefix("global_atomic_")?.to_owned());
    let global = all
        .iter()
        .filter_map(|(name, facts)| Some((operation(name)?, facts.returned)));
    for (operation, returned) in global.collect::<Vec<_>>() {
        if let Some(facts) = all.get_mut(&format!("buffer_atomic_{operation}")) {
            facts.returned = returned;
        }
    }
    let unclear = |facts: &Facts| facts.memory == "Atomic" && facts.unit == "VectorMemory" && facts.returned == "None";
    if let Some((name, _)) = all.iter().find(|(_, facts)| unclear(facts)) {
        return Err(Error::Shape(format!("nothing tells what {name} gives back")));
    }
    for (name, facts) in &mut all {
        facts.complete(name)?;
    }
    known::check(&all)?;
    for (name, like) in super::NEWER {
        let facts = all.get(like).cloned();
        let facts = facts.ok_or_else(|| Error::Shape(format!("there is no {like}, which {name} is like")))?;
        all.insert(name.to_owned(), facts);
    }
    Ok(all)
}

/// Registers of the value that an atomic gives back, from the text of the form that does.
pub(crate) fn returned(text: &str) -> &'static str {
    match registers(text).first() {
        Some(&('v', _, 1)) => "B32",
        Some(&('v', _, 2)) => "B64",
        _ => "None",
    }
}
