//! Rows written where indices say.

use crate::check::Check;
use crate::{Faults, KernelResult, Kernels, KvType, geometry};
use bytemuck::{Pod, Zeroable};
use rocmforge_runtime::{HipBuffer, HipStream, LaunchArgs};

/// Row ids, in lists `[lists[0], lists[1], per]`.
#[derive(Debug, Clone, Copy)]
pub enum RowIds<'a> {
    /// One word each.
    U32(&'a HipBuffer<u32>),
    /// Two words each, little endian: i64. Negative ones are out of range.
    I64(&'a HipBuffer<u64>),
}

/// The matrices that rows are written into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowLists {
    /// Matrices of the source and of the destination.
    pub matrices: [usize; 2],
    /// Lists of ids: they divide the matrices in both dimensions, and repeat.
    pub lists: [usize; 2],
    /// Rows of a matrix of the source, and ids of a list.
    pub per: usize,
    /// Rows of a matrix of the destination.
    pub rows: usize,
    /// Elements of a row.
    pub cols: usize,
}

/// `Lists` of set_rows.hip.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Lists {
    heads: u32,
    outer: u32,
    inner: u32,
    words: u32,
}

impl Kernels {
    /// Row `ids[l, i]` of matrix m of `dst` becomes row i of matrix m of `src`, in type `ty`; l is the list of m. f16 and bf16 are
    /// rounded to the nearest, ties to even, what is too large becomes infinite; q8_0 as ggml's `quantize_row_q8_0` rounds it.
    ///
    /// The ids of a list differ from one another: the row would hold either, or a part of each. One that is not below `rows` writes nothing, and
    /// is a fault at its position in the lists.
    ///
    /// # Errors
    ///
    /// Wrong lengths, rows that are not whole blocks, lists that do not divide the matrices, overlap, an address that is no multiple of its element, a
    /// dimension of 0, a tag over 4095.
    #[allow(clippy::too_many_arguments)] // operands and dimensions of one write
    pub fn set_rows(
        &self,
        stream: &HipStream,
        ty: KvType,
        src: &HipBuffer<f32>,
        ids: RowIds<'_>,
        dst: &HipBuffer<u8>,
        shape: RowLists,
        faults: Faults<'_>,
    ) -> KernelResult<()> {
        let check = Check("set_rows");
        let RowLists { per, rows, cols, .. } = shape;
        let ([m0, m1], [l0, l1]) = (shape.matrices, shape.lists);
        let all = check.rows("matrices * per", &[m0, m1, per])?;
        let [p, r, c] = check.dims([("per", per), ("rows", rows), ("cols", cols)])?;
        let heads = check.dim("matrices", m1)?;
        let (outer, inner) = (check.dim("lists", l0)?, check.dim("lists", l1)?);
        for (whole, part) in [(m0, l0), (m1, l1)] {
            check.divides("the lists must divide the matrices", part, whole)?;
        }
        check.len("src", src, &[m0, m1, per, cols])?;
        let [blocks, block_bytes] = check.kv_row(ty, "cols must be whole blocks of the type", cols)?;
        check.len("dst", dst, &[m0, m1, rows, blocks, block_bytes])?;
        check.aligned("dst", dst, ty.alignment())?;
        check.disjoint(("dst", dst), ("src", src))?;
        check.disjoint(("dst", dst), ("the fault word", faults.word))?;
        let args = LaunchArgs::new().buffer(src);
        let (args, words) = match ids {
            RowIds::U32(ids) => {
                check.len("ids", ids, &[l0, l1, per])?;
                check.disjoint(("dst", dst), ("ids", ids))?;
                (args.buffer(ids), 1)
            }
            RowIds::I64(ids) => {
                check.len("ids", ids, &[l0, l1, per])?;
                check.disjoint(("dst", dst), ("ids", ids))?;
                (args.buffer(ids), 2)
            }
        };
        let args = args.out(dst).values([all, c, p, r]).value(Lists {
            heads,
            outer,
            inner,
            words,
        });
        let args = faults.args(check, args)?;
        let name = match ty {
            KvType::F32 => "set_rows_f32",
            KvType::F16 => "set_rows_f16",
            KvType::Bf16 => "set_rows_bf16",
            KvType::Q8_0 => "set_rows_q8_0",
        };
        // SAFETY: lengths are those of the shape, dst is aligned and apart from all operands, checked above; the kernel
        // compares each id with `rows`.
        unsafe { self.launch(stream, "set_rows", name, geometry::row_tile(all, c), args) }
    }
}
