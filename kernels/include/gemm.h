// The matrix product in f32 shared by matmul, QK^T, the weighted sum of V and products with weights of any type:
// C[m, n] = alpha * A[m, k] B (+ bias[n], unless that is null).
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

typedef float GemmTile[RF_GEMM_K][RF_GEMM_TILE + 4];

// An operand of floats whose rows lie along k: A, and a transposed B. Element i of a thread's share of a tile is in row
// tid / 16 + 8 i, at column tid % 16 of k.
struct GemmRows {
    const float *base;
    u32 row[8];
    u32 k;
    RF_DEVICE GemmRows of(const float *p, u32 first, u32 count, u32 stride, u32 k) {
        GemmRows o;
        o.base = p + (u64)first * stride;
        o.k = k;
#pragma unroll
        for (u32 i = 0; i < 8; ++i) o.row[i] = rf_min(rf_thread() / 16 + 8 * i, count - 1 - first) * stride;
        return o;
    }
    __attribute__((device, always_inline)) void fetch(u32 k0, float (&next)[8]) const {
        u32 own = k0 + rf_thread() % 16;
        bool in = own < k;
        u32 at = in ? own : k - 1;
#pragma unroll
        for (u32 i = 0; i < 8; ++i) {
            float v = base[row[i] + at];
            next[i] = in ? v : 0.0f;
        }
    }
    RF_DEVICE void put(GemmTile &tile, const float (&next)[8]) {
#pragma unroll
        for (u32 i = 0; i < 8; ++i) tile[rf_thread() % 16][rf_thread() / 16 + 8 * i] = next[i];
    }
};

// B as [k, n]: element i is at k = tid / 64 + 2 i, in column tid % 64.
struct GemmColumns {
    const float *base;
    u32 column, stride, k;
    RF_DEVICE GemmColumns of(const float *p, u32 first, u32 count, u32 stride, u32 k) {
        return {p + first, rf_min(rf_thread() % 64, count - 1 - first), stride, k};
    }
    __attribute__((device, always_inline)) void fetch(u32 k0, float (&next)[8]) const {
#pragma unroll
        for (u32 i = 0; i < 8; ++i) {
            u32 own = k0 + rf_thread() / 64 + 2 * i;
            bool in = own < k;
            u32 at = in ? own : k - 1;
            float v = base[(u64)at * stride + column];
            next[i] = in ? v : 0.0f;
        }
    }
    RF_DEVICE void put(GemmTile &tile, const float (&next)[8]) {
#pragma unroll
        for (u32 i = 0; i < 8; ++i) tile[rf_thread() / 64 + 2 * i][rf_thread() % 64] = next[i];
    }
};

// The product, with an operand B that knows how its tiles are fetched.
template <class B>
RF_DEVICE void rf_gemm_with(const float *__restrict__ a, const B &b, const float *__restrict__ bias, float *__restrict__ c, Gemm g) {
    RF_SHARED GemmTile a_tile;
    RF_SHARED GemmTile b_tile;
    u32 tid = rf_thread();
    u32 n0 = rf_block_x() * RF_GEMM_TILE;
    u32 m0 = rf_block_y() * RF_GEMM_TILE;
    GemmRows rows = GemmRows::of(a, m0, g.m, g.lda, g.k);

    float a_next[8], b_next[8];
    u32 ty = tid / 8, tx = tid % 8;
    f4 acc[4][2] = {};
    rows.fetch(0, a_next);
    b.fetch(0, b_next);
    for (u32 k0 = 0; k0 < g.k; k0 += RF_GEMM_K) {
        rf_barrier(); // everybody has used the previous tiles
        GemmRows::put(a_tile, a_next);
        B::put(b_tile, b_next);
        rf_barrier();
        if (k0 + RF_GEMM_K < g.k) {
            rows.fetch(k0 + RF_GEMM_K, a_next);
            b.fetch(k0 + RF_GEMM_K, b_next);
        }
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
        f4 add = bias ? rf_load4(bias + col, count) : rf_splat(0.0f);
#pragma unroll
        for (u32 i = 0; i < 4; ++i) {
            u32 row = m0 + ty * 4 + i;
            if (row < g.m) rf_store4(c + (u64)row * g.ldc + col, acc[i][half] * g.alpha + add, count);
        }
    }
}

// The same with a B of floats, [k, n] or, transposed, [n, k].
template <bool B_TRANSPOSED>
RF_DEVICE void rf_gemm(const float *__restrict__ a, const float *__restrict__ b, const float *__restrict__ bias, float *__restrict__ c,
                       Gemm g) {
    u32 n0 = rf_block_x() * RF_GEMM_TILE;
    if constexpr (B_TRANSPOSED) rf_gemm_with(a, GemmRows::of(b, n0, g.n, g.ldb, g.k), bias, c, g);
    else rf_gemm_with(a, GemmColumns::of(b, n0, g.n, g.ldb, g.k), bias, c, g);
}
