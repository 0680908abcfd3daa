// Attention of a few tokens over a paged cache of 16 or 8 bits, its keys in parts: paged_split_{type}_d{64,128,256}.hip compute each part,
// paged_combine.hip joins them. The formula is that of paged_attention.hip. Dao et al., "Flash-Decoding", 2023.
//
// A block of paged_split has one token, up to R query heads that share a head of keys and values, and one part of the keys that the token sees; so
// every key and value is read once for R heads. D / 8 lanes share a key: eight elements of it to a lane. D is head_dim itself.
// grid = (parts, kv_heads * ceil(ratio / R), tokens).
//
// A part leaves its sums of values [tokens, heads, parts, D], maxima and sums of weights [tokens, heads, parts]; a part without a key has a sum of 0 and
// no values.
#pragma once
#include "cache_eights.h"
#include "grid.h"
#include "groups.h"
#include "paged.h"

// v summed over LANES neighbouring lanes.
template <u32 LANES> RF_DEVICE float sum_lanes(float v) {
    if constexpr (LANES > 1) return sum_lanes<LANES / 2>(v + rf_shuffle_xor<LANES / 2>(v));
    else return v;
}
// v summed, and the largest, over the groups of LANES lanes in 32.
template <u32 LANES> RF_DEVICE float sum_groups(float v) {
    if constexpr (LANES < 32) return sum_groups<LANES * 2>(v + rf_shuffle_xor<LANES>(v));
    else return v;
}
template <u32 LANES> RF_DEVICE float max_groups(float v) {
    if constexpr (LANES < 32) return max_groups<LANES * 2>(rf_max(v, rf_shuffle_xor<LANES>(v)));
    else return v;
}

