//! `cargo xtask opcodes`: generates the decoder's tables by asking `llvm-mc-19` about every opcode of every encoding of
//! gfx1100 and gfx1201.
//!
//! LLVM is asked three things about each opcode number: which synthetic word disassembles at all (the *base*), what
//! happens to the text when one bit of the base is flipped (a bit that changes nothing is unused, a bit that makes the
//! word invalid must be zero), and which kinds of operand each source field takes.

use rocmforge_gpu_test::say;
use std::path::{Path, PathBuf};
use std::process::Command;

mod classes;
mod emit;
mod facts;
mod known;
mod llvm;
mod types;

use classes::{Class, Fields, KINDS, Source, Target};
use facts::{Describer, Description};

/// Options of `cargo xtask opcodes`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Compares with the committed tables instead of writing them.
    #[arg(long)]
    check: bool,
    /// Says so and succeeds where the disassembler is not installed.
    #[arg(long)]
    skip_if_absent: bool,
    /// The disassembler to ask.
    #[arg(long, default_value = "llvm-mc-19")]
    llvm_mc: PathBuf,
    /// What tells where LLVM's headers and library are.
    #[arg(long, default_value = "llvm-config-19")]
    llvm_config: PathBuf,
}

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("cannot run {tool}: {source} (install LLVM 19 or name it with --llvm-mc)")]
    Start { tool: String, source: std::io::Error },
    #[error("{0} disagrees with llvm-mc: run `cargo xtask opcodes` and read the difference")]
    Stale(String),
    #[error("cannot write {path}: {source}")]
    Write { path: String, source: std::io::Error },
    #[error("{0}")]
    Shape(String),
    #[error("rustfmt failed on the generated tables")]
    Rustfmt,
}

/// One row of the tables.
pub(crate) struct Row {
    pub(crate) class: &'static Class,
    pub(crate) code: u32,
    pub(crate) mnemonic: String,
    pub(crate) suffix: &'static str,
    pub(crate) dpp_suffix: &'static str,
    pub(crate) types: types::Types,
    /// Per source field: letters of the kinds of operand it takes.
    pub(crate) takes: [String; 3],
    pub(crate) dpp16: bool,
    pub(crate) dpp8: bool,
    /// Negation and absolute value of the two sources of a DPP16 control.
    pub(crate) dpp_modifiers: u32,
    pub(crate) zero: u128,
    pub(crate) unused: u128,
    /// Kind of the value that the form of an atomic gives back which returns one.
    pub(crate) returned: &'static str,
    /// It has two offsets of eight bits.
    pub(crate) two_offsets: bool,
    /// The source that is always a literal behind the instruction, beside fields for other sources.
    pub(crate) literal: Option<usize>,
}

const OPCODES: &str = "crates/rocmforge-isa/src/op.rs";
const TABLES: &str = "crates/rocmforge-isa/src/tables";

/// Operations that LLVM 22 emits and LLVM 19 does not know, and the one that each has its facts from; `tables/newer.rs` has
/// their encodings.
const NEWER: [(&str, &str); 1] = [("v_swap_b16", "v_swap_b32")];

/// Generates or checks the tables.
pub(crate) fn run(args: Args) -> crate::Outcome {
    for tool in [&args.llvm_mc, &args.llvm_config] {
        if args.skip_if_absent && Command::new(tool).arg("--version").output().is_err() {
            say!("SKIP opcodes: {} is not installed", tool.display());
            return Ok(());
        }
    }
    let describer = Describer::build(&args.llvm_config)?;
    let mut described = Vec::new();
    let mut files = Vec::new();
    let mut count = 0;
    for target in Target::ALL {
        let rows = sweep(&args.llvm_mc, &describer, target)?;
        count += rows.len();
        files.push((format!("{TABLES}/{}.rs", target.name()), emit::tables(target, &rows)));
        described.extend(rows);
    }
    let facts = facts::of_all(&described)?;
    files.push((OPCODES.to_owned(), emit::opcodes(&facts)));
    let root = crate::workspace_root();
    for (path, text) in files {
        let text = emit::format(&text)?;
        let file = root.join(&path);
        if args.check {
            if std::fs::read_to_string(&file).unwrap_or_default() != text {
                return Err(Error::Stale(path).into());
            }
        } else {
            std::fs::write(&file, text).map_err(|source| Error::Write { path, source })?;
        }
    }
    say!("{} operations, {count} (encoding, opcode) rows", facts.len());
    Ok(())
}

struct Found {
    class: &'static Class,
    code: u32,
    fields: Fields,
    text: String,
}

