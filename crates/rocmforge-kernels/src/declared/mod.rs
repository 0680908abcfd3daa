//! Kernels as they are declared: how each is called at given dimensions, what it must give, and at which dimensions it is tested, counted and timed.
//!
//! A declaration stands beside the launcher in `src/ops`. The tests of all kernels, the bounds of counters and bytes, the benchmarks and the table in
//! `kernels/README.md` go through [`all`]: a kernel that is declared is in each of them.

mod blocks;
mod call;
mod macros;

pub use blocks::blocks;
pub(crate) use call::mixed;
pub use call::{Ask, Buffers, Call, Elements, Expected, Fresh, Values};
pub(crate) use macros::{by_weight_type, kernel};

use crate::{KernelResult, Kernels, Launched};
use parking_lot::Mutex;
use rocmforge_runtime::HipStream;
use std::sync::Arc;

/// A kernel, or the kernels of one launcher.
#[derive(Debug, Clone, Copy)]
pub struct Declared {
    /// The launcher's name.
    pub name: &'static str,
    /// Calls the launcher with operands of these dimensions, and says what it must give.
    pub call: fn(&mut Call<'_>, &[usize]) -> KernelResult<()>,
    /// Dimensions at which results are compared with the reference.
    pub tested: &'static [&'static [usize]],
    /// Dimensions of the launches in `kernels/counters.txt`.
    pub counted: &'static [&'static [usize]],
    /// Dimensions of the launches in `kernels/bytes.txt`, for kernels that memory bounds.
    pub moved: &'static [&'static [usize]],
    /// Why requests of waves ask for more than the fewest bytes.
    pub again: Again,
    /// Dimensions of the benchmark on a card, with tensors of 1 GiB where memory is the bound.
    pub timed: &'static [&'static [usize]],
    /// Its row in the table of `kernels/README.md`, of a kernel that the macro declares.
    pub row: Option<Row>,
}

/// What the table of kernels says of one, as its declaration has it.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// The file of its source.
    pub family: &'static str,
    /// Its arguments in their order, numbers with their types.
    pub arguments: &'static str,
    /// The number that is counted in 64 bits, if one is.
    pub long: &'static str,
    /// The expression of its launch, with the names of its kernels.
    pub launch: &'static str,
    /// What it computes: the launcher's documentation.
    pub computes: &'static str,
}

/// What a call gave.
#[derive(Debug)]
pub struct Ran {
    /// Its launches, among them those that [prepare](Launched::prepares) operands.
    pub launched: Vec<Launched>,
    /// What the outputs must hold; empty where it is not asked for.
    pub expected: Vec<Expected>,
    /// The fewest bytes that the kernel can move, where they are not those of all operands.
    pub moved: Option<usize>,
}

impl Declared {
    /// Nothing yet: a declaration names what it has, and takes the rest from here.
    pub(crate) const NEW: Self = Self {
        name: "",
        call: |_, _| Ok(()),
        tested: &[],
        counted: &[],
        moved: &[],
        again: Again::No,
        timed: &[],
        row: None,
    };

    /// Calls the launcher with operands from `buffers`. With `compare` it computes what the kernel must give, which is slow.
    ///
    /// # Errors
    ///
    /// The launcher's.
    pub fn run(
        &self,
        kernels: &Kernels,
        stream: &HipStream,
        buffers: &mut dyn Buffers,
        dims: &[usize],
        compare: bool,
    ) -> KernelResult<Ran> {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&seen);
        let observed = kernels.observed(move |launch| into.lock().push(launch.clone()));
        let mut call = Call::new(&observed, stream, buffers, compare);
        (self.call)(&mut call, dims)?;
        let moved = call.moved();
        let expected = call.expected();
        let launched = std::mem::take(&mut *seen.lock());
        Ok(Ran {
            launched,
            expected,
            moved,
        })
    }
}

/// Why requests ask for more than the fewest bytes. The rest comes from caches, or is the rest of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again {
    /// They do not.
    No,
    /// Each row reads the same vector.
    Vector,
    /// Heads read the same row of a mask, of a table or of keys.
    Heads,
    /// A lane has one element of less than four bytes, so a wave asks for a part of a segment.
    Narrow,
    /// A lane has one element, and pairs lie two apart or at the ends of a head, which its neighbours ask for too.
    Pairs,
    /// A lane has four weights of a block, whose other parts its neighbours read too; each wave reads the activations.
    Blocks,
    /// Parts of a few blocks are less than a segment.
    Parts,
    /// Each workgroup reads the activations, and the scales of 32 blocks are less than a segment.
    Activations,
}

/// Elements of a tensor of 1 GiB.
pub(crate) const GIB: usize = 1 << 28;

/// Lengths around the wave size and its multiples, as one dimension each.
pub(crate) const LENGTHS: &[&[usize]] = &[
    &[1],
    &[31],
    &[32],
    &[33],
    &[63],
    &[64],
    &[65],
    &[127],
    &[128],
    &[129],
    &[1023],
    &[1024],
    &[1025],
    &[4099],
];

/// Rows and columns: rows of one lane group, of one block and of many, with lengths around the wave size and where the kernel for long rows begins.
pub(crate) const ROWS: &[&[usize]] = &[
    &[11, 1],
    &[11, 31],
    &[11, 32],
    &[11, 33],
    &[11, 63],
    &[11, 64],
    &[9, 65],
    &[9, 127],
    &[8, 128],
    &[7, 129],
    &[11, 384],
    &[2, 1024],
    &[3, 1025],
    &[2, 4096],
];

/// Every declared kernel.
pub fn all() -> impl Iterator<Item = &'static Declared> {
    crate::ops::DECLARED.iter().copied().flatten()
}
