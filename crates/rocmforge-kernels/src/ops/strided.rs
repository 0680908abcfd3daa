//! Copies between tensors with any strides, of one type or from one float type to another.

use super::cast::quarters;
use crate::declared::{Again, Call, Declared};
use crate::{FloatType, KernelError, KernelResult, Kernels, geometry, reference};
use bytemuck::{Pod, Zeroable};
use rocmforge_runtime::{HipBuffer, HipStream};

/// An element of a strided copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Element {
    /// So many bytes that are only moved: 1, 2, 4 or 8.
    Bytes(usize),
    /// A float.
    Float(FloatType),
}

impl Element {
    /// Bytes of an element, and its alignment.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Float(ty) => ty.bytes(),
        }
    }
}

/// Dimensions of a copy, outermost first. Distances are in elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StridedCopy {
    /// Elements of the destination.
    pub shape: [usize; 4],
    /// Elements of the source; they divide the destination's, and repeat.
    pub source: [usize; 4],
    /// Between neighbours of the source.
    pub from: [usize; 4],
    /// Between neighbours of the destination.
    pub to: [usize; 4],
}

/// `Strided` of strided.hip.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Strided {
    n: [u32; 4],
    wrap: [u32; 4],
    from: [u64; 4],
    to: [u64; 4],
}

impl Kernels {
    /// Copies every element of a shape from `x` to `y`, each with strides of its own, in the same type or from one
    /// float type to another (to the nearest, ties to even). What lies between the elements of `y` is not touched. The
    /// copy is element by element in the row-major order of the destination: neighbours in its last dimension are
    /// written together.
    ///
    /// # Errors
    ///
    /// Strides that lead outside of a buffer, or make two elements of `y` share a place; a source that does not divide
    /// the shape; types that no kernel has; an address that is no multiple of its element; overlap; more than 2^32
    /// elements; a dimension of 0.
    pub fn copy_strided(
        &self,
        stream: &HipStream,
        (from, x): (Element, &HipBuffer<u8>),
        (to, y): (Element, &HipBuffer<u8>),
        copy: StridedCopy,
    ) -> KernelResult<()> {
        let op = self.op("copy_strided");
        let name = kernel(from, to).ok_or(op.mismatch(
            "no kernel copies elements of these types; their bytes",
            from.bytes(),
            to.bytes(),
        ))?;
        let total = op.rows("elements", &copy.shape)?;
        let wide = |strides: [usize; 4]| strides.map(|stride| stride as u64);
        let [mut n, mut wrap] = [[0; 4]; 2];
        for d in 0..4 {
            n[d] = op.dim("a dimension", copy.shape[d])?;
            wrap[d] = op.dim("a dimension of the source", copy.source[d])?;
            op.divides(
                "the source's dimensions must divide the destination's",
                copy.source[d],
                copy.shape[d],
            )?;
        }
        let op = op
            .read_elements("x", (x, from.bytes()), wide(copy.from), copy.source)?
            .write_elements("y", (y, to.bytes()), wide(copy.to), copy.shape)?;
        // Sufficient: from the smallest stride up, each is beyond everything below it.
        let mut dims: Vec<(usize, usize)> = copy.to.into_iter().zip(copy.shape).filter(|dim| dim.1 > 1).collect();
        dims.sort_unstable();
        let mut extent = 1usize;
        for (stride, size) in dims {
            if stride < extent {
                return Err(KernelError::SelfOverlap {
                    op: op.check().0,
                    operand: "y",
                    strides: wide(copy.to).to_vec(),
                    shape: copy.shape.to_vec(),
                });
            }
            extent += (size - 1) * stride; // within the buffer, as checked above
        }
        op.value(total)
            .value(Strided {
                n,
                wrap,
                from: wide(copy.from),
                to: wide(copy.to),
            })
            .run(stream, "strided", (name, geometry::flat(total.into())))
    }
}

