//! Launch geometries, as `kernels/README.md` names them.

use rocmforge_runtime::LaunchConfig;

const ROW_BLOCK: u32 = 256;
const ROWS_PER_BLOCK: u32 = 8;
const ROW_COLS: u32 = 1024;
const FLAT_TILE: u64 = 1024;
const GEMM_TILE: u32 = 64;
/// `RF_MASKED_BLOCKS` of `kernels/softmax.hip`.
const QUERY_BLOCKS: u32 = 65535;

/// Up to this many columns 32 lanes do a row; beyond, a block of 256 threads.
const SHORT_ROW: u32 = 1024;

/// The last block may be partial.
pub(crate) fn config(grid: [u32; 3], threads: u32) -> LaunchConfig {
    LaunchConfig {
        grid,
        block: [threads, 1, 1],
        dynamic_lds: 0,
    }
}

/// Flat arrays: 1024 elements to a block. More blocks than a grid can have saturate, and the launch is refused.
pub(crate) fn flat(n: u64) -> LaunchConfig {
    let blocks = n.div_ceil(FLAT_TILE);
    config([u32::try_from(blocks).unwrap_or(u32::MAX), 1, 1], 256)
}

/// Rows times columns, element by element.
pub(crate) fn row_tile(rows: u32, cols: u32) -> LaunchConfig {
    config([rows.div_ceil(ROWS_PER_BLOCK), cols.div_ceil(ROW_COLS), 1], ROW_BLOCK)
}

/// A block to 1024 columns of a row.
pub(crate) fn parts_of_rows(rows: u32, cols: u32) -> LaunchConfig {
    config([rows, cols.div_ceil(ROW_COLS), 1], ROW_BLOCK)
}

/// 32 lanes to a row.
pub(crate) fn rows(rows: u32) -> LaunchConfig {
    config([rows.div_ceil(ROWS_PER_BLOCK), 1, 1], ROW_BLOCK)
}

/// One of two kernels by row length: 32 lanes to a row, or a block.
pub(crate) fn by_row(n: u32, cols: u32, short: &'static str, long: &'static str) -> (&'static str, LaunchConfig) {
    if cols <= SHORT_ROW {
        (short, rows(n))
    } else {
        (long, config([n, 1, 1], ROW_BLOCK))
    }
}

/// The same for `planes` of `queries` rows, one query of all planes after the other: planes along x, blocks of queries along y and,
/// beyond what every device takes there, z.
pub(crate) fn by_query(
    planes: u32,
    queries: u32,
    cols: u32,
    short: &'static str,
    long: &'static str,
) -> (&'static str, LaunchConfig) {
    let (name, blocks) = if cols <= SHORT_ROW {
        (short, queries.div_ceil(ROWS_PER_BLOCK))
    } else {
        (long, queries)
    };
    let grid = [planes, blocks.min(QUERY_BLOCKS), blocks.div_ceil(QUERY_BLOCKS)];
    (name, config(grid, ROW_BLOCK))
}

/// 64 x 64 tiles of a matrix product.
pub(crate) fn gemm(m: u32, n: u32, batch: u32) -> LaunchConfig {
    config([n.div_ceil(GEMM_TILE), m.div_ceil(GEMM_TILE), batch], 128)
}
