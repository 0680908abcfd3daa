//! Copies between tensors with any strides, of one type or from one float type to another.

use crate::check::Check;
use crate::{FloatType, KernelError, KernelResult, Kernels, geometry};
use bytemuck::{Pod, Zeroable};
use rocmforge_runtime::{HipBuffer, HipStream, LaunchArgs};

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
        let check = Check("copy_strided");
        let name = kernel(from, to).ok_or(check.mismatch(
            "no kernel copies elements of these types; their bytes",
            from.bytes(),
            to.bytes(),
        ))?;
        let total = check.rows("elements", &copy.shape)?;
        let wide = |strides: [usize; 4]| strides.map(|stride| stride as u64);
        let [mut n, mut wrap] = [[0; 4]; 2];
        for d in 0..4 {
            n[d] = check.dim("a dimension", copy.shape[d])?;
            wrap[d] = check.dim("a dimension of the source", copy.source[d])?;
            check.divides(
                "the source's dimensions must divide the destination's",
                copy.source[d],
                copy.shape[d],
            )?;
        }
        check.reach("x", (x, from.bytes()), &copy.source, &wide(copy.from))?;
        check.reach("y", (y, to.bytes()), &copy.shape, &wide(copy.to))?;
        // Sufficient: from the smallest stride up, each is beyond everything below it.
        let mut dims: Vec<(usize, usize)> = copy.to.into_iter().zip(copy.shape).filter(|dim| dim.1 > 1).collect();
        dims.sort_unstable();
        let mut extent = 1usize;
        for (stride, size) in dims {
            if stride < extent {
                return Err(KernelError::SelfOverlap {
                    op: check.0,
                    operand: "y",
                    strides: wide(copy.to).to_vec(),
                    shape: copy.shape.to_vec(),
                });
            }
            extent += (size - 1) * stride; // within the buffer, as checked above
        }
        check.aligned("x", x, from.bytes())?;
        check.aligned("y", y, to.bytes())?;
        check.disjoint(("y", y), ("x", x))?;
        let args = LaunchArgs::new().buffer(x).out(y).value(total).value(Strided {
            n,
            wrap,
            from: wide(copy.from),
            to: wide(copy.to),
        });
        // SAFETY: both strides stay inside of their buffers, elements are aligned, no place is written twice and
        // nothing overlaps: checked above.
        unsafe { self.launch(stream, "strided", name, geometry::flat(total.into()), args) }
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