fn kernel(from: Element, to: Element) -> Option<&'static str> {
    use FloatType::{Bf16, F16, F32};
    if let (Element::Float(from), Element::Float(to)) = (from, to) {
        let cast = match (from, to) {
            (F32, F16) => "strided_f32_f16",
            (F32, Bf16) => "strided_f32_bf16",
            (F16, F32) => "strided_f16_f32",
            (F16, Bf16) => "strided_f16_bf16",
            (Bf16, F32) => "strided_bf16_f32",
            (Bf16, F16) => "strided_bf16_f16",
            (F32, F32) => "strided_b4",
            (F16, F16) | (Bf16, Bf16) => "strided_b2",
        };
        return Some(cast);
    }
    match (from, to) {
        (Element::Bytes(1), Element::Bytes(1)) => Some("strided_b1"),
        (Element::Bytes(2), Element::Bytes(2)) => Some("strided_b2"),
        (Element::Bytes(4), Element::Bytes(4)) => Some("strided_b4"),
        (Element::Bytes(8), Element::Bytes(8)) => Some("strided_b8"),
        _ => None,
    }
}

/// A declaration of copies from one type to another.
macro_rules! strided {
    ($($name:ident: $from:expr, $to:expr, $again:ident;)+) => {
        pub(super) const DECLARED: &[Declared] = &[$($name),+];
        $(const $name: Declared = Declared {
            name: "copy_strided",
            call: |c, dims| copy(c, dims, [$from, $to]),
            tested: &[&[1, 1, 1], &[3, 5, 31], &[2, 9, 65], &[8, 3, 33]],
            counted: &[&[8, 64, 32]],
            moved: &[&[8, 64, 64]],
            again: Again::$again,
            ..Declared::NEW
        };)+
    };
}

strided! {
    F32_F16: Element::Float(FloatType::F32), Element::Float(FloatType::F16), Narrow;
    F32_BF16: Element::Float(FloatType::F32), Element::Float(FloatType::Bf16), Narrow;
    F16_F32: Element::Float(FloatType::F16), Element::Float(FloatType::F32), Narrow;
    F16_BF16: Element::Float(FloatType::F16), Element::Float(FloatType::Bf16), Narrow;
    BF16_F32: Element::Float(FloatType::Bf16), Element::Float(FloatType::F32), Narrow;
    BF16_F16: Element::Float(FloatType::Bf16), Element::Float(FloatType::F16), Narrow;
    B1: Element::Bytes(1), Element::Bytes(1), Narrow;
    B2: Element::Bytes(2), Element::Bytes(2), Narrow;
    B4: Element::Bytes(4), Element::Bytes(4), No;
    B8: Element::Bytes(8), Element::Bytes(8), No;
}

/// `[rows, heads, cols]` to `[heads, rows, cols]`.
fn copy(c: &mut Call<'_>, dims: &[usize], [from, to]: [Element; 2]) -> KernelResult<()> {
    let &[heads, rows, cols] = dims else { return Ok(()) };
    let n = heads * rows * cols;
    let (values, bytes): (Vec<f32>, Vec<u8>) = match from {
        Element::Float(ty) => {
            let values: Vec<f32> = (0..n).map(|at| (at % 9) as f32 / 4.0 - 1.0).collect();
            let bytes = quarters(ty, &values);
            (values, bytes)
        }
        Element::Bytes(size) => (Vec::new(), (0..n * size).map(|at| (at % 251) as u8).collect()),
    };
    let (x, y) = (c.bytes("x", bytes.clone())?, c.output_bytes("y", n * to.bytes())?);
    let copy = StridedCopy {
        shape: [1, heads, rows, cols],
        source: [1, heads, rows, cols],
        from: [0, cols, heads * cols, 1],
        to: [0, rows * cols, cols, 1],
    };
    c.kernels.copy_strided(c.stream, (from, &x), (to, &y), copy)?;
    let places = || reference::strided_places(copy).into_iter().map(|[from, _]| from);
    match to {
        Element::Float(ty) => c.expect_typed("y", ty.kv(), 0.0, |_| places().map(|at| values[at].into()).collect()),
        Element::Bytes(size) => c.expect_bytes("y", |_| {
            places().flat_map(|at| bytes[at * size..][..size].to_vec()).collect()
        }),
    }
    Ok(())
}
