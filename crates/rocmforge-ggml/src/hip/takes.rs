//! Checks of operands that the kernels of several ops share: types, gaps, and dimensions that a grid counts.

use super::copies::{packed, plan};
use super::rows::four;
use crate::{DType, TensorDesc};

/// Whether kernels take some operands; else what they do not take.
pub(super) type Takes = Result<(), String>;

/// Blocks along the second and the third dimension of a grid.
pub(super) const GRID: usize = 65_535;
/// Blocks of 256 threads along the first: an axis has up to 2^32 - 1 threads.
pub(super) const BLOCKS: usize = u32::MAX as usize / 256;
/// Rows of which eight are a block.
pub(super) const TEAM_ROWS: usize = 8 * BLOCKS;
/// Columns that 32 threads take; of longer rows each is a block.
const SHORT_ROW: usize = 1024;
/// Columns of which 1024 are a block along the second dimension.
const TILED_COLS: usize = 1024 * GRID;
/// Rows of a product, of which 64 are a block along the second dimension.
pub(super) const TILED_ROWS: usize = 64 * GRID;
/// Columns of a product's operands, whose distances within a tile are counted in 32 bits.
pub(super) const MATRIX_COLS: usize = (1 << 24) - 1;

pub(super) fn rule(holds: bool, what: impl FnOnce() -> String) -> Takes {
    if holds { Ok(()) } else { Err(what()) }
}

/// An operand or result that is f32 without gaps, or is packed.
pub(super) fn float(desc: &TensorDesc) -> Takes {
    rule(desc.dtype.is_plain_float(), || desc.summary())?;
    plan(desc, &packed(&desc.shape, DType::F32), false).map(drop)
}

/// Every operand and result as f32.
pub(super) fn all_floats(inputs: &[&TensorDesc], outputs: &[&TensorDesc]) -> Takes {
    inputs.iter().chain(outputs).try_for_each(|desc| float(desc))
}

/// Indices that kernels read where they are.
pub(super) fn index(desc: &TensorDesc) -> Takes {
    let words = matches!(desc.dtype, DType::U32 | DType::I32);
    rule(words && desc.is_contiguous(), || format!("indices {}", desc.summary()))
}

pub(super) fn contiguous(desc: &TensorDesc) -> Takes {
    rule(desc.is_contiguous(), || format!("{} with gaps", desc.summary()))
}

pub(super) fn at_most(what: &str, value: usize, limit: usize) -> Takes {
    if value <= limit {
        return Ok(());
    }
    Err(format!("{what}: {value}, and a launch takes {limit}"))
}

/// For dimensions of which an output with elements may have none.
pub(super) fn some(what: &str, value: usize, limit: usize) -> Takes {
    if value == 0 {
        return Err(format!("{what}: none"));
    }
    at_most(what, value, limit)
}

/// Rows that a kernel for rows takes, each by 32 threads or by a block.
pub(super) fn team_rows([rows, cols]: [usize; 2]) -> Takes {
    at_most("rows", rows, if cols <= SHORT_ROW { TEAM_ROWS } else { BLOCKS })
}

/// Rows and columns in tiles.
pub(super) fn tiles([rows, cols]: [usize; 2]) -> Takes {
    at_most("rows", rows, TEAM_ROWS)?;
    at_most("columns", cols, TILED_COLS)
}

/// Rows of a table of which there must be one.
pub(super) fn rows_of(table: &TensorDesc) -> Takes {
    some("rows of a table", four(&table.shape)[2], rocmforge_kernels::MAX_DIM)
}
