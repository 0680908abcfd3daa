// Attention over a paged cache: out[t, h] = softmax(cap(scale q[t, h] . k[j, kv(h)])) v[j, kv(h)] over the keys j that token t sees.
// Kwon et al., "Efficient Memory Management for Large Language Model Serving with PagedAttention", 2023; the running maximum and sum
// are those of flash_attention.hip.
//
// Key j of the token's sequence lies in slot table[seq_of[t], j / block_size] * block_size + j % block_size of the caches
// [blocks * block_size, kv_heads, head_dim], head_dim a multiple of 4, in q8_0 of 32. Token t sees j <= positions[t] and, with a window, positions[t] - j < window.
// cap(s) is softcap * tanh(s / softcap), or s where softcap is 0. sinks[h], unless sinks is null, is one more logit of head h's softmax, without a key.
//
// A block of 256 threads has one token and head. Eight lanes share a key, or 32 of a long head; each group of them goes through the keys in turn
// with a maximum, a sum and an output of its own, which are joined at the end: by shuffles within 32 lanes, through LDS among the eight
// teams. grid = (tokens, heads).
//
// A sequence, position or block number out of range is a fault of its token, accesses nothing and gives NaN.
#pragma once
#include "fault.h"
#include "groups.h"
#include "math.h"
#include "paged.h"
#include "team.h"
#include "weights.h"

// Joins the teams' maxima, sums and outputs (fours lane, lane + 32, ... of a head) into to[0 .. head_dim], a four of each lane at a time through
// LDS. `sink` is as in rf_join.
template <u32 F> RF_DEVICE void join_teams(const f4 (&acc)[F], float top, float sum, u32 head_dim, float sink, float *to) {
    constexpr u32 TEAMS = RF_ROW_BLOCK / 32;
    RF_SHARED f4_lds outputs[TEAMS][32];
    RF_SHARED float tops[TEAMS];
    RF_SHARED float sums[TEAMS];
    u32 team = rf_thread() / 32, lane = rf_thread() % 32;
    if (lane == 0) tops[team] = top, sums[team] = sum;
    rf_barrier();
    float most = sink;
    for (u32 i = 0; i < TEAMS; ++i) most = rf_max(most, tops[i]);
    if (most == -RF_INF) most = 0.0f;
    float total = rf_exp(sink - most);
    for (u32 i = 0; i < TEAMS; ++i) total = rf_fma(rf_exp(tops[i] - most), sums[i], total);
    float share = rf_exp(top - most), inverse = total == 0.0f ? 0.0f : 1.0f / total;
#pragma unroll
    for (u32 f = 0; f < F; ++f) {
        outputs[team][lane] = acc[f] * share;
        rf_barrier();
        u32 column = 4 * (lane + 32 * f);
        if (team == 0 && column < head_dim) {
            f4 result = outputs[0][lane];
            for (u32 i = 1; i < TEAMS; ++i) result += outputs[i][lane];
            *(f4 *)(to + column) = result * inverse;
        }
        rf_barrier(); // it has been read
    }
}

