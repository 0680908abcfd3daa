//! Functions of one element, of two elements of which the second operand repeats, and gated linear units.

use super::unary::{GluKind, Unary};
use crate::declared::{Again, Call, Declared, LENGTHS, ROWS};
use crate::{KernelResult, Kernels, geometry, reference};
use bytemuck::{Pod, Zeroable};
use rocmforge_runtime::{HipBuffer, HipStream};

pub(super) const DECLARED: &[Declared] = &[MAP, MAP_LONG, BINARY, BINARY_ROW, GLU];

/// A function of one element, by the kernel's order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Map {
    /// One of ggml's.
    Unary(Unary),
    /// `x^2`.
    Sqr,
    /// The square root.
    Sqrt,
    /// The natural logarithm.
    Log,
    /// Sine.
    Sin,
    /// Cosine.
    Cos,
    /// `x` limited to a range; NaN stays NaN.
    Clamp {
        /// Least result.
        min: f32,
        /// Largest result.
        max: f32,
    },
    /// `x * factor + add`.
    Affine {
        /// The factor.
        factor: f32,
        /// Added to the product.
        add: f32,
    },
}

impl Map {
    /// Every function without parameters.
    pub fn plain() -> impl Iterator<Item = Self> {
        let own = [Self::Sqr, Self::Sqrt, Self::Log, Self::Sin, Self::Cos];
        Unary::ALL.into_iter().map(Self::Unary).chain(own)
    }

    /// The kernel's number of the function, and its parameters.
    fn code(self) -> (u32, [f32; 2]) {
        match self {
            Self::Unary(function) => (function as u32, [0.0; 2]),
            Self::Sqr => (21, [0.0; 2]),
            Self::Sqrt => (22, [0.0; 2]),
            Self::Log => (23, [0.0; 2]),
            Self::Sin => (24, [0.0; 2]),
            Self::Cos => (25, [0.0; 2]),
            Self::Clamp { min, max } => (26, [min, max]),
            Self::Affine { factor, add } => (27, [factor, add]),
        }
    }
}

/// A function of two elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Binary {
    /// `a + b`.
    Add = 0,
    /// `a - b`.
    Sub = 1,
    /// `a * b`.
    Mul = 2,
    /// `a / b`.
    Div = 3,
}

/// `Repeat` of elementwise.hip.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Repeat {
    n: [u32; 2],
    m: [u32; 4],
}

impl Kernels {
    /// `y = f(x)`, element by element. `y` may be `x`.
    ///
    /// # Errors
    ///
    /// Different lengths, partial overlap, no elements.
    pub fn map(&self, stream: &HipStream, f: Map, x: &HipBuffer<f32>, y: &HipBuffer<f32>) -> KernelResult<()> {
        let (number, [a, b]) = f.code();
        let n = x.len();
        let op = self.op("map");
        op.dim_to("elements", n, usize::MAX)?;
        op.read("x", x, &[n])?
            .write("y", y, &[n], &["x"])?
            .value(n as u64)
            .value(number)
            .values([a, b])
            .run(stream, "elementwise", ("map", geometry::flat(n as u64)))
    }

    /// `y = f(a, b)`, element by element, with `b` repeated to the shape of `a` and `y`: each dimension of `b` divides
    /// its one of `a`. `y` may be `a`, and `b` if that is as long.
    ///
    /// # Errors
    ///
    /// Wrong lengths, dimensions that do not divide, partial overlap, a dimension of 0.
    #[allow(clippy::too_many_arguments)] // three operands and two shapes
    pub fn binary_repeat(
        &self,
        stream: &HipStream,
        f: Binary,
        (a, shape): (&HipBuffer<f32>, [usize; 4]),
        (b, part): (&HipBuffer<f32>, [usize; 4]),
        y: &HipBuffer<f32>,
    ) -> KernelResult<()> {
        let op = self.op("binary");
        if shape == part {
            let n = y.len();
            op.dim_to("elements", n, usize::MAX)?;
            return (op.read("a", a, &shape)?)
                .read("b", b, &shape)?
                .write("y", y, &shape, &["a", "b"])?
                .value(n as u64)
                .value(f as u32)
                .run(stream, "elementwise", ("binary", geometry::flat(n as u64)));
        }
        let rows = op.rows("rows", &shape[..3])?;
        let [cols, n1, n2] = op.dims([("cols", shape[3]), ("dimension 1", shape[1]), ("dimension 2", shape[2])])?;
        let mut m = [0; 4];
        for (m, (&part, &whole)) in m.iter_mut().zip(part.iter().zip(&shape)) {
            *m = op.dim("a dimension of b", part)?;
            op.divides("the dimensions of b must divide those of a", part, whole)?;
        }
        (op.read("a", a, &shape)?.read("b", b, &part)?)
            .write("y", y, &shape, &["a"])?
            .values([rows, cols])
            .value(Repeat { n: [n1, n2], m })
            .value(f as u32)
            .run(stream, "elementwise", ("binary_repeat", geometry::row_tile(rows, cols)))
    }

