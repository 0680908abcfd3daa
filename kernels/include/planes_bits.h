// Packed weights (planes.h) of two and three bits with a scale for 16: Q2_K and Q3_K.
#pragma once
#include "planes.h"

// The two bits of 16 weights: bits 2 t of byte b are those of weight 4 t + b.
RF_DEVICE u4 rf_two_bits(u32 h) {
    constexpr u32 BITS = 0x03030303u;
    return u4{h & BITS, h >> 2 & BITS, h >> 4 & BITS, h >> 6 & BITS};
}

// The bits of weights 0 to 15 and of 16 to 31; a byte for each of both, the scale below and the minimum above; f16 factors of scales and of
// minima for eight blocks.
struct PackedQ2K {
    struct Raw {
        u2 q;
        u32 dm;
        u16 scales;
    };
    u2 q;
    float low_d, high_d, low_min, high_min;
    RF_DEVICE Raw load(const u8 *w, u64 blocks, u32 i) {
        return {rf_part<u2>(w, 0, i), rf_part<u32>(w, 10 * blocks, i / 8), rf_part<u16>(w, 8 * blocks, i)};
    }
    RF_DEVICE PackedQ2K of(const Raw &r, u32) {
        float d = rf_f16(r.dm), min = -rf_f16(r.dm >> 16);
        u32 s = r.scales;
        return {r.q, d * (float)(s & 15), d * (float)(s >> 8 & 15), min * (float)(s >> 4 & 15), min * (float)(s >> 12)};
    }
    RF_DEVICE float add(const PackedQ2K &w, const Q8Block &x, float sum) {
        i32 low = rf_dot16(rf_two_bits(w.q.x), x.low, 0), high = rf_dot16(rf_two_bits(w.q.y), x.high, 0);
        float mins = rf_fma(w.low_min, (float)x.low_sum, w.high_min * (float)x.high_sum);
        return rf_fma(x.d, rf_fma(w.low_d, (float)low, rf_fma(w.high_d, (float)high, mins)), sum);
    }
};

// The scales of eight blocks, two of six bits for each: the low four bits of the first ones, those of the second ones, and the two high bits
// of all.
struct Q3Scales {
    u32 first, second, high;
    // Scale `half` of block j, less the 32 that it is stored with.
    RF_DEVICE float of(const Q3Scales &s, u32 j, u32 half) {
        u32 scale = ((half ? s.second : s.first) >> 4 * j & 15) | (s.high >> 4 * j >> 2 * half & 3) << 4;
        return (float)((i32)scale - 32);
    }
};
// Two low bits as PackedQ2K, the third (bit t of byte b that of weight 4 t + b), scales and their f16 factor for eight blocks.
struct PackedQ3K {
    struct Raw {
        u2 low;
        u32 third;
        Q3Scales scales;
        u16 d;
    };
    u2 q;
    u32 third;
    float low_d, high_d;
    RF_DEVICE Raw load(const u8 *w, u64 blocks, u32 i) {
        return {rf_part<u2>(w, 0, i), rf_part<u32>(w, 8 * blocks, i), rf_part<Q3Scales>(w, 12 * blocks, i / 8),
                rf_part<u16>(w, 13 * blocks + blocks / 2, i / 8)};
    }
    RF_DEVICE PackedQ3K of(const Raw &r, u32 i) {
        float d = rf_f16(r.d);
        return {r.low, r.third, d * Q3Scales::of(r.scales, i % 8, 0), d * Q3Scales::of(r.scales, i % 8, 1)};
    }
    RF_DEVICE float add(const PackedQ3K &w, const Q8Block &x, float sum) {
        constexpr u32 BIT = 0x04040404u;
        u32 h = w.third;
        u4 low_q = rf_two_bits(w.q.x) | u4{h << 2 & BIT, h << 1 & BIT, h & BIT, h >> 1 & BIT};
        u4 high_q = rf_two_bits(w.q.y) | u4{h >> 2 & BIT, h >> 3 & BIT, h >> 4 & BIT, h >> 5 & BIT};
        i32 low = rf_dot16(low_q, x.low, -4 * x.low_sum), high = rf_dot16(high_q, x.high, -4 * x.high_sum);
        return rf_fma(x.d, rf_fma(w.low_d, (float)low, w.high_d * (float)high), sum);
    }
};