// LANES share a key, and AHEAD keys of each group are in flight together. D is head_dim rounded up to a compiled size.
template <class T, u32 D, u32 AHEAD, u32 LANES>
RF_DEVICE void paged(const float *__restrict__ q, const u8 *__restrict__ k, const u8 *__restrict__ v, const u32 *__restrict__ table,
                     const u32 *__restrict__ seq_of, const u32 *__restrict__ positions, const float *__restrict__ sinks,
                     float *__restrict__ out, const Paged &p) {
    constexpr u32 F = D / (4 * LANES); // fours of a head to a lane: lane, lane + LANES, ...
    constexpr u32 GROUPS = RF_ROW_BLOCK / LANES;
    u32 token = rf_block_x(), head = rf_block_y(), tid = rf_thread();
    u32 group = tid / LANES, lane = tid % LANES;
    float *to = out + ((u64)token * p.heads + head) * p.head_dim;
    u32 seq = seq_of[token], position = positions[token];
    bool known = seq < p.sequences;
    if (!known || position >= (u64)p.max_blocks * p.block_size) {
        if (tid == 0 && head == 0) rf_fault(p.fault, p.tag, token, known ? position : seq);
        for (u32 column = tid; column < p.head_dim; column += RF_ROW_BLOCK) to[column] = __builtin_nanf("");
        return;
    }
    const u32 *blocks = table + (u64)seq * p.max_blocks;
    u32 kv_head = head / (p.heads / p.kv_heads);

    f4 query[F], acc[F];
#pragma unroll
    for (u32 f = 0; f < F; ++f) {
        u32 column = 4 * (lane + LANES * f);
        query[f] = rf_splat(0.0f);
        if (column < p.head_dim) query[f] = rf_get4(q + ((u64)token * p.heads + head) * p.head_dim + column);
        acc[f] = rf_splat(0.0f);
    }
    float top = -RF_INF, sum = 0.0f, inverse_cap = 1.0f / p.softcap;
    bool bad = false;

    // The first key that is seen. A block number and a place in the block go with each key, so that nothing is divided again.
    u32 first = p.window != 0 && position >= p.window ? position - p.window + 1 : 0;
    u64 key = (u64)first + group;
    u32 page = (first + group) / p.block_size, place = (first + group) % p.block_size;
    u32 pages = GROUPS / p.block_size, places = GROUPS % p.block_size;
    u32 last_four = p.head_dim / 4 - 1;
    for (u64 begin = first; begin <= position; begin += GROUPS * AHEAD) {
        f4 keys[AHEAD][F], values[AHEAD][F];
        float score[AHEAD];
        float tile_top = top;
#pragma unroll
        for (u32 a = 0; a < AHEAD; ++a) {
            bool seen = key <= position;
            u32 block = seen ? blocks[page] : 0;
            if (block >= p.blocks) {
                if (lane == 0 && head == 0) rf_fault(p.fault, p.tag, token, block);
                bad = true;
                seen = false;
            }
            // Slots that are not seen may never have been written.
#pragma unroll
            for (u32 f = 0; f < F; ++f) keys[a][f] = values[a][f] = rf_splat(0.0f);
            if (seen) {
                u64 at = (((u64)block * p.block_size + place) * p.kv_heads + kv_head) * p.head_dim / T::block * T::bytes;
                // Columns beyond the end repeat the last ones: the query is 0 there, and nothing of them is stored.
#pragma unroll
                for (u32 f = 0; f < F; ++f) keys[a][f] = four_of<T>(k + at, rf_min(lane + LANES * f, last_four));
#pragma unroll
                for (u32 f = 0; f < F; ++f) values[a][f] = four_of<T>(v + at, rf_min(lane + LANES * f, last_four));
            }
            score[a] = 0.0f;
#pragma unroll
            for (u32 f = 0; f < F; ++f)
#pragma unroll
                for (u32 e = 0; e < 4; ++e) score[a] = rf_fma(query[f][e], keys[a][f][e], score[a]);
            if constexpr (LANES == 32) score[a] = rf_sum32(score[a]);
            else {
                score[a] += rf_shuffle_xor<4>(score[a]);
                score[a] += rf_shuffle_xor<2>(score[a]);
                score[a] += rf_shuffle_xor<1>(score[a]);
            }
            score[a] *= p.scale;
            if (p.softcap != 0.0f) score[a] = rf_softcap(score[a], p.softcap, inverse_cap);
            if (!seen) score[a] = -RF_INF;
            tile_top = rf_max(tile_top, score[a]);
            key += GROUPS;
            page += pages;
            place += places;
            if (place >= p.block_size) page += 1, place -= p.block_size;
        }
        rf_weigh<32 * F, AHEAD>(score, values, tile_top, top, sum, acc);
    }
    if (bad) sum = __builtin_nanf("");

    float sink = sinks ? sinks[head] : -RF_INF;
    if constexpr (LANES == 32) join_teams<F>(acc, top, sum, p.head_dim, sink, to);
    else rf_join<D, true>(acc, top, sum, p.head_dim, sink, to);
}