fn sweep(tool: &Path, describer: &Describer, target: Target) -> Result<Vec<(Row, Description)>, Error> {
    let bases = find_bases(tool, target)?;
    let mut questions = Vec::new();
    for base in &bases {
        let words = base.words();
        let bits = 32 * base.class.words;
        for bit in 0..bits {
            let mut flipped = words.clone();
            flipped[bit / 32] ^= 1 << (bit % 32);
            questions.push(flipped);
        }
        for (source, _) in base.class.sources.iter().enumerate() {
            for kind in KINDS {
                let mut fields = base.fields.clone();
                fields.source[source] = kind.code;
                let mut words = base.class.encode(base.code, &fields);
                // An operation with a literal of its own shares it with the source.
                if kind.letter != 'l' || base.fields.extra.is_empty() {
                    words.extend(kind.extra);
                }
                questions.push(words);
            }
        }
        for bit in DPP_MODIFIERS {
            questions.push(base.with_dpp(bit));
        }
    }
    let mut answers = llvm::disassemble(tool, target, &questions)?.into_iter();
    let mut rows = Vec::new();
    let words: Vec<Vec<u32>> = bases.iter().map(Found::words).collect();
    let descriptions = describer.describe(target, &words)?;
    for (base, description) in bases.into_iter().zip(descriptions) {
        let bits = 32 * base.class.words;
        let mut row = base.row()?;
        for bit in 0..bits {
            let answer = answers.next().expect("one answer a question");
            row.two_offsets |= answer.as_ref().is_some_and(|text| text.contains("offset1:"));
            if base.class.return_bit(target) == Some(bit) {
                row.returned = facts::returned(answer.as_deref().unwrap_or(&base.text));
            }
            if base.class.operand_mask(&base.text, &base.fields) >> bit & 1 == 1 {
                continue;
            }
            match answer {
                None => row.zero |= 1 << bit,
                Some(text) if text == base.text => row.unused |= 1 << bit,
                Some(_) => {}
            }
        }
        for (source, field) in base.class.sources.iter().enumerate() {
            for kind in KINDS {
                let answer = answers.next().expect("one answer a question");
                let Some(text) = answer.filter(|text| text.contains(kind.shows)) else {
                    continue;
                };
                match kind.letter {
                    'd' if source == 0 => (row.dpp16, row.dpp_suffix) = (true, base_mnemonic(&text).1),
                    'e' if source == 0 => row.dpp8 = true,
                    'd' | 'e' => {}
                    letter if field.kind == Source::Any || letter != 'v' => row.takes[source].push(letter),
                    _ => {}
                }
            }
        }
        for (index, _) in DPP_MODIFIERS.enumerate() {
            let answer = answers.next().expect("one answer a question");
            row.dpp_modifiers |= u32::from(answer.is_some_and(|text| text.contains("quad_perm"))) << index;
        }
        row.types.reads_first(&description, base.class);
        let agree = row.types.agree(&description, base.class, &row.mnemonic);
        agree.map_err(Error::Shape)?;
        rows.push((row, description));
    }
    Ok(rows)
}

/// The richest synthetic word of each opcode that disassembles.
fn find_bases(tool: &Path, target: Target) -> Result<Vec<Found>, Error> {
    let mut questions = Vec::new();
    let mut asked = Vec::new();
    for class in target.classes() {
        for code in class.codes() {
            for fields in (class.candidates)() {
                questions.push(class.encode(code, &fields));
                asked.push((class, code, fields));
            }
        }
    }
    let mut found: Vec<Found> = Vec::new();
    for ((class, code, fields), answer) in asked.into_iter().zip(llvm::disassemble(tool, target, &questions)?) {
        let Some(text) = answer else { continue };
        let same = |last: &Found| std::ptr::eq(last.class, class) && last.code == code;
        if found.last().is_some_and(same) || class.refuses(&text) {
            continue;
        }
        found.push(Found {
            class,
            code,
            fields,
            text,
        });
    }
    Ok(found)
}

/// Bits of a DPP16 control that modify sources.
const DPP_MODIFIERS: std::ops::Range<u32> = 20..24;

impl Found {
    fn words(&self) -> Vec<u32> {
        self.class.encode(self.code, &self.fields)
    }

    /// The base with a DPP16 control that has `bit` set in the place of its first source.
    fn with_dpp(&self, bit: u32) -> Vec<u32> {
        let mut fields = self.fields.clone();
        if let Some(source) = fields.source.first_mut() {
            *source = 250;
        }
        let mut words = self.class.encode(self.code, &fields);
        words.push(0xff00_e405 | 1 << bit);
        words
    }

    fn row(&self) -> Result<Row, Error> {
        let (mnemonic, suffix) = base_mnemonic(self.class.pick(&self.text));
        let literal = self.literal();
        let types = types::of(
            self.class,
            &mnemonic,
            self.class.pick(&self.text),
            &self.fields,
            literal,
        )
        .map_err(|why| Error::Shape(format!("{} {:#x}: `{}`: {why}", self.class.name, self.code, self.text)))?;
        Ok(Row {
            class: self.class,
            code: self.code,
            mnemonic,
            suffix,
            dpp_suffix: "",
            types,
            takes: Default::default(),
            dpp16: false,
            dpp8: false,
            dpp_modifiers: 0,
            zero: 0,
            unused: 0,
            returned: "None",
            two_offsets: false,
            literal,
        })
    }

    /// The source that the literal behind an instruction with no other form is, beside fields for other sources.
    fn literal(&self) -> Option<usize> {
        let &[literal] = &self.fields.extra[..] else {
            return None;
        };
        if self.class.sources.is_empty() {
            return None;
        }
        let shown = format!("{literal:#x}");
        let text = self.class.pick(&self.text);
        let mut words = text.split([' ', ',']).filter(|word| !word.is_empty());
        let operand = words.position(|word| word == shown)?;
        // Behind mnemonic and destination. What has one source has no choice.
        operand.checked_sub(2).filter(|&source| source != 0)
    }
}

/// Splits `v_add_f32_e64_dpp` into `v_add_f32` and `_e64_dpp`.
fn base_mnemonic(text: &str) -> (String, &'static str) {
    let word = text.split_whitespace().next().unwrap_or_default();
    for suffix in ["_e64_dpp", "_dpp", "_e32", "_e64"] {
        if let Some(base) = word.strip_suffix(suffix) {
            return (base.replace("v_dual_", "v_"), suffix);
        }
    }
    (word.replace("v_dual_", "v_"), "")
}
