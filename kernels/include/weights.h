// Products with weights of one type, and rows of them: RF_WEIGHTS(name, Type) makes the kernels of a type of quant.h.
#pragma once
#include "fault.h"
#include "gemm.h"
#include "quant.h"
#include "team.h"

// Bytes of a row of k weights.
template <class W> RF_DEVICE u64 row_bytes(u32 k) { return (u64)(k / W::block) * W::bytes; }
// Four i of a row of weights.
template <class W> RF_DEVICE f4 four_of(const u8 *row, u32 i) {
    if constexpr (W::block == 1) return W::four(row, i);
    else return W::four(row + (u64)(i / (W::block / 4)) * W::bytes, i % (W::block / 4));
}

// y[j, row] = x[j, :] . w[row, :] (+ bias[row]) for m <= M columns j. 32 lanes to ROWS rows of weights; every weight is read and
// decoded once, and x is read once for the rows, from row0 on. A lane takes eight weights of a row at a time: two fours that share their packed
// bytes, so that 32 lanes take 256 neighbours.
template <class W, u32 M, u32 ROWS>
RF_DEVICE void matvec(const u8 *__restrict__ w, const float *__restrict__ x, const float *__restrict__ bias, float *__restrict__ y, u32 m,
                      u32 n, u32 k, u32 row0) {
    if (row0 >= n) return;
    const u8 *weights[ROWS];
#pragma unroll
    for (u32 r = 0; r < ROWS; ++r) weights[r] = w + rf_min(row0 + r, n - 1) * row_bytes<W>(k);
    u32 lane = Team32::lane();
    float acc[ROWS][M] = {};
    // Fours i and i + gap of the blocks at `offset`, times x from element `at`.
    auto eight = [&](u32 offset, u32 i, u32 at) {
        offset = rf_opaque(offset); // one offset for all rows, not a pointer into each
        f4 a[ROWS], b[ROWS];
#pragma unroll
        for (u32 r = 0; r < ROWS; ++r) {
            a[r] = W::four(weights[r] + offset, i);
            b[r] = W::four(weights[r] + offset, i + W::gap);
        }
#pragma unroll
        for (u32 j = 0; j < M; ++j) {
            const float *in = x + (u64)rf_min(j, m - 1) * k + at;
            f4 c = rf_get4(in), d = rf_get4(in + 4 * W::gap);
#pragma unroll
            for (u32 r = 0; r < ROWS; ++r)
#pragma unroll
                for (u32 e = 0; e < 4; ++e) acc[r][j] = rf_fma(b[r][e], d[e], rf_fma(a[r][e], c[e], acc[r][j]));
        }
    };
    if constexpr (W::block == 1) {
        for (u32 at = lane * 8; at + 8 <= k; at += 256) eight(0, at / 4, at);
        u32 at = k / 8 * 8 + lane;
        if (at < k) {
#pragma unroll
            for (u32 r = 0; r < ROWS; ++r) {
                float v = W::one(weights[r], at);
#pragma unroll
                for (u32 j = 0; j < M; ++j) acc[r][j] = rf_fma(v, x[(u64)rf_min(j, m - 1) * k + at], acc[r][j]);
            }
        }
    } else {
        constexpr u32 fours = W::block / 4;                                 // of a block
        u32 first = lane / W::gap * (2 * W::gap) + lane % W::gap;           // of the 256: this lane's first four
        u32 offset = first / fours * W::bytes;
        for (u32 at = first * 4; at < k; at += 256, offset += 256 / W::block * W::bytes) eight(offset, first % fours, at);
    }
#pragma unroll
    for (u32 r = 0; r < ROWS; ++r)
#pragma unroll
        for (u32 j = 0; j < M; ++j) {
            float sum = Team32::sum(acc[r][j]);
            u32 row = row0 + r;
            if (lane == 0 && j < m && row < n) y[(u64)j * n + row] = bias ? sum + bias[row] : sum;
        }
}

// y[p, :] = w[ids[p]] x[p / share, :] for matrices w [experts, n, k]. An id that is not below `experts` is a fault, reads nothing and gives
// a row of NaN. grid = (pairs, ceil(n / 32)).
template <class W>
RF_DEVICE void matvec_id(const u8 *__restrict__ w, const float *__restrict__ x, const u32 *__restrict__ ids, float *__restrict__ y, u32 n,
                         u32 k, u32 experts, u32 share, u64 *__restrict__ fault, u32 tag) {
    constexpr u32 ROWS = 4;
    u32 pair = rf_block_x(), id = ids[pair];
    u32 row0 = (rf_block_y() * RF_ROWS_PER_BLOCK + rf_thread() / 32) * ROWS;
    if (id >= experts) {
        if (row0 == 0 && rf_thread() == 0) rf_fault(fault, tag, pair, id);
        u32 row = row0 + rf_thread() % 32;
        if (rf_thread() % 32 < ROWS && row < n) y[(u64)pair * n + row] = __builtin_nanf("");
        return;
    }
    matvec<W, 1, ROWS>(w + (u64)id * n * row_bytes<W>(k), x + (u64)(pair / share) * k, nullptr, y + (u64)pair * n, 1, n, k, row0);
}

