//! Functions of one element, of two elements of which the second operand repeats, and gated linear units.

use super::unary::{GluKind, Unary};
use crate::check::Check;
use crate::{KernelResult, Kernels, geometry};
use bytemuck::{Pod, Zeroable};
use rocmforge_runtime::{HipBuffer, HipStream, LaunchArgs};

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
        let args = self.unary("map", x, y)?.value(number).values([a, b]);
        // SAFETY: `unary` checked both lengths against n and that they coincide or are apart.
        unsafe { self.launch(stream, "elementwise", "map", geometry::flat(x.len()), args) }
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
        let check = Check("binary");
        if shape == part {
            let args = self.binary(check.0, ("a", a), ("b", b), y)?.value(f as u32);
            check.len("y", y, &shape)?;
            // SAFETY: `binary` checked all lengths against n, and that y coincides with or is apart from each operand.
            return unsafe { self.launch(stream, "elementwise", "binary", geometry::flat(y.len()), args) };
        }
        let rows = check.rows("rows", &shape[..3])?;
        let cols = check.dim("cols", shape[3])?;
        let mut m = [0; 4];
        for (m, (&part, &whole)) in m.iter_mut().zip(part.iter().zip(&shape)) {
            *m = check.dim("a dimension of b", part)?;
            check.divides("the dimensions of b must divide those of a", part, whole)?;
        }
        check.len("a", a, &shape)?;
        check.input("b", b, &part, ("y", y))?;
        check.len("y", y, &shape)?;
        check.in_place(("y", y), ("a", a))?;
        let n = [check.dim("dimension 1", shape[1])?, check.dim("dimension 2", shape[2])?];
        let args = LaunchArgs::new().buffer(a).buffer(b).out(y).values([rows, cols]);
        let args = args.value(Repeat { n, m }).value(f as u32);
        let config = geometry::row_tile(rows, cols);
        // SAFETY: lengths are those of the shapes, each of b's dimensions divides a's, aliasing is as the kernel
        // allows: checked above.
        unsafe { self.launch(stream, "elementwise", "binary_repeat", config, args) }
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
        let check = Check("glu");
        let (r, c) = (check.dim("rows", rows)?, check.dim("cols", cols)?);
        check.len("y", y, &[rows, cols])?;
        for (name, operand, stride) in [("gate", gate, gate_stride), ("up", up, up_stride)] {
            let bytes = operand.cast::<u8>()?;
            check.reach(name, (&bytes, size_of::<f32>()), &[rows, cols], &[stride as u64, 1])?;
            check.holds(
                stride >= cols,
                "rows must not overlap: stride and columns",
                stride,
                cols,
            )?;
            if stride == cols {
                check.in_place(("y", y), (name, operand))?;
            } else {
                check.disjoint(("y", y), (name, operand))?;
            }
        }
        let args = LaunchArgs::new().buffer(gate).buffer(up).out(y).values([r, c]);
        let args = args.values([gate_stride as u64, up_stride as u64]).value(f as u32);
        // SAFETY: both strides stay inside of their buffers, aliasing is as the kernel allows: checked above.
        unsafe { self.launch(stream, "elementwise", "glu", geometry::row_tile(r, c), args) }
    }
}
