// The parts of paged_split_{type}_d{64,128,256}.hip and of paged_wide16.hip joined: include/paged_split.h.
#include "include/grid.h"
#include "include/math.h"
#include "include/quantize.h"
#include "include/team.h"

// out[t, h] of the parts; with q8 as 8-bit activations, too. A block has a token and a head, D / 4 threads a four of it each and every
// RF_ROW_BLOCK / (D / 4)-th part. sinks[h], unless sinks is null, is one more logit of head h's softmax, without a key. grid = (heads, tokens).
template <u32 D>
RF_DEVICE void paged_combine(const float *RF_WRITTEN_BEFORE sums_of_values, const float *RF_WRITTEN_BEFORE tops, const float *RF_WRITTEN_BEFORE sums,
                             const float *RF_WRITTEN_BEFORE sinks, float *RF_WRITTEN_BEFORE out, u8 *RF_WRITTEN_BEFORE q8, u32 tokens, u32 heads, u32 parts) {
    constexpr u32 FOURS = D / 4, SHARES = RF_ROW_BLOCK / FOURS;
    RF_SHARED f4 results[SHARES][FOURS];
    RF_SHARED float totals[SHARES];
    rf_grid_begin();
    u32 tid = rf_thread(), four = tid % FOURS, share = tid / FOURS;
    u64 row = (u64)rf_block_y() * heads + rf_block_x();
    const float *top = tops + row * parts, *sum = sums + row * parts;
    float most = -RF_INF;
    for (u32 i = 0; i < parts; ++i) most = rf_max(most, top[i]);
    float base = most == -RF_INF ? 0.0f : most, total = 0.0f;
    f4 result = rf_splat(0.0f);
    for (u32 i = share; i < parts; i += SHARES) {
        float of = sum[i];
        if (of == 0.0f) continue; // no key, and no values
        float weight = rf_exp(top[i] - base);
        total = rf_fma(weight, of, total); // NaN stays, whatever its weight
        result += weight * rf_get4(sums_of_values + (row * parts + i) * D + four * 4);
    }
    results[share][four] = result;
    if (four == 0) totals[share] = total;
    rf_barrier();
    if (tid >= 32 && tid >= FOURS) return; // whole groups of 32 lanes go on
    bool in = tid < FOURS;
    total = sinks ? rf_exp(sinks[rf_block_x()] - base) : 0.0f; // of a sink far above all scores it is infinity, and the result 0
    result = rf_splat(0.0f);
    for (u32 i = 0; i < SHARES; ++i) {
        total += totals[i];
        result += results[i][tid % FOURS];
    }
    result = result / total;
    u64 at = row * D + four * 4;
    if (in) rf_put4(out + at, result);
    if (q8) rf_quantize4(in ? result : rf_splat(0.0f), q8, (u64)tokens * heads * D, at, in);
}

#define RF_PAGED_COMBINE(D)                                                                                                            \
    RF_KERNEL(RF_ROW_BLOCK)                                                                                                            \
    paged_combine_d##D(const float *values, const float *tops, const float *sums, const float *sinks, float *out, u8 *q8, u32 tokens,     \
                       u32 heads, u32 parts) {                                                                                         \
        paged_combine<D>(values, tops, sums, sinks, out, q8, tokens, heads, parts);                                                    \
    }

// The same for heads of any multiple of 32 elements: the parts of paged_wide16.hip. A block has 128 elements, a team of 32 lanes every eighth part.
// grid = (heads, tokens, ceil(head_dim / 128)).
RF_KERNEL(RF_ROW_BLOCK)
paged_combine_wide(const float *RF_WRITTEN_BEFORE values, const float *RF_WRITTEN_BEFORE tops, const float *RF_WRITTEN_BEFORE sums,
                   const float *RF_WRITTEN_BEFORE sinks, float *RF_WRITTEN_BEFORE out, u8 *RF_WRITTEN_BEFORE q8, u32 tokens, u32 heads, u32 parts,
                   u32 head_dim) {
    constexpr u32 TEAMS = RF_ROW_BLOCK / 32;
    RF_SHARED float weights[RF_ROW_BLOCK]; // of up to as many parts
    RF_SHARED f4_lds results[TEAMS][32];
    rf_grid_begin();
    u32 tid = rf_thread(), team = tid / 32, column = (rf_block_z() * 32 + tid % 32) * 4;
    u64 row = (u64)rf_block_y() * heads + rf_block_x();
    bool there = tid < parts, in = column < head_dim;
    float top = there ? tops[row * parts + tid] : -RF_INF, sum = there ? sums[row * parts + tid] : 0.0f;
    float logit = sinks ? sinks[rf_block_x()] : -RF_INF, most = rf_max(Team256::max(top), logit), base = most == -RF_INF ? 0.0f : most;
    // A part without a key has no values.
    float weight = sum == 0.0f ? 0.0f : rf_exp(top - base);
    weights[tid] = weight;
    float total = Team256::sum(sum == 0.0f ? 0.0f : weight * sum) + rf_exp(logit - base); // NaN stays, whatever its weight
    f4 result = rf_splat(0.0f);
#pragma unroll 4
    for (u32 i = team; i < parts; i += TEAMS)
        if (in && weights[i] != 0.0f) result += weights[i] * rf_get4(values + (row * parts + i) * head_dim + column);
    results[team][tid % 32] = result;
    rf_barrier();
    if (team != 0) return;
    for (u32 i = 1; i < TEAMS; ++i) result += results[i][tid];
    result = result / total;
    u64 at = row * head_dim + column;
    if (in) rf_put4(out + at, result);
    if (q8) rf_quantize4(in ? result : rf_splat(0.0f), q8, (u64)tokens * heads * head_dim, at, in);
}

RF_PAGED_COMBINE(64)
RF_PAGED_COMBINE(128)
RF_PAGED_COMBINE(256)
