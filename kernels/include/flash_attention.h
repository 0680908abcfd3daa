// out = softmax(q k^T * scale + mask) v without ever holding the scores: tiles of keys, a running maximum and sum per query
// ("online softmax"). Dao et al., "FlashAttention", 2022; Milakov and Gimelshein, "Online normalizer calculation", 2018.
//
// A block of 128 threads has BQ queries of one head and tiles of BK keys; 8 neighbouring threads share a query: BK / 8 of the
// tile's scores each, then every fourth column of the output. K and V pass through the same LDS buffer. D is head_dim rounded
// up to a compiled size; loops over head_dim stop at its own end.
// grid = (ceil(seq_q / BQ), heads, batch); BQ = BK = 32, or 16 for D = 256.
//
// Causal: query i sees key j when j <= i + offset. A query that sees nothing gives zeros.
#pragma once
#include "math.h"
#include "strides.h"
#include "team.h"

#define RF_FLASH_BLOCK 128

struct Problem {
    u32 seq_q, seq_k, head_dim, heads, kv_heads;
    RfStrides q, k, v, o, mask;
    float scale;
    bool causal;
    i32 offset;
};

// ROWS rows of an operand into LDS, columns from head_dim to D as 0. Rows beyond `last` repeat it.
template <u32 D, u32 ROWS>
RF_DEVICE void load_tile(float (*tile)[D + 4], const float *base, u32 stride, u32 last, u32 head_dim) {
    constexpr u32 STEPS = ROWS * (D / 4) / RF_FLASH_BLOCK;
    if (head_dim % 4 == 0 && rf_wide(base, stride)) {
        // No branch, so that all loads are in flight together: a column beyond the end reads the last one and drops it.
#pragma unroll
        for (u32 i = 0; i < STEPS; ++i) {
            u32 slot = rf_thread() + i * RF_FLASH_BLOCK;
            u32 row = slot / (D / 4), column = slot % (D / 4) * 4;
            f4 v = *(const f4_wide *)(base + rf_min(row, last) * stride + rf_min(column, head_dim - 4));
            *(f4_lds *)&tile[row][column] = column < head_dim ? v : rf_splat(0.0f);
        }
    } else {
#pragma unroll 1
        for (u32 i = 0; i < STEPS; ++i) {
            u32 slot = rf_thread() + i * RF_FLASH_BLOCK;
            u32 row = slot / (D / 4), column = slot % (D / 4) * 4;
            *(f4_lds *)&tile[row][column] = rf_load4(base + rf_min(row, last) * stride + column, rf_left4(column, head_dim));
        }
    }
}

