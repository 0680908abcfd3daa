// Products of many rows with packed weights, and rows of them, as f32: the results that weights_{type} gives, bit for bit.
#include "include/fault.h"
#include "include/gemm.h"
#include "include/packed_fours.h"
#include "include/team.h"

// Packed weights [n, k] as the transposed B of a product: each thread has two neighbouring fours of row tid % 64.
template <class W> struct GemmPacked {
    const u8 *w;
    u64 blocks;
    u32 first, k; // first block of the row
    RF_DEVICE GemmPacked of(const u8 *w, u32 n, u32 k) {
        u32 row = rf_min(rf_block_x() * RF_GEMM_TILE + rf_thread() % 64, n - 1), row_blocks = k / RF_Q8_BLOCK;
        return {w, (u64)n * row_blocks, row * row_blocks, k};
    }
    __attribute__((device, always_inline)) void fetch(u32 k0, float (&next)[8]) const {
#pragma unroll
        for (u32 i = 0; i < 2; ++i) {
            u32 at = k0 + rf_thread() / 64 * 8 + 4 * i;
            f4 v = rf_splat(0.0f);
            if (at < k) v = W::four(w, blocks, first + at / RF_Q8_BLOCK, at % RF_Q8_BLOCK / 4);
#pragma unroll
            for (u32 e = 0; e < 4; ++e) next[4 * i + e] = v[e];
        }
    }
    RF_DEVICE void put(GemmTile &tile, const float (&next)[8]) {
#pragma unroll
        for (u32 i = 0; i < 8; ++i) tile[rf_thread() / 64 * 8 + i][rf_thread() % 64] = next[i];
    }
};

// y[r, :] = table[ids[r], :] of a packed table [table_rows, cols]. An id that is not below table_rows is a fault, reads nothing and gives a
// row of NaN.
template <class W>
RF_DEVICE void get_rows(const u8 *__restrict__ table, const u32 *__restrict__ ids, float *__restrict__ y, u32 rows, u32 cols,
                        u32 table_rows, u64 *__restrict__ fault, u32 tag) {
    RowTile t = RowTile::of(cols);
    if (t.row >= rows) return;
    u32 id = ids[t.row], row_blocks = cols / RF_Q8_BLOCK;
    float *out = y + (u64)t.row * cols;
    if (id >= table_rows) {
        if (t.begin == 0) rf_fault(fault, tag, t.row, id);
        for (u32 c = t.begin; c < t.end; c += 128) rf_put4(out + c, rf_splat(__builtin_nanf("")));
        return;
    }
    u64 blocks = (u64)table_rows * row_blocks;
    for (u32 c = t.begin; c < t.end; c += 128)
        rf_put4(out + c, W::four(table, blocks, id * row_blocks + c / RF_Q8_BLOCK, c % RF_Q8_BLOCK / 4));
}

#define RF_PACKED_ROWS(name, Type)                                                                                                 \
    RF_KERNEL(RF_GEMM_BLOCK)                                                                                                       \
    matmul_packed_##name(const u8 *w, const float *x, const float *bias, float *y, u32 m, u32 n, u32 k) {                          \
        rf_gemm_with(x, GemmPacked<Type>::of(w, n, k), bias, y, Gemm{m, n, k, k, k, n, 1.0f});                                     \
    }                                                                                                                              \
    RF_KERNEL(RF_ROW_BLOCK)                                                                                                        \
    get_rows_packed_##name(const u8 *table, const u32 *ids, float *y, u32 rows, u32 cols, u32 table_rows, u64 *fault, u32 tag) {   \
        get_rows<Type>(table, ids, y, rows, cols, table_rows, fault, tag);                                                         \
    }

RF_PACKED_ROWS(q4_0, FoursQ4_0)
RF_PACKED_ROWS(q4_1, FoursQ4_1)
RF_PACKED_ROWS(q5_0, FoursQ5_0)
RF_PACKED_ROWS(q5_1, FoursQ5_1)
RF_PACKED_ROWS(q8_0, FoursQ8_0)
RF_PACKED_ROWS(q4_k, FoursQ4K)
RF_PACKED_ROWS(q5_k, FoursQ5K)
RF_PACKED_ROWS(q6_k, FoursQ6K)
RF_PACKED_ROWS(q2_k, FoursQ2K)
RF_PACKED_ROWS(q3_k, FoursQ3K)
RF_PACKED_ROWS(iq4_nl, FoursIq4Nl)
RF_PACKED_ROWS(iq4_xs, FoursIq4Xs)
RF_PACKED_ROWS(mxfp4, FoursMxfp4)
