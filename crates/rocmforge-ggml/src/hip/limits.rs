//! Limits: dimensions that are more than the grid of one launch, or a kernel, counts.

use super::products::is_one_matrix;
use super::rows::four;
use crate::{Attention, DType, Op, PagedAttention, Rope, TensorDesc};
use rocmforge_kernels::{FLASH_MAX_HEAD_DIM, MAX_DIM};

/// Blocks along the second and the third dimension of a grid.
const GRID: usize = 65_535;
/// Blocks of 256 threads along the first: an axis has up to 2^32 - 1 threads.
const BLOCKS: usize = u32::MAX as usize / 256;
/// Rows of which eight are a block.
const TEAM_ROWS: usize = 8 * BLOCKS;
/// Columns that 32 threads take; of longer rows each is a block.
const SHORT_ROW: usize = 1024;
/// Columns of which 1024 are a block along the second dimension.
const TILED_COLS: usize = 1024 * GRID;
/// Rows of a product, of which 64 are a block along the second dimension.
const TILED_ROWS: usize = 64 * GRID;
/// Columns of a product's operands, whose distances within a tile are counted in 32 bits.
const MATRIX_COLS: usize = (1 << 24) - 1;

fn at_most(what: &str, value: usize, limit: usize) -> Result<(), String> {
    if value <= limit {
        return Ok(());
    }
    Err(format!("{what}: {value}, and a launch takes {limit}"))
}

/// For dimensions of which an output with elements may have none.
fn some(what: &str, value: usize, limit: usize) -> Result<(), String> {
    if value == 0 {
        return Err(format!("{what}: none"));
    }
    at_most(what, value, limit)
}

/// Rows that a kernel for rows takes, each by 32 threads or by a block.
pub(super) fn team_rows([rows, cols]: [usize; 2]) -> Result<(), String> {
    at_most("rows", rows, if cols <= SHORT_ROW { TEAM_ROWS } else { BLOCKS })
}

/// Rows and columns in tiles.
pub(super) fn tiles([rows, cols]: [usize; 2]) -> Result<(), String> {
    at_most("rows", rows, TEAM_ROWS)?;
    at_most("columns", cols, TILED_COLS)
}

/// Rows of which each is a block.
pub(super) fn block_rows([rows, _]: [usize; 2]) -> Result<(), String> {
    at_most("rows", rows, BLOCKS)
}

/// Rows of which eight are a block, however long.
pub(super) fn norm_rows([rows, _]: [usize; 2]) -> Result<(), String> {
    at_most("rows", rows, TEAM_ROWS)
}

/// The copy of a matrix by tiles; other copies have no limits.
pub(super) fn transpose(op: &Op, first: &TensorDesc, output: &TensorDesc) -> Result<(), String> {
    let by_tiles = first.dtype == DType::F32 && first.is_contiguous() && output.is_contiguous();
    if *op != Op::Transpose || !by_tiles {
        return Ok(());
    }
    let [outer, heads, rows, cols] = four(&first.shape);
    at_most("matrices", outer * heads, GRID)?;
    at_most("rows", rows, 32 * GRID)?;
    at_most("columns", cols, 32 * BLOCKS)
}

pub(super) fn mul_mat_id(inputs: &[&TensorDesc]) -> Result<(), String> {
    some("experts", inputs[1].shape[0], MAX_DIM)?;
    at_most("pairs", inputs[2].element_count(), BLOCKS)?;
    at_most("rows of an expert", inputs[1].shape[2], 32 * GRID)?;
    at_most("columns", inputs[1].shape[1], MATRIX_COLS)
}

pub(super) fn attention(a: Attention, inputs: &[&TensorDesc]) -> Result<(), String> {
    let (first, keys) = (inputs[0], inputs[1].shape[1]);
    at_most("a batch", first.shape[0], GRID)?;
    at_most("heads", a.heads, GRID)?;
    at_most("queries", first.shape[1], i32::MAX as usize)?;
    let most = if inputs.len() > 3 {
        MATRIX_COLS
    } else {
        i32::MAX as usize
    };
    some("keys", keys, most)?;
    at_most("elements of a token", first.shape[2], MATRIX_COLS)?;
    if a.head_dim > FLASH_MAX_HEAD_DIM {
        // Scores in memory: a plane for each head.
        at_most("batches times heads", first.shape[0] * a.heads, GRID)?;
        at_most("queries", first.shape[1], TILED_ROWS)?;
        some("keys", keys, MATRIX_COLS)?;
        team_rows([first.shape[0] * a.heads * first.shape[1], keys])?;
    }
    Ok(())
}

pub(super) fn flash_attn_ext(inputs: &[&TensorDesc]) -> Result<(), String> {
    if inputs[1].shape[2] == 0 {
        return Ok(());
    }
    at_most("a batch", inputs[0].shape[0], GRID)?;
    at_most("heads", inputs[0].shape[1], GRID)?;
    at_most("queries", inputs[0].shape[2], BLOCKS)
}

pub(super) fn paged_attention(a: PagedAttention, inputs: &[&TensorDesc]) -> Result<(), String> {
    some("slots", inputs[1].shape[0], MAX_DIM)?;
    some("blocks of sequences", inputs[3].element_count(), MAX_DIM)?;
    at_most("tokens", inputs[0].shape[0], BLOCKS)?;
    at_most("heads", a.heads, GRID)?;
    at_most("tokens of a block", a.block_size, 256)
}

pub(super) fn mean_pool(x: &TensorDesc) -> Result<(), String> {
    at_most("a batch", x.shape[0], GRID)?;
    some("tokens", x.shape[1], MAX_DIM)
}

/// Rows of a table of which there must be one.
pub(super) fn rows_of(table: &TensorDesc) -> Result<(), String> {
    some("rows of a table", four(&table.shape)[2], MAX_DIM)
}

/// Heads that are turned by positions in a table.
pub(super) fn heads(rope: Rope, [rows, _]: [usize; 2]) -> Result<(), String> {
    at_most("heads", rows, TEAM_ROWS)?;
    if rope.n_dims == 0 {
        return Ok(());
    }
    some("positions", rope.max_position, MAX_DIM)
}

pub(super) fn mul_mat(a: &TensorDesc, b: &TensorDesc) -> Result<(), String> {
    let [outer, heads, m, k] = four(&a.shape);
    let [_, _, _, n] = four(&b.shape);
    at_most("columns", k, MATRIX_COLS)?;
    at_most("columns", n, MATRIX_COLS)?;
    if is_one_matrix(a, b) {
        at_most("rows", outer * heads * m, TILED_ROWS)
    } else if b.dtype.is_quantized() {
        // A launch for each of the right, for all rows that share it.
        at_most("rows", heads * m, TILED_ROWS)
    } else {
        at_most("rows", m, TILED_ROWS)?;
        at_most("matrices", outer * heads, GRID)
    }
}
