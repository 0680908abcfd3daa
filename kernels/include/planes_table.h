// Packed weights (planes.h) whose nibbles are indices into a table of 16 signed bytes: IQ4_NL, IQ4_XS and MXFP4.
#pragma once
#include "planes.h"
#include "quant.h"

// A scale for 32.
template <u64 LOW, u64 HIGH> struct FromTable {
    u4 q;
    float d;
    RF_DEVICE float add(const FromTable &w, const Q8Block &x, float sum) {
        i32 dot = 0;
#pragma unroll
        for (u32 e = 0; e < 4; ++e) {
            u2 v = rf_look_up(w.q[e], LOW, HIGH);
            dot = rf_dot4(v.y, x.high[e], rf_dot4(v.x, x.low[e], dot));
        }
        return rf_fma(w.d * x.d, (float)dot, sum);
    }
};

// f16 scale.
struct PackedIq4Nl : FromTable<RF_IQ4> {
    typedef PackedQ4_0::Raw Raw;
    RF_DEVICE Raw load(const u8 *w, u64 blocks, u32 i) { return PackedQ4_0::load(w, blocks, i); }
    RF_DEVICE FromTable of(const Raw &r, u32) { return {r.q, rf_f16(r.d)}; }
};

// Scale of block j of the eight that share h: in the first word an f16 factor and the two high bits of each scale, in the second the low four
// bits.
RF_DEVICE float rf_iq4_xs_scale(u2 h, u32 j) {
    u32 scale = (h.y >> 4 * j & 15) | (h.x >> 16 >> 2 * j & 3) << 4;
    return rf_f16(h.x) * (float)((i32)scale - 32);
}
struct PackedIq4Xs : FromTable<RF_IQ4> {
    struct Raw {
        u4 q;
        u2 scales;
    };
    RF_DEVICE Raw load(const u8 *w, u64 blocks, u32 i) { return {rf_stream(w, 0, i), rf_part<u2>(w, 16 * blocks, i / 8)}; }
    RF_DEVICE FromTable of(const Raw &r, u32 i) { return {r.q, rf_iq4_xs_scale(r.scales, i % 8)}; }
};

// An exponent in 8 bits.
struct PackedMxfp4 : FromTable<RF_E2M1> {
    struct Raw {
        u4 q;
        u8 e;
    };
    RF_DEVICE Raw load(const u8 *w, u64 blocks, u32 i) { return {rf_stream(w, 0, i), rf_part<u8>(w, 16 * blocks, i)}; }
    RF_DEVICE FromTable of(const Raw &r, u32) { return {r.q, rf_mxfp4_scale(r.e)}; }
};
