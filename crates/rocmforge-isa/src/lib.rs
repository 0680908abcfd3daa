//! Machine code of RDNA3 (gfx1100) and RDNA4 (gfx1201): decoder, disassembler and a table of facts. Executes nothing.
//!
//! [`decode_for`] takes the words of one instruction apart; the [`Inst`] that it gives is written as LLVM writes it, and
//! [`Op::facts`] tells what the operation reads, writes and does.
//!
//! ```
//! use rocmforge_isa::{Memory, Registers, decode};
//!
//! let add = decode(&[0x8200_0201], 0)?;
//! assert_eq!(add.to_string(), "s_addc_u32 s0, s1, s2");
//! let facts = add.op.facts();
//! assert!(facts.reads.has(Registers::SCC) && facts.writes.has(Registers::SCC));
//! assert_eq!(facts.memory, Memory::None);
//! # Ok::<(), rocmforge_isa::DecodeError>(())
//! ```
//!
//! # Where things are
//! | module | subject |
//! |---|---|
//! | [`inst`] | one decoded instruction, and where each format keeps its operands |
//! | `op` | operations and their facts, generated |
//! | `tables` | opcodes of each encoding, generated |
//! | `decode`, `disasm` | from words to an instruction, from an instruction to text |

mod arch;
mod classes;
mod decode;
mod disasm;
mod facts;
pub mod inst;
mod op;
mod operand;
mod row;
mod tables;

pub use arch::{Arch, UnknownArch};
pub use decode::{DecodeError, decode, decode_for};
pub use facts::{Atomic, Dependence, Element, Facts, Flow, Lanes, Memory, OpSel, Registers, Relative, Small, Unit};
pub use inst::{Dimensions, Dpp, DppCtrl, Format, Image, Inst, MemBits, Mods};
pub use op::Op;
pub use operand::{InlineFloat, Operand, Ty, Types};
