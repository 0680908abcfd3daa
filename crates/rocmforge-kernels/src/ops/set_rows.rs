//! Rows written where indices say.

use crate::declared::{Again, Call, Declared};
use crate::{Faults, KernelResult, Kernels, KvType, geometry, reference};
use bytemuck::{Pod, Zeroable};
use rocmforge_runtime::{HipBuffer, HipStream};

pub(super) const DECLARED: &[Declared] = &[SET_ROWS_F32, SET_ROWS_F16, SET_ROWS_BF16, SET_ROWS_Q8_0];

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
        let op = self.op("set_rows");
        let RowLists { per, rows, cols, .. } = shape;
        let ([m0, m1], [l0, l1]) = (shape.matrices, shape.lists);
        let all = op.rows("matrices * per", &[m0, m1, per])?;
        let [p, r, c] = op.dims([("per", per), ("rows", rows), ("cols", cols)])?;
        let [heads, outer, inner] = op.dims([("matrices", m1), ("lists", l0), ("lists", l1)])?;
        for (whole, part) in [(m0, l0), (m1, l1)] {
            op.divides("the lists must divide the matrices", part, whole)?;
        }
        let [blocks, block_bytes] = op.kv_row(ty, "cols must be whole blocks of the type", cols)?;
        let op = op.read("src", src, &[m0, m1, per, cols])?;
        let (op, words) = match ids {
            RowIds::U32(ids) => (op.read("ids", ids, &[l0, l1, per])?, 1),
            RowIds::I64(ids) => (op.read("ids", ids, &[l0, l1, per])?, 2),
        };
        let name = match ty {
            KvType::F32 => "set_rows_f32",
            KvType::F16 => "set_rows_f16",
            KvType::Bf16 => "set_rows_bf16",
            KvType::Q8_0 => "set_rows_q8_0",
        };
        let matrices = [m0, m1, rows, blocks, block_bytes];
        op.write_bytes("dst", dst, &matrices, ty.alignment())?
            .values([all, c, p, r])
            .value(Lists {
                heads,
                outer,
                inner,
                words,
            })
            .faults(faults)?
            .run(stream, "set_rows", (name, geometry::row_tile(all, c)))
    }
}

const SET_ROWS_F32: Declared = Declared {
    name: "set_rows",
    call: |c, dims| set_rows(c, dims, KvType::F32),
    tested: &[&[1, 1, 32], &[1, 9, 64], &[2, 5, 96], &[3, 3, 1056]],
    counted: &[&[2, 64, 128]],
    moved: &[&[1, 64, 512]],
    ..Declared::NEW
};
const SET_ROWS_F16: Declared = Declared {
    call: |c, dims| set_rows(c, dims, KvType::F16),
    ..SET_ROWS_F32
};
const SET_ROWS_BF16: Declared = Declared {
    call: |c, dims| set_rows(c, dims, KvType::Bf16),
    ..SET_ROWS_F32
};
const SET_ROWS_Q8_0: Declared = Declared {
    call: |c, dims| set_rows(c, dims, KvType::Q8_0),
    again: Again::Parts,
    ..SET_ROWS_F32
};

/// Rows in another order into matrices of as many rows.
fn set_rows(c: &mut Call<'_>, dims: &[usize], ty: KvType) -> KernelResult<()> {
    let &[matrices, per, cols] = dims else { return Ok(()) };
    let n = matrices * per * cols;
    let src = c.input("src", n, -2.0..2.0)?;
    let ids = c.words("ids", (0..per as u32).rev().collect())?;
    let dst = c.output_bytes("dst", ty.byte_len(n).unwrap_or(0))?;
    let word = c.fault_word()?;
    let shape = RowLists {
        matrices: [1, matrices],
        lists: [1, 1],
        per,
        rows: per,
        cols,
    };
    let faults = Faults { word: &word, tag: 0 };
    c.kernels
        .set_rows(c.stream, ty, &src, RowIds::U32(&ids), &dst, shape, faults)?;
    c.expect_typed("dst", ty, 0.0, |c| {
        // Row i of each matrix lies at its last but i.
        let matrices = c.f32("src").chunks(per * cols);
        let rows = matrices.flat_map(|matrix| matrix.chunks(cols).rev().flatten().copied().collect::<Vec<f32>>());
        reference::kv_rounded(ty, &rows.collect::<Vec<f32>>())
    });
    Ok(())
}
