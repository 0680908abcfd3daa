// Attention as graphs of ggml have it: out[b, i, h] = softmax(cap(scale q[b, h, i] . k[j]) + slope(h) mask[i, j]) v[j] over the keys j of the
// batch and head that b and h share. Keys whose mask is -inf are not read. cap(s) is softcap * tanh(s / softcap), or s where softcap is 0.
//
// A block of 256 threads has one query (include/groups.h), so a prompt reads its keys once for each query. Heads have a multiple of four
// elements. D is the longer head rounded up to a compiled size. grid = (queries, heads, batch).
#include "include/alibi.h"
#include "include/groups.h"
#include "include/quant.h"
#include "include/strides.h"

// Keys [batch / batch_share, heads / head_share, keys]; masks [mask_outer, mask_heads, mask_rows, keys], f16 where mask_half, repeated.
struct Ext {
    u32 queries, heads, keys, dim_k, dim_v, batch_share, head_share, mask_outer, mask_heads, mask_rows, mask_half, power;
    RfStrides q, k, v;
    float scale, softcap, max_bias;
    u32 none;
};

// AHEAD keys of a group are in flight together.
template <class T, u32 D, u32 AHEAD>
RF_DEVICE void attend(const float *__restrict__ q, const u8 *__restrict__ k, const u8 *__restrict__ v, const u8 *__restrict__ mask,
                      const float *__restrict__ sinks, float *__restrict__ out, const Ext &p) {
    constexpr u32 F = D / 32; // fours of a head to a lane: lane, lane + 8, ...
    u32 i = rf_block_x(), head = rf_block_y(), batch = rf_block_z();
    u32 group = rf_thread() / 8, lane = rf_thread() % 8;
    const float *query_row = q + rf_plane(p.q, batch, head) + i * p.q.row;
    const u8 *keys_of = k + rf_plane(p.k, batch / p.batch_share, head / p.head_share) * T::bytes;
    const u8 *values_of = v + rf_plane(p.v, batch / p.batch_share, head / p.head_share) * T::bytes;
    u64 mask_row = ((u64)(batch % p.mask_outer * p.mask_heads + head % p.mask_heads) * p.mask_rows + i) * p.keys;
    float slope = rf_slope(p.max_bias, p.power, head), inverse_cap = 1.0f / p.softcap;

    f4 query[F], acc[F];
#pragma unroll
    for (u32 f = 0; f < F; ++f) {
        u32 column = 4 * (lane + 8 * f);
        query[f] = rf_splat(0.0f);
        if (column < p.dim_k) query[f] = rf_get4(query_row + column);
        acc[f] = rf_splat(0.0f);
    }
    float top = -RF_INF, sum = 0.0f;
    u32 last_k = p.dim_k / 4 - 1, last_v = p.dim_v / 4 - 1;
    for (u64 begin = 0; begin < p.keys; begin += RF_GROUPS * AHEAD) {
        f4 keys[AHEAD][F], values[AHEAD][F];
        float score[AHEAD];
        float tile_top = top;
#pragma unroll
        for (u32 a = 0; a < AHEAD; ++a) {
            u64 key = begin + a * RF_GROUPS + group;
            bool seen = key < p.keys;
            float bias = 0.0f;
            if (mask && seen) bias = slope * (p.mask_half ? F16::one(mask + 2 * (mask_row + key), 0) : F32::one(mask + 4 * (mask_row + key), 0));
            seen = seen && bias != -RF_INF;
            // Keys that are not seen may never have been written.
#pragma unroll
            for (u32 f = 0; f < F; ++f) keys[a][f] = values[a][f] = rf_splat(0.0f);
            if (seen) {
                // Columns beyond the end repeat the last ones: the query is 0 there, and nothing of them is stored.
#pragma unroll
                for (u32 f = 0; f < F; ++f) keys[a][f] = T::four(keys_of + key * p.k.row * T::bytes, rf_min(lane + 8 * f, last_k));
#pragma unroll
                for (u32 f = 0; f < F; ++f) values[a][f] = T::four(values_of + key * p.v.row * T::bytes, rf_min(lane + 8 * f, last_v));
            }
            score[a] = 0.0f;
#pragma unroll
            for (u32 f = 0; f < F; ++f)
#pragma unroll
                for (u32 e = 0; e < 4; ++e) score[a] = rf_fma(query[f][e], keys[a][f][e], score[a]);
            score[a] += rf_shuffle_xor<4>(score[a]);
            score[a] += rf_shuffle_xor<2>(score[a]);
            score[a] += rf_shuffle_xor<1>(score[a]);
            score[a] *= p.scale;
            if (p.softcap != 0.0f) score[a] = rf_softcap(score[a], p.softcap, inverse_cap);
            score[a] = seen ? score[a] + bias : -RF_INF;
            tile_top = rf_max(tile_top, score[a]);
        }
        rf_weigh<D, AHEAD>(score, values, tile_top, top, sum, acc);
    }
    rf_join<D, true>(acc, top, sum, p.dim_v, sinks ? sinks[head] : -RF_INF, out + (((u64)batch * p.queries + i) * p.heads + head) * p.dim_v);
}

#define RF_EXT(name, T, D, AHEAD)                                                                                                  \
    RF_KERNEL(RF_ROW_BLOCK)                                                                                                        \
    flash_attn_ext_##name##_d##D(const float *q, const u8 *k, const u8 *v, const u8 *mask, const float *sinks, float *out, Ext p) {  \
        attend<T, D, AHEAD>(q, k, v, mask, sinks, out, p);                                                                         \
    }

RF_EXT(f32, F32, 64, 2)
RF_EXT(f32, F32, 128, 2)
RF_EXT(f32, F32, 256, 1)
RF_EXT(f16, F16, 64, 2)
RF_EXT(f16, F16, 128, 2)
RF_EXT(f16, F16, 256, 1)
