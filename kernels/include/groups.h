// Attention of one query by a block of 256 threads: eight lanes share a key, each group of eight has every 32nd key with a maximum, a sum
// and an output of its own. What is common to the kernels that do so.
#pragma once
#include "math.h"
#include "team.h"

// Groups of eight lanes in a block.
#define RF_GROUPS 32

// Adds AHEAD keys' scores and values to a group's maximum, sum and output; `highest` is the maximum with them.
template <u32 D, u32 AHEAD>
RF_DEVICE void rf_weigh(const float (&score)[AHEAD], const f4 (&values)[AHEAD][D / 32], float highest, float &top, float &sum,
                        f4 (&acc)[D / 32]) {
    constexpr u32 F = D / 32;
    float base = highest == -RF_INF ? 0.0f : highest;
    float shrink = rf_exp(top - base);
    top = highest;
    sum *= shrink;
#pragma unroll
    for (u32 f = 0; f < F; ++f) acc[f] *= shrink;
#pragma unroll
    for (u32 a = 0; a < AHEAD; ++a) {
        float weight = rf_exp(score[a] - base);
        sum += weight;
#pragma unroll
        for (u32 f = 0; f < F; ++f) acc[f] += weight * values[a][f];
    }
}

// Joins the groups' maxima `top`, sums and outputs (fours lane, lane + 8, ... of a head) into to[0 .. head_dim]: by shuffles within 32 lanes,
// through LDS among the eight teams. With SINK, `sink` is one more logit, without a value, unless it is -inf; and there may be no key at all:
// zeros then.
template <u32 D, bool SINK> RF_DEVICE void rf_join(const f4 (&acc)[D / 32], float top, float sum, u32 head_dim, float sink, float *to) {
    constexpr u32 F = D / 32;
    constexpr u32 TEAMS = RF_ROW_BLOCK / 32;
    RF_SHARED float outputs[TEAMS][D];
    RF_SHARED float tops[TEAMS];
    RF_SHARED float sums[TEAMS];
    u32 tid = rf_thread(), lane = tid % 8;

    // The four groups of a team.
    float team_top = rf_max(top, rf_shuffle_xor<8>(top));
    team_top = rf_max(team_top, rf_shuffle_xor<16>(team_top));
    float share = team_top == -RF_INF ? 0.0f : rf_exp(top - team_top);
    sum *= share;
    sum += rf_shuffle_xor<8>(sum);
    sum += rf_shuffle_xor<16>(sum);
    u32 team = tid / 32;
#pragma unroll
    for (u32 f = 0; f < F; ++f)
#pragma unroll
        for (u32 e = 0; e < 4; ++e) {
            float a = acc[f][e] * share;
            a += rf_shuffle_xor<8>(a);
            a += rf_shuffle_xor<16>(a);
            if (tid % 32 < 8) outputs[team][4 * (lane + 8 * f) + e] = a;
        }
    if (tid % 32 == 0) tops[team] = team_top, sums[team] = sum;
    rf_barrier();
    if (tid >= head_dim) return;
    float most = tops[0];
    for (u32 i = 1; i < TEAMS; ++i) most = rf_max(most, tops[i]);
    if constexpr (SINK) most = rf_max(most, sink);
    if (most == -RF_INF) most = 0.0f;
    float total = 0.0f, result = 0.0f;
    if constexpr (SINK) total = rf_exp(sink - most);
    for (u32 i = 0; i < TEAMS; ++i) {
        float part = rf_exp(tops[i] - most);
        total = rf_fma(part, sums[i], total);
        result = rf_fma(part, outputs[i][tid], result);
    }
    to[tid] = SINK && total == 0.0f ? 0.0f : result / total;
}
