// The f32 matrix product shared by matmul, QK^T and the weighted sum of V: C[m, n] = alpha * A[m, k] B (+ bias[n]).
//
// A block of 128 threads makes a 64 x 64 tile of C; 16 columns of A and 16 rows of B at a time pass through LDS, stored k-major so
// that a thread reads its 4 rows and 8 columns as three 16-byte loads for 32 multiply-adds. The next pair of tiles is fetched
// into registers while the current one is used. Rows and columns beyond the edge repeat the last one (always readable) and are
// not stored; only k beyond the edge has to become 0.
#pragma once
#include "rf.h"

#define RF_GEMM_BLOCK 128
#define RF_GEMM_TILE 64
#define RF_GEMM_K 16

struct Gemm {
    u32 m, n, k;
    u32 lda, ldb, ldc; // distance between rows, in elements; the launcher keeps 64 of them below 2^30
    float alpha;
};

template <bool B_TRANSPOSED, bool BIAS>
RF_DEVICE void rf_gemm(const float *__restrict__ a, const float *__restrict__ b, const float *__restrict__ bias, float *__restrict__ c,
                       Gemm g) {
    RF_SHARED float a_tile[RF_GEMM_K][RF_GEMM_TILE + 4];
    RF_SHARED float b_tile[RF_GEMM_K][RF_GEMM_TILE + 4];
    u32 tid = rf_thread();
    u32 n0 = rf_block_x() * RF_GEMM_TILE;
    u32 m0 = rf_block_y() * RF_GEMM_TILE;

    // Element i of this thread's share of a tile: along k within a row of A (and of a transposed B), along n within a row of B.
    u32 ak = tid % 16, am = tid / 16;
    u32 bk = B_TRANSPOSED ? tid % 16 : tid / 64, bn = B_TRANSPOSED ? tid / 16 : tid % 64;
    u32 a_row[8], b_row[8];
    const float *a_base = a + (u64)m0 * g.lda;
    const float *b_base = B_TRANSPOSED ? b + (u64)n0 * g.ldb : b + n0;
    u32 b_col = rf_min(bn, g.n - 1 - n0);
#pragma unroll
    for (u32 i = 0; i < 8; ++i) {
        a_row[i] = rf_min(am + 8 * i, g.m - 1 - m0) * g.lda;
        b_row[i] = rf_min(bn + 8 * i, g.n - 1 - n0) * g.ldb;
    }

    float a_next[8], b_next[8];
    auto fetch = [&](u32 k0) {
        bool a_in = k0 + ak < g.k;
        u32 a_at = a_in ? k0 + ak : g.k - 1;
#pragma unroll
        for (u32 i = 0; i < 8; ++i) {
            float v = a_base[a_row[i] + a_at];
            a_next[i] = a_in ? v : 0.0f;
        }
#pragma unroll
        for (u32 i = 0; i < 8; ++i) {
            u32 k = B_TRANSPOSED ? k0 + bk : k0 + bk + 2 * i;
            bool in = k < g.k;
            u32 at = in ? k : g.k - 1;
            float v = B_TRANSPOSED ? b_base[b_row[i] + at] : b_base[(u64)at * g.ldb + b_col];
            b_next[i] = in ? v : 0.0f;
        }
    };

    u32 ty = tid / 8, tx = tid % 8;
    f4 acc[4][2] = {};
    fetch(0);
    for (u32 k0 = 0; k0 < g.k; k0 += RF_GEMM_K) {
        rf_barrier(); // everybody has used the previous tiles
#pragma unroll
        for (u32 i = 0; i < 8; ++i) {
            a_tile[ak][am + 8 * i] = a_next[i];
            if (B_TRANSPOSED) b_tile[bk][bn + 8 * i] = b_next[i];
            else b_tile[bk + 2 * i][bn] = b_next[i];
        }
        rf_barrier();
        if (k0 + RF_GEMM_K < g.k) fetch(k0 + RF_GEMM_K);
#pragma unroll 4
        for (u32 k = 0; k < RF_GEMM_K; ++k) {
            f4 x = *(const f4_lds *)&a_tile[k][ty * 4];
            f4 y0 = *(const f4_lds *)&b_tile[k][tx * 4];
            f4 y1 = *(const f4_lds *)&b_tile[k][32 + tx * 4];
#pragma unroll
            for (u32 i = 0; i < 4; ++i) {
                acc[i][0] += x[i] * y0;
                acc[i][1] += x[i] * y1;
            }
        }
    }

#pragma unroll
    for (u32 half = 0; half < 2; ++half) {
        u32 col = n0 + half * 32 + tx * 4;
        u32 count = rf_left4(col, g.n);
        f4 add = BIAS ? rf_load4(bias + col, count) : rf_splat(0.0f);
#pragma unroll
        for (u32 i = 0; i < 4; ++i) {
            u32 row = m0 + ty * 4 + i;
            if (row < g.m) rf_store4(c + (u64)row * g.ldc + col, acc[i][half] * g.alpha + add, count);
        }
    }
}