// AHEAD keys of a group are in flight together.
template <class T, u32 D, u32 R, u32 AHEAD>
RF_DEVICE void paged_split(const float *RF_WRITTEN_BEFORE q, const u8 *RF_WRITTEN_BEFORE k, const u8 *RF_WRITTEN_BEFORE v, const u32 *RF_WRITTEN_BEFORE table,
                           const u32 *RF_WRITTEN_BEFORE seq_of, const u32 *RF_WRITTEN_BEFORE positions, float *RF_WRITTEN_BEFORE sums_of_values,
                           float *RF_WRITTEN_BEFORE tops, float *RF_WRITTEN_BEFORE sums, u32 parts, const Paged &p) {
    constexpr u32 LANES = D / 8, GROUPS = RF_ROW_BLOCK / LANES, TEAMS = RF_ROW_BLOCK / 32;
    RF_SHARED float outputs[TEAMS][R][D];
    RF_SHARED float team_tops[TEAMS][R];
    RF_SHARED float team_sums[TEAMS][R];
    rf_grid_begin();
    u32 tid = rf_thread(), lane = tid % LANES, group = tid / LANES;
    u32 part = rf_block_x(), token = rf_block_z();
    u32 ratio = p.heads / p.kv_heads, packs = (ratio + R - 1) / R;
    u32 kv_head = rf_block_y() / packs, first_of = rf_block_y() % packs * R;
    u32 head = kv_head * ratio + first_of, heads = rf_min(R, ratio - first_of);
    u64 row = (u64)token * p.heads + head; // of q and, times parts, of the partial results
    u32 seq = seq_of[token], position = positions[token];
    bool known = seq < p.sequences, fault = !known || position >= (u64)p.max_blocks * p.block_size;
    if (fault && tid == 0 && part == 0 && head == 0) rf_fault(p.fault, p.tag, token, known ? position : seq);

    // The keys of this part.
    u32 from = p.window != 0 && position >= p.window ? position - p.window + 1 : 0;
    u32 seen = position - from + 1;
    u32 each = (seen - 1) / parts + 1;
    if (each < RF_PART_KEYS) each = RF_PART_KEYS;
    u32 begin = (u64)each * part < seen ? each * part : seen;
    u32 end = seen - begin < each ? seen : begin + each;
    if (fault || begin >= end) {
        if (tid < heads) {
            u64 at = (row + tid) * parts + part;
            tops[at] = -RF_INF;
            sums[at] = fault ? __builtin_nanf("") : 0.0f;
        }
        if (fault)
            for (u32 i = tid; i < heads * D; i += RF_ROW_BLOCK) sums_of_values[((row + i / D) * parts + part) * D + i % D] = 0.0f;
        return;
    }
    const u32 *blocks = table + (u64)seq * p.max_blocks;

    float query[R][8], acc[R][8] = {}, top[R], sum[R];
#pragma unroll
    for (u32 r = 0; r < R; ++r) {
        // Heads that are not there repeat the last one.
        const float *in = q + (row + rf_min(r, heads - 1)) * D + lane * 8;
        f4 a = rf_get4(in), b = rf_get4(in + 4);
#pragma unroll
        for (u32 e = 0; e < 4; ++e) query[r][e] = a[e] * p.scale, query[r][e + 4] = b[e] * p.scale;
        top[r] = -RF_INF, sum[r] = 0.0f;
    }
    float inverse_cap = 1.0f / p.softcap;
    bool bad = false;
    u32 key = from + begin + group, stop = from + end;
    u32 page = key / p.block_size, place = key % p.block_size;
    u32 pages = GROUPS / p.block_size, places = GROUPS % p.block_size;
    u32 steps = (end - begin + GROUPS * AHEAD - 1) / (GROUPS * AHEAD);
#pragma unroll 1
    for (u32 s = 0; s < steps; ++s) {
        typename T::Raw keys[AHEAD], values[AHEAD];
        bool there[AHEAD];
#pragma unroll
        for (u32 a = 0; a < AHEAD; ++a) {
            there[a] = key < stop;
            u32 block = there[a] ? blocks[page] : 0;
            if (block >= p.blocks) {
                if (lane == 0 && head == 0) rf_fault(p.fault, p.tag, token, block);
                bad = true;
                there[a] = false;
            }
            // Slots that are not seen may never have been written.
            keys[a] = values[a] = typename T::Raw{};
            if (there[a]) {
                u64 at = (((u64)block * p.block_size + place) * p.kv_heads + kv_head) * LANES + lane;
                keys[a] = T::load(k, at);
                values[a] = T::load(v, at);
            }
            key += GROUPS;
            page += pages;
            place += places;
            if (place >= p.block_size) page += 1, place -= p.block_size;
        }
        float score[AHEAD][R];
#pragma unroll
        for (u32 a = 0; a < AHEAD; ++a) {
            float x[8];
            T::floats(keys[a], x);
#pragma unroll
            for (u32 r = 0; r < R; ++r) {
                float dot = 0.0f;
#pragma unroll
                for (u32 e = 0; e < 8; ++e) dot = rf_fma(query[r][e], x[e], dot);
                dot = sum_lanes<LANES>(dot);
                if (p.softcap != 0.0f) dot = rf_softcap(dot, p.softcap, inverse_cap);
                score[a][r] = there[a] ? dot : -RF_INF;
            }
        }
#pragma unroll
        for (u32 r = 0; r < R; ++r) {
            float highest = top[r];
#pragma unroll
            for (u32 a = 0; a < AHEAD; ++a) highest = rf_max(highest, score[a][r]);
            float base = highest == -RF_INF ? 0.0f : highest;
            float shrink = rf_exp(top[r] - base);
            top[r] = highest;
            sum[r] *= shrink;
#pragma unroll
            for (u32 e = 0; e < 8; ++e) acc[r][e] *= shrink;
#pragma unroll
            for (u32 a = 0; a < AHEAD; ++a) {
                float weight = rf_exp(score[a][r] - base);
                sum[r] += weight;
                float x[8];
                T::floats(values[a], x);
#pragma unroll
                for (u32 e = 0; e < 8; ++e) acc[r][e] = rf_fma(weight, x[e], acc[r][e]);
            }
        }
    }

    // The groups of a team by shuffles, the teams through LDS.
    u32 team = tid / 32;
#pragma unroll
    for (u32 r = 0; r < R; ++r) {
        float highest = max_groups<LANES>(top[r]);
        float share = highest == -RF_INF ? 0.0f : rf_exp(top[r] - highest);
        float total = sum_groups<LANES>((bad ? __builtin_nanf("") : sum[r]) * share);
        f4_lds value[2];
#pragma unroll
        for (u32 e = 0; e < 8; ++e) value[e / 4][e % 4] = sum_groups<LANES>(acc[r][e] * share);
        if (tid % 32 < LANES) {
            f4_lds *to = (f4_lds *)&outputs[team][r][lane * 8];
            to[0] = value[0], to[1] = value[1];
        }
        if (tid % 32 == 0) team_tops[team][r] = highest, team_sums[team][r] = total;
    }
    rf_barrier();
    for (u32 i = tid; i < heads * D; i += RF_ROW_BLOCK) {
        u32 r = i / D, column = i % D;
        float most = team_tops[0][r];
        for (u32 t = 1; t < TEAMS; ++t) most = rf_max(most, team_tops[t][r]);
        float base = most == -RF_INF ? 0.0f : most, total = 0.0f, result = 0.0f;
        for (u32 t = 0; t < TEAMS; ++t) {
            float share = rf_exp(team_tops[t][r] - base);
            total = rf_fma(share, team_sums[t][r], total); // NaN stays, whatever its share
            result = rf_fma(share, outputs[t][r][column], result);
        }
        u64 at = (row + r) * parts + part;
        sums_of_values[at * D + column] = result;
        if (column == 0) tops[at] = most, sums[at] = total;
    }
}

#define RF_PAGED_SPLIT(name, T, D, R)                                                                                                  \
    RF_KERNEL(RF_ROW_BLOCK)                                                                                                            \
    paged_split_##name##_d##D##_r##R(const float *q, const u8 *k, const u8 *v, const u32 *table, const u32 *seq_of,                    \
                                     const u32 *positions, float *values, float *tops, float *sums, u32 parts, u32 heads,              \
                                     u32 kv_heads, u32 block_size, u32 blocks, u32 sequences, u32 max_blocks, u32 window, float scale, \
                                     float softcap, u64 *fault, u32 tag) {                                                             \
        paged_split<T, D, R, R == 4 ? 2 : 4>(                                                                                          \
            q, k, v, table, seq_of, positions, values, tops, sums, parts,                                                              \
            Paged{heads, kv_heads, D, block_size, blocks, sequences, max_blocks, window, scale, softcap, fault, tag});                 \
    }
#define RF_PAGED_SPLITS(name, T, D)                                                                                                    \
    RF_PAGED_SPLIT(name, T, D, 1)                                                                                                      \
    RF_PAGED_SPLIT(name, T, D, 2)                                                                                                      \
    RF_PAGED_SPLIT(name, T, D, 4)
