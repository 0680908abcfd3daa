// Rotary position embedding of one head: rope.hip, rope_kv.hip.
#pragma once
#include "team.h"

// One head in[0 .. head_dim], pair i by the row of the tables that begins at of(i): put(i, value) of each element.
template <bool INTERLEAVED, class In, class Of, class Put>
RF_DEVICE void turn_each(In in, const float *cosine, const float *sine, u32 head_dim, u32 rotary_dim, Of of, Put put) {
    u32 half = rotary_dim / 2;
    for (u32 i = Team32::lane(); i < half; i += 32) {
        u32 first = INTERLEAVED ? 2 * i : i;
        u32 second = INTERLEAVED ? 2 * i + 1 : i + half;
        float a = in[first];
        float b = in[second];
        u64 at = of(i) + i;
        float c = cosine[at];
        float s = sine[at];
        put(first, rf_fma(a, c, -(b * s)));
        put(second, rf_fma(a, s, b * c));
    }
    for (u32 i = rotary_dim + Team32::lane(); i < head_dim; i += 32) put(i, in[i]);
}

// One head by the row of the tables that begins at `table`.
template <bool INTERLEAVED, class In, class Put>
RF_DEVICE void turn_with(In in, const float *cosine, const float *sine, u32 head_dim, u32 rotary_dim, u64 table, Put put) {
    turn_each<INTERLEAVED>(in, cosine, sine, head_dim, rotary_dim, [=](u32) { return table; }, put);
}

// Whether two pairs at a time can be read and written; every row of the tables begins as the first, if half of rotary_dim is even.
template <bool INTERLEAVED> RF_DEVICE bool pairs_of_two(const float *in, const float *out, const float *cosine, const float *sine) {
    if (!rf_wide2(cosine) || !rf_wide2(sine)) return false;
    return INTERLEAVED ? rf_wide(in, 0) && rf_wide(out, 0) : rf_wide2(in) && rf_wide2(out);
}

// The same into `out`. Two pairs to a lane and step, one where an operand starts at an odd element.
template <bool INTERLEAVED>
RF_DEVICE void turn(const float *in, const float *cosine, const float *sine, float *out, u32 head_dim, u32 rotary_dim, u64 table) {
    u32 half = rotary_dim / 2;
    if (half % 2 != 0 || !pairs_of_two<INTERLEAVED>(in, out, cosine, sine)) {
        turn_with<INTERLEAVED>(in, cosine, sine, head_dim, rotary_dim, table, [&](u32 i, float v) { out[i] = v; });
        return;
    }
    for (u32 i = Team32::lane() * 2; i < half; i += 64) {
        // The head first: where it lies is known before its row of the tables.
        if constexpr (INTERLEAVED) {
            f4 v = *(const f4_wide *)(in + 2 * i);
            f2_wide c = *(const f2_wide *)(cosine + table + i), s = *(const f2_wide *)(sine + table + i);
            *(f4_wide *)(out + 2 * i) = f4{rf_fma(v.x, c.x, -(v.y * s.x)), rf_fma(v.x, s.x, v.y * c.x),
                                           rf_fma(v.z, c.y, -(v.w * s.y)), rf_fma(v.z, s.y, v.w * c.y)};
        } else {
            f2_wide a = *(const f2_wide *)(in + i), b = *(const f2_wide *)(in + half + i);
            f2_wide c = *(const f2_wide *)(cosine + table + i), s = *(const f2_wide *)(sine + table + i);
            *(f2_wide *)(out + i) = f2_wide{rf_fma(a.x, c.x, -(b.x * s.x)), rf_fma(a.y, c.y, -(b.y * s.y))};
            *(f2_wide *)(out + half + i) = f2_wide{rf_fma(a.x, s.x, b.x * c.x), rf_fma(a.y, s.y, b.y * c.y)};
        }
    }
    for (u32 i = rotary_dim + Team32::lane(); i < head_dim; i += 32) out[i] = in[i];
}
