//! Gated linear units that leave rows of f16 beside their result, for the product after.

use super::half_rows::HalfRows;
use super::matvec_q8::BLOCK;
use super::unary::GluKind;
use crate::declared::{Again, Call, Declared};
use crate::{KernelResult, Kernels, geometry, reference};
use rocmforge_runtime::{HipBuffer, HipStream};

pub(super) const DECLARED: &[Declared] = &[SWIGLU, GEGLU];

const FAMILY: &str = "glu_halves";
const OP: &str = "glu_halves";
/// `RF_GLU_BLOCK` of `kernels/glu_halves.hip`.
const THREADS: u32 = 512;

impl Kernels {
    /// Whether [`glu_halves`](Self::glu_halves) has this function.
    pub const fn leaves_halves(kind: GluKind) -> bool {
        kernel_of(kind).is_some()
    }

    /// `y = f(gate) * up` `[rows, cols]`, what [`glu`](Self::glu) gives, and `y` as [`HalfRows`] in `to`, what [`half_rows`](Self::half_rows) makes of it: bit for
    /// bit, in one launch. `y` may be an operand.
    ///
    /// # Errors
    ///
    /// Wrong lengths, partial overlap, a dimension of 0, rows that are no whole blocks of 32, `to` at no multiple of 16, a function that is not
    /// [`leaves_halves`](Self::leaves_halves).
    pub fn glu_halves(
        &self,
        stream: &HipStream,
        kind: GluKind,
        [gate, up]: [&HipBuffer<f32>; 2],
        y: &HipBuffer<f32>,
        to: &HipBuffer<u8>,
        [rows, cols]: [usize; 2],
    ) -> KernelResult<()> {
        let op = self.op(OP);
        let [r, c] = op.dims([("rows", rows), ("cols", cols)])?;
        op.multiple("rounded rows must be whole blocks", cols, BLOCK)?;
        let name = kernel_of(kind);
        op.value_of("function", kind as u32 as f32, name.is_some(), "SWIGLU or GEGLU")?;
        let name = name.unwrap_or(SWIGLU.name); // there, as checked
        let halves = HalfRows::room(op.check(), to, [rows, cols])?;
        let shape = [rows, cols];
        (op.read("gate", gate, &shape)?.read("up", up, &shape)?)
            .write("y", y, &shape, &["gate", "up"])?
            .writes_later("to", to)
            .part(&halves.halves)
            .part(&halves.exponents)
            .value(c)
            .run(stream, FAMILY, (name, geometry::config([r, 1, 1], THREADS)))
    }
}

/// The kernel of a function.
const fn kernel_of(kind: GluKind) -> Option<&'static str> {
    match kind {
        GluKind::Swiglu => Some(SWIGLU.name),
        GluKind::Geglu => Some(GEGLU.name),
        GluKind::Reglu | GluKind::GegluErf | GluKind::GegluQuick => None,
    }
}

/// What lies in registers, and what does not: the last has more than 16,384 columns.
const SWIGLU: Declared = Declared {
    name: "swiglu_halves",
    call: |c, dims| gated(c, dims, GluKind::Swiglu),
    tested: &[&[1, 32], &[9, 96], &[3, 2080], &[2, 16_416]],
    counted: &[&[16, 14_336]],
    moved: &[&[16, 4096]],
    again: Again::No,
    ..Declared::NEW
};
const GEGLU: Declared = Declared {
    name: "geglu_halves",
    call: |c, dims| gated(c, dims, GluKind::Geglu),
    ..SWIGLU
};

fn gated(c: &mut Call<'_>, dims: &[usize], kind: GluKind) -> KernelResult<()> {
    let &[rows, cols] = dims else { return Ok(()) };
    let n = rows * cols;
    let (gate, up) = (c.input("gate", n, -6.0..6.0)?, c.input("up", n, -2.0..2.0)?);
    let y = c.output("y", n)?;
    let to = c.output_bytes("to", HalfRows::byte_len(rows, cols).unwrap_or(0))?;
    c.kernels
        .glu_halves(c.stream, kind, [&gate, &up], &y, &to, [rows, cols])?;
    // `to` depends on the last bit of y: tests/gpu/activation.rs compares it.
    c.expect("y", 1e-5, |c| reference::glu(kind, c.f32("gate"), c.f32("up")));
    Ok(())
}
