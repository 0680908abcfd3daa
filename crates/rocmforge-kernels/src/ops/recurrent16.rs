//! Rules of recurrent layers on the matrix unit, 16 tokens of a sequence at a time: for prompts.

use super::delta_rows::{DeltaNetRows, delta_rows, rows};
use super::recurrent::{Rule, Sequences, SsmScan, States, into_slots, scan_dims, ssm_scan};
use crate::declared::Declared;
use crate::launch::Launch;
use crate::{Faults, KernelResult, Kernels, geometry};
use rocmforge_runtime::HipStream;

/// The family, and its kernel.
const FAMILY: &str = "recurrent16";

impl Kernels {
    /// The most columns of a state whose tokens are taken 16 at a time.
    pub const MAX_CHUNK_COLS: usize = 128;

    /// Whether the device has [`delta_net_rows16`](Self::delta_net_rows16) and [`ssm_scan16`](Self::ssm_scan16).
    ///
    /// # Errors
    ///
    /// The runtime's, if the device does not accept the module.
    pub fn has_recurrent16(&self) -> KernelResult<bool> {
        self.has(FAMILY, FAMILY)
    }

    /// [`delta_net_rows`](Self::delta_net_rows) with operands of products rounded to f16, for states of up to
    /// [`MAX_CHUNK_COLS`](Self::MAX_CHUNK_COLS) columns, 16 tokens of a sequence at a time. States stay in f32. Decays must not be over 1 (a `rate` over 0 makes them so):
    /// else products may overflow. A NaN or an infinity of a token is in the results of all of its 16 tokens, and in its sequence's state.
    ///
    /// # Errors
    ///
    /// As `delta_net_rows`; the device has no matrix unit for it.
    pub fn delta_net_rows16(
        &self,
        stream: &HipStream,
        operands: DeltaNetRows<'_>,
        states: States<'_>,
        sequences: Sequences<'_>,
        faults: Faults<'_>,
    ) -> KernelResult<()> {
        let op = self.op("delta_net_rows16");
        let (op, blocks) = delta_rows(op, operands, states, sequences, faults, Rule::Chunks)?;
        self.run_chunks(op, stream, blocks)
    }

    /// [`ssm_scan`](Self::ssm_scan) with operands of products rounded to f16, for one rate to a head and states of up to
    /// [`MAX_CHUNK_COLS`](Self::MAX_CHUNK_COLS) columns; decays, NaN and infinities as in [`delta_net_rows16`](Self::delta_net_rows16).
    ///
    /// # Errors
    ///
    /// As `ssm_scan`; the device has no matrix unit for it.
    pub fn ssm_scan16(
        &self,
        stream: &HipStream,
        operands: SsmScan<'_>,
        states: States<'_>,
        sequences: Sequences<'_>,
        faults: Faults<'_>,
    ) -> KernelResult<()> {
        let op = self.op("ssm_scan16");
        let ([heads, dim, cols], [tokens, _, slots]) = (states.shape, sequences.shape);
        let [groups, rates] = operands.shape;
        op.holds(rates == 1, "a head must have one rate", rates, 1)?;
        let (of, [h, gr, d, c]) = scan_dims(op.check(), operands, states, sequences, Rule::Chunks)?;
        op.dim("heads * dim", op.elements("heads * dim", &[heads, dim])?)?;
        op.dim("groups * cols", op.elements("groups * cols", &[groups, cols])?)?;
        let blocks = Rule::Chunks.blocks(op.check(), heads, d)?;
        let of_group = [tokens, groups, cols];
        let op = op
            .read("state", states.before, &[slots, heads, dim, cols])?
            .read("x", operands.x, &[tokens, heads, dim])?
            .read("b", operands.b, &of_group)?
            .read("c", operands.c, &of_group)?
            .null()
            .read("dt", operands.dt, &[tokens, heads])?
            .null()
            .read("a", operands.a, &[heads, rates])?;
        // The heads of a group are neighbours.
        let op = into_slots(op, None, sequences)?
            .write("out", operands.out, &[tokens, heads, dim], &[])?
            .write("after", states.after, &[sequences.shape[1], heads, dim, cols], &[])?
            .values([h, gr, 1, d, c])
            .values([0.0, 1.0_f32])
            .value(of)
            .faults(faults)?
            .value(0_u32);
        self.run_chunks(op, stream, [blocks, of.sequences, 1])
    }

    /// Waves have 32 lanes on some devices and 64 on others.
    fn run_chunks(&self, op: Launch<'_, '_>, stream: &HipStream, grid: [u32; 3]) -> KernelResult<()> {
        let threads = self.kernel(FAMILY, FAMILY)?.meta().max_workgroup_size;
        op.run(stream, FAMILY, (FAMILY, geometry::config(grid, threads)))
    }
}

pub(super) const DECLARED: &[Declared] = &[DELTA, DELTA_NEIGHBOURS, SCAN];

/// Tokens, sequences, heads, heads of keys, rows and columns of a state.
const DELTA: Declared = Declared {
    name: "delta_net_rows16",
    call: |c, dims| rows(c, dims, false, Rule::Chunks),
    tested: &[
        &[1, 1, 1, 1, 1, 1],
        &[16, 1, 1, 1, 16, 16],
        &[7, 2, 4, 2, 5, 33],
        &[35, 2, 2, 1, 65, 128],
        &[39, 3, 3, 3, 70, 127],
        &[100, 1, 2, 1, 16, 64],
    ],
    counted: &[&[64, 1, 4, 2, 128, 128]],
    ..Declared::NEW
};
const DELTA_NEIGHBOURS: Declared = Declared {
    call: |c, dims| rows(c, dims, true, Rule::Chunks),
    counted: &[],
    ..DELTA
};

/// Tokens, sequences, heads, groups, rows and columns of a state.
const SCAN: Declared = Declared {
    name: "ssm_scan16",
    call: |c, dims| ssm_scan(c, dims, false, Rule::Chunks),
    tested: &[
        &[1, 1, 1, 1, 1, 1],
        &[7, 2, 4, 2, 5, 16],
        &[37, 2, 2, 1, 64, 128],
        &[50, 3, 6, 3, 65, 31],
        &[66, 1, 2, 2, 9, 100],
    ],
    counted: &[&[64, 1, 4, 2, 64, 128]],
    ..Declared::NEW
};