    /// `y[r, c] = f(gate[r * gate_stride + c]) * up[r * up_stride + c]` for `y` `[rows, cols]`. `y` may be an operand
    /// without gaps.
    ///
    /// # Errors
    ///
    /// Strides that lead outside of an operand or are less than `cols`, partial overlap, a dimension of 0.
    #[allow(clippy::too_many_arguments)] // two operands with strides, and two dimensions
    pub fn glu(
        &self,
        stream: &HipStream,
        f: GluKind,
        (gate, gate_stride): (&HipBuffer<f32>, usize),
        (up, up_stride): (&HipBuffer<f32>, usize),
        y: &HipBuffer<f32>,
        [rows, cols]: [usize; 2],
    ) -> KernelResult<()> {
        let op = self.op("glu");
        let [r, c] = op.dims([("rows", rows), ("cols", cols)])?;
        let mut op = op;
        for (name, operand, stride) in [("gate", gate, gate_stride), ("up", up, up_stride)] {
            op = op.read_rows(name, operand, [rows, cols], stride)?;
        }
        // An operand with gaps has another place for an element than y.
        let may_be: &[&str] = match (gate_stride == cols, up_stride == cols) {
            (true, true) => &["gate", "up"],
            (true, false) => &["gate"],
            (false, true) => &["up"],
            (false, false) => &[],
        };
        op.write("y", y, &[rows, cols], may_be)?
            .values([r, c])
            .values([gate_stride as u64, up_stride as u64])
            .value(f as u32)
            .run(stream, "elementwise", ("glu", geometry::row_tile(r, c)))
    }
}

/// One of the functions that need few instructions, and one of those that need many.
const MAP: Declared = Declared {
    name: "map",
    call: |c, dims| map(c, dims, Map::Unary(Unary::Silu)),
    tested: LENGTHS,
    counted: &[&[1 << 16]],
    moved: &[&[1 << 15]],
    ..Declared::NEW
};
const MAP_LONG: Declared = Declared {
    call: |c, dims| map(c, dims, Map::Sin),
    ..MAP
};

fn map(c: &mut Call<'_>, dims: &[usize], f: Map) -> KernelResult<()> {
    let &[n] = dims else { return Ok(()) };
    let (x, y) = (c.input("x", n, -4.0..4.0)?, c.output("y", n)?);
    c.kernels.map(c.stream, f, &x, &y)?;
    c.expect("y", 1e-6, |c| reference::map(f, c.f32("x")));
    Ok(())
}

/// The second operand as long as the first.
const BINARY: Declared = Declared {
    name: "binary_repeat",
    call: |c, dims| binary(c, dims, Binary::Sub, false),
    tested: ROWS,
    counted: &[&[256, 256]],
    moved: &[&[32, 1024]],
    ..Declared::NEW
};
/// One row that repeats.
const BINARY_ROW: Declared = Declared {
    call: |c, dims| binary(c, dims, Binary::Div, true),
    again: Again::Vector,
    ..BINARY
};

fn binary(c: &mut Call<'_>, dims: &[usize], f: Binary, repeats: bool) -> KernelResult<()> {
    let &[rows, cols] = dims else { return Ok(()) };
    let (shape, part) = ([1, 1, rows, cols], [1, 1, if repeats { 1 } else { rows }, cols]);
    // No divisor is near 0.
    let (range, within) = match f {
        Binary::Div => (0.5..1.5, 3e-7),
        _ => (-1.0..1.0, 1e-7),
    };
    let a = c.input("a", rows * cols, -1.0..1.0)?;
    let b = c.input("b", part.iter().product(), range)?;
    let y = c.output("y", rows * cols)?;
    c.kernels.binary_repeat(c.stream, f, (&a, shape), (&b, part), &y)?;
    c.expect("y", within, |c| {
        reference::binary_repeat(f, (c.f32("a"), shape), (c.f32("b"), part))
    });
    Ok(())
}

const GLU: Declared = Declared {
    name: "glu",
    call: |c, dims| {
        let &[rows, cols] = dims else { return Ok(()) };
        let (gate, up) = (
            c.input("gate", rows * cols, -4.0..4.0)?,
            c.input("up", rows * cols, -2.0..2.0)?,
        );
        let y = c.output("y", rows * cols)?;
        c.kernels
            .glu(c.stream, GluKind::Reglu, (&gate, cols), (&up, cols), &y, [rows, cols])?;
        c.expect("y", 1e-6, |c| {
            reference::glu(GluKind::Reglu, c.f32("gate"), c.f32("up"))
        });
        Ok(())
    },
    tested: ROWS,
    counted: &[&[256, 256]],
    moved: &[&[32, 1024]],
    ..Declared::NEW
};
