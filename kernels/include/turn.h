// Rotary position embedding of one head: rope.hip, rope_kv.hip.
#pragma once
#include "team.h"

// One head by row `table` of the tables: put(i, value) of each element.
template <bool INTERLEAVED, class Put>
RF_DEVICE void turn_with(const float *in, const float *cosine, const float *sine, u32 head_dim, u32 rotary_dim, u64 table, Put put) {
    u32 half = rotary_dim / 2;
    for (u32 i = Team32::lane(); i < half; i += 32) {
        u32 first = INTERLEAVED ? 2 * i : i;
        u32 second = INTERLEAVED ? 2 * i + 1 : i + half;
        float a = in[first];
        float b = in[second];
        float c = cosine[table + i];
        float s = sine[table + i];
        put(first, rf_fma(a, c, -(b * s)));
        put(second, rf_fma(a, s, b * c));
    }
    for (u32 i = rotary_dim + Team32::lane(); i < head_dim; i += 32) put(i, in[i]);
}

template <bool INTERLEAVED>
RF_DEVICE void turn(const float *in, const float *cosine, const float *sine, float *out, u32 head_dim, u32 rotary_dim, u64 table) {
    turn_with<INTERLEAVED>(in, cosine, sine, head_dim, rotary_dim, table, [&](u32 i, float v) { out[i] = v; });
}