// Weights [n, k], `stride` bytes from row to row, as the transposed B of a product: each thread has two neighbouring fours of row
// tid % 64.
template <class W> struct GemmWeights {
    const u8 *row;
    u32 k;
    RF_DEVICE GemmWeights of(const u8 *w, u32 n, u32 k, u64 stride) {
        return {w + rf_min(rf_block_x() * RF_GEMM_TILE + rf_thread() % 64, n - 1) * stride, k};
    }
    __attribute__((device, always_inline)) void fetch(u32 k0, float (&next)[8]) const {
#pragma unroll
        for (u32 i = 0; i < 2; ++i) {
            u32 at = k0 + rf_thread() / 64 * 8 + 4 * i;
            f4 v = rf_splat(0.0f);
            if (at + 4 <= k) {
                v = four_of<W>(row, at / 4);
            } else if constexpr (W::block == 1) {
                if (at < k) v.x = W::one(row, at);
                if (at + 1 < k) v.y = W::one(row, at + 1);
                if (at + 2 < k) v.z = W::one(row, at + 2);
            }
#pragma unroll
            for (u32 e = 0; e < 4; ++e) next[4 * i + e] = v[e];
        }
    }
    RF_DEVICE void put(GemmTile &tile, const float (&next)[8]) {
#pragma unroll
        for (u32 i = 0; i < 8; ++i) tile[rf_thread() / 64 * 8 + i][rf_thread() % 64] = next[i];
    }
};

// y[r, :] = table[r / per_list, ids[r], :] as f32, of tables [.., table_rows, cols]. An id that is not below table_rows is a fault, reads nothing and gives a row of NaN.
template <class W>
RF_DEVICE void get_rows(const u8 *__restrict__ table, const u32 *__restrict__ ids, float *__restrict__ y, u32 rows, u32 cols,
                        u32 table_rows, u32 per_list, u64 *__restrict__ fault, u32 tag) {
    RowTile t = RowTile::of(cols);
    if (t.row >= rows) return;
    u32 id = ids[t.row];
    float *out = y + (u64)t.row * cols;
    if (id >= table_rows) {
        if (t.begin == 0) rf_fault(fault, tag, t.row, id);
        for (u32 c = t.begin; c < t.end; c += 128) rf_store4(out + c, rf_splat(__builtin_nanf("")), rf_left4(c, t.end));
        return;
    }
    u64 first = per_list == rows ? 0 : (u64)(t.row / per_list) * table_rows;
    const u8 *in = table + (first + id) * row_bytes<W>(cols);
    for (u32 c = t.begin; c < t.end; c += 128) {
        if (c + 4 <= t.end) {
            rf_put4(out + c, four_of<W>(in, c / 4));
        } else if constexpr (W::block == 1) {
            for (u32 e = c; e < t.end; ++e) out[e] = W::one(in, e);
        }
    }
}

#define RF_MATVEC(name, Type, M, ROWS)                                                                                                  \
    RF_KERNEL(RF_ROW_BLOCK)                                                                                                        \
    matvec_##name##_m##M(const u8 *w, const float *x, const float *bias, float *y, u32 m, u32 n, u32 k) {                          \
        matvec<Type, M, ROWS>(w, x, bias, y, m, n, k, Team32::row() * ROWS);                                                       \
    }

#define RF_WEIGHTS(name, Type)                                                                                                     \
    RF_MATVEC(name, Type, 1, 4)                                                                                                      \
    RF_MATVEC(name, Type, 2, 4)                                                                                                      \
    RF_MATVEC(name, Type, 4, 2)                                                                                                      \
    RF_MATVEC(name, Type, 8, 2)                                                                                                      \
    RF_KERNEL(RF_GEMM_BLOCK)                                                                                                       \
    matmul_##name(const u8 *w, const float *x, const float *bias, float *y, u32 m, u32 n, u32 k) {                                 \
        rf_gemm_with(x, GemmWeights<Type>::of(w, n, k, row_bytes<Type>(k)), bias, y, Gemm{m, n, k, k, k, n, 1.0f});                                    \
    }                                                                                                                              \
    RF_KERNEL(RF_ROW_BLOCK)                                                                                                        \
    get_rows_##name(const u8 *table, const u32 *ids, float *y, u32 rows, u32 cols, u32 table_rows, u32 per_list, u64 *fault,       \
                    u32 tag) {                                                                                                     \
        get_rows<Type>(table, ids, y, rows, cols, table_rows, per_list, fault, tag);                                               \
    }                                                                                                                              \
    RF_KERNEL(RF_ROW_BLOCK)                                                                                                        \
    matvec_id_##name(const u8 *w, const float *x, const u32 *ids, float *y, u32 n, u32 k, u32 experts, u32 share, u64 *fault,      \
                     u32 tag) {                                                                                                    \
        matvec_id<Type>(w, x, ids, y, n, k, experts, share, fault, tag);                                                           \
    }
