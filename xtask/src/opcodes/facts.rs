//! Facts of operations: what LLVM's descriptions of their encodings say, put together by operation.

use super::classes::{Target, registers};
use super::llvm::piped;
use super::{Error, Row};
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
pub(crate) const REGISTERS: [(&str, u32); 6] = [
    ("SCC", SCC),
    ("VCC", VCC),
    ("EXEC", EXEC),
    ("M0", M0),
    ("MODE", MODE),
    ("DST", DST),
];

/// `SIInstrFlags` of LLVM 19: bits of the flags of an instruction.
mod flag {
    pub(super) const SALU: u64 = 1 << 0;
    pub(super) const VALU: u64 = 1 << 1;
    pub(super) const SOPP: u64 = 1 << 6;
    pub(super) const TRANS: u64 = 1 << 16;
    pub(super) const MUBUF: u64 = 1 << 17;
    pub(super) const SMEM: u64 = 1 << 19;
    pub(super) const FLAT: u64 = 1 << 24;
    pub(super) const DS: u64 = 1 << 25;
    pub(super) const DOT: u64 = 1 << 55;
    pub(super) const ATOMIC: u64 = 3 << 57;
    pub(super) const WMMA: u64 = 1 << 59;
    pub(super) const SWMMAC: u64 = 1 << 63;
}

/// What LLVM says of one encoding of an operation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Description {
    reads: u32,
    writes: u32,
    tied: bool,
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
}

impl Description {
    fn parse(line: &str) -> Self {
        let mut description = Self::default();
        for word in line.split_whitespace() {
            match word.split_once(':').unwrap_or((word, "")) {
                ("reads", register) => description.reads |= bit(register),
                ("writes", register) => description.writes |= bit(register),
                ("flags", hex) => description.flags = u64::from_str_radix(hex, 16).unwrap_or_default(),
                ("tied", _) => description.tied = true,
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
    pub(crate) scalar_result: bool,
    pub(crate) two_offsets: bool,
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
    let memory_access = d.has(flag::SMEM | flag::FLAT | flag::DS | flag::MUBUF);
    let unit = match () {
        () if d.has(flag::SWMMAC) => "SparseMatrix",
        () if d.has(flag::WMMA) => "Matrix",
        () if d.has(flag::DOT) => "Dot",
        () if d.has(flag::TRANS) => "Transcendental",
        () if d.has(flag::VALU) => "Vector",
        () if d.has(flag::SMEM) => "ScalarMemory",
        () if d.has(flag::DS) => "Lds",
        () if d.has(flag::FLAT | flag::MUBUF) => "VectorMemory",
        () if d.has(flag::SALU) => "Scalar",
        // Lane reads and writes, moves and waits have neither bit.
        () if row.mnemonic.starts_with("v_") => "Vector",
        () => "Scalar",
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
    let accumulates = d.tied && matches!(row.class.name, "VOP1" | "VOP2" | "SOP2" | "SOPK") || d.has(flag::SWMMAC);
    let lost = LOST_TIES.contains(&row.mnemonic.as_str());
    let old = if accumulates || lost { DST } else { 0 };
    Ok(Facts {
        unit,
        memory,
        atomic,
        flow,
        reads: d.reads | old,
        writes: d.writes,
        returned: if memory == "Atomic" { row.returned } else { "None" },
        scalar_result: d.scalar && matches!(row.class.name, "VOP1" | "VOP3") && row.types.sdst != "Mask",
        two_offsets: row.two_offsets,
    })
}

/// Facts of all operations, from all their rows: `vcc` counts only where each encoding uses it, since some have a field for
/// it, and so does the old destination.
pub(crate) fn of_all(rows: &[(Row, Description)]) -> Result<BTreeMap<String, Facts>, Error> {
    let mut all: BTreeMap<String, Facts> = BTreeMap::new();
    for (row, description) in rows.iter().filter(|(row, _)| !row.class.name.starts_with("VOPD")) {
        let facts = of_row(row, description)?;
        let Some(known) = all.get_mut(&row.mnemonic) else {
            all.insert(row.mnemonic.clone(), facts);
            continue;
        };
        let long = matches!(row.class.name, "VOP3");
        let tied = if long { known.reads & DST } else { facts.reads & DST };
        known.reads = (known.reads | facts.reads) & !(VCC | DST) | known.reads & facts.reads & VCC | tied;
        known.writes = (known.writes | facts.writes) & !VCC | known.writes & facts.writes & VCC;
        if (known.unit, known.memory, known.flow, known.returned)
            != (facts.unit, facts.memory, facts.flow, facts.returned)
            || known.atomic != facts.atomic
            || known.scalar_result != facts.scalar_result
        {
            return Err(Error::Shape(format!(
                "encodings of {} disagree: {known:?}, {facts:?}",
                row.mnemonic
            )));
        }
    }
    // A buffer atomic has one field for its data and what it gives back, so its text does not tell; the same atomic on a global
    // address does.
    let global: Vec<(String, &'static str)> = all
        .iter()
        .filter_map(|(name, facts)| Some((name.strip_prefix("global_atomic_")?.to_owned(), facts.returned)))
        .collect();
    for (operation, returned) in global {
        if let Some(facts) = all.get_mut(&format!("buffer_atomic_{operation}")) {
            facts.returned = returned;
        }
    }
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