template <u32 D, u32 BQ, u32 BK, bool MASKED>
RF_DEVICE void flash(const float *__restrict__ q, const float *__restrict__ k, const float *__restrict__ v, const float *__restrict__ mask,
                     float *__restrict__ o, const Problem &p) {
    constexpr u32 R = BQ / 16; // queries per thread
    constexpr u32 S = BK / 8;  // scores of a query per thread
    RF_SHARED float queries[BQ][D + 4];
    RF_SHARED float keys[BK][D + 4]; // then the values
    RF_SHARED float weights[BQ][BK + 4];

    u32 head = rf_block_y(), batch = rf_block_z();
    u32 kv_head = head / (p.heads / p.kv_heads);
    u32 q0 = rf_block_x() * BQ;
    u32 ty = rf_thread() / 8, tx = rf_thread() % 8;
    u32 q_last = rf_min(BQ, p.seq_q - q0) - 1;
    k += rf_plane(p.k, batch, kv_head);
    v += rf_plane(p.v, batch, kv_head);
    load_tile<D, BQ>(queries, q + rf_plane(p.q, batch, head) + q0 * p.q.row, (u32)p.q.row, q_last, p.head_dim);

    // Keys that the block's last query sees.
    i64 visible = p.causal ? (i64)q0 + q_last + p.offset + 1 : p.seq_k;
    u32 end = visible <= 0 ? 0 : (visible >= (i64)p.seq_k ? p.seq_k : (u32)visible);

    float top[R], sum[R];
    f4 acc[R][D / 32];
    const float *mask_row[R];
    i64 row_end[R]; // the first key this query does not see
#pragma unroll
    for (u32 r = 0; r < R; ++r) {
        u32 query = q0 + rf_min(ty + 16 * r, q_last);
        top[r] = -RF_INF;
        sum[r] = 0.0f;
        for (u32 c = 0; c < D / 32; ++c) acc[r][c] = rf_splat(0.0f);
        mask_row[r] = MASKED ? mask + rf_plane(p.mask, batch, head) + query * p.mask.row : nullptr;
        i64 own = (i64)query + p.offset + 1;
        row_end[r] = p.causal && own < (i64)end ? own : (i64)end;
    }

    for (u32 k0 = 0; k0 < end; k0 += BK) {
        u32 k_last = rf_min(BK, p.seq_k - k0) - 1;
        rf_barrier(); // the previous tile's values have been used
        load_tile<D, BK>(keys, k + k0 * p.k.row, (u32)p.k.row, k_last, p.head_dim);
        rf_barrier();

        float s[R][S] = {};
#pragma unroll 16 / S
        for (u32 d = 0; d < p.head_dim; d += 4) {
            f4 key[S];
#pragma unroll
            for (u32 j = 0; j < S; ++j) key[j] = *(const f4_lds *)&keys[tx + 8 * j][d];
#pragma unroll
            for (u32 r = 0; r < R; ++r) {
                f4 query = *(const f4_lds *)&queries[ty + 16 * r][d];
#pragma unroll
                for (u32 j = 0; j < S; ++j)
#pragma unroll
                    for (u32 e = 0; e < 4; ++e) s[r][j] = rf_fma(query[e], key[j][e], s[r][j]);
            }
        }

#pragma unroll
        for (u32 r = 0; r < R; ++r) {
            float tile_top = top[r];
#pragma unroll
            for (u32 j = 0; j < S; ++j) {
                u32 key = k0 + tx + 8 * j;
                float score = s[r][j] * p.scale;
                if (MASKED) score += mask_row[r][rf_min(key, p.seq_k - 1)];
                s[r][j] = (i64)key < row_end[r] ? score : -RF_INF;
                tile_top = rf_max(tile_top, s[r][j]);
            }
            tile_top = rf_max(tile_top, rf_shuffle_xor<4>(tile_top));
            tile_top = rf_max(tile_top, rf_shuffle_xor<2>(tile_top));
            tile_top = rf_max(tile_top, rf_shuffle_xor<1>(tile_top));
            // While everything seen so far is -inf, any finite number does: all exponentials are 0.
            float base = tile_top == -RF_INF ? 0.0f : tile_top;
            float shrink = rf_exp(top[r] - base);
            top[r] = tile_top;
            sum[r] *= shrink;
#pragma unroll
            for (u32 c = 0; c < D / 32; ++c) acc[r][c] *= shrink;
#pragma unroll
            for (u32 j = 0; j < S; ++j) {
                float weight = rf_exp(s[r][j] - base);
                sum[r] += weight;
                weights[ty + 16 * r][tx + 8 * j] = weight;
            }
        }
        rf_barrier(); // the keys have been used, the weights are complete
        load_tile<D, BK>(keys, v + k0 * p.v.row, (u32)p.v.row, k_last, p.head_dim);
        rf_barrier();

        for (u32 j = 0; j <= k_last; j += 4) {
            f4 weight[R];
#pragma unroll
            for (u32 r = 0; r < R; ++r) weight[r] = *(const f4_lds *)&weights[ty + 16 * r][j];
#pragma unroll
            for (u32 e = 0; e < 4; ++e)
#pragma unroll
                for (u32 c = 0; c < D / 32; ++c) {
                    f4 value = *(const f4_lds *)&keys[j + e][c * 32 + tx * 4];
#pragma unroll
                    for (u32 r = 0; r < R; ++r) acc[r][c] += weight[r][e] * value;
                }
        }
    }

#pragma unroll
    for (u32 r = 0; r < R; ++r) {
        float total = sum[r];
        total += rf_shuffle_xor<4>(total);
        total += rf_shuffle_xor<2>(total);
        total += rf_shuffle_xor<1>(total);
        float inverse = total == 0.0f ? 0.0f : rf_rcp(total);
        if (ty + 16 * r > q_last) continue;
        float *out = o + rf_plane(p.o, batch, head) + (q0 + ty + 16 * r) * p.o.row;
#pragma unroll
        for (u32 c = 0; c < D / 32; ++c) {
            u32 column = c * 32 + tx * 4;
            rf_store4(out + column, acc[r][c] * inverse, rf_left4(column, p.head_dim));
        }
    }
}

#define RF_FLASH(D, BQ, BK)                                                                                                            \
    RF_KERNEL(RF_FLASH_BLOCK)                                                                                                          \
    flash_attention_d##D(const float *q, const float *k, const float *v, float *o, u32 seq_q, u32 seq_k, u32 head_dim, u32 heads,      \
                         u32 kv_heads, RfStrides q_strides, RfStrides k_strides, RfStrides v_strides, RfStrides o_strides,             \
                         float scale) {                                                                                                \
        flash<D, BQ, BK, false>(q, k, v, nullptr, o,                                                                                   \
                            Problem{seq_q, seq_k, head_dim, heads, kv_heads, q_strides, k_strides, v_strides, o_strides, {},           \
                                    scale, false, 0});                                                                                 \
    }                                                                                                                                  \
    RF_KERNEL(RF_FLASH_BLOCK)                                                                                                          \
    flash_attention_causal_d##D(const float *q, const float *k, const float *v, float *o, u32 seq_q, u32 seq_k, u32 head_dim,          \
                                u32 heads, u32 kv_heads, RfStrides q_strides, RfStrides k_strides, RfStrides v_strides,                \
                                RfStrides o_strides, float scale, i32 offset) {                                                        \
        flash<D, BQ, BK, false>(q, k, v, nullptr, o,                                                                                   \
                            Problem{seq_q, seq_k, head_dim, heads, kv_heads, q_strides, k_strides, v_strides, o_strides, {},           \
                                    scale, true, offset});                                                                             \
    }
#define RF_FLASH_MASKED(D, BQ, BK)                                                                                                     \
    RF_KERNEL(RF_FLASH_BLOCK)                                                                                                          \
    flash_attention_masked_d##D(const float *q, const float *k, const float *v, const float *mask, float *o, u32 seq_q,                \
                                u32 seq_k, u32 head_dim, u32 heads, u32 kv_heads, RfStrides q_strides, RfStrides k_strides,            \
                                RfStrides v_strides, RfStrides o_strides, RfStrides mask_strides, float scale, u32 causal,             \
                                i32 offset) {                                                                                          \
        flash<D, BQ, BK, true>(q, k, v, mask, o,                                                                                       \
                           Problem{seq_q, seq_k, head_dim, heads, kv_heads, q_strides, k_strides, v_strides, o_strides,                \
                                   mask_strides, scale, causal != 0, offset});                                                         \
    }
