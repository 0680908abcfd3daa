// Activations from f32 to blocks of 8-bit integers: q8.h.
#pragma once
#include "q8.h"

// The larger of the bits of two non-negative floats: their order is that of the numbers, and a NaN is above them all.
template <u32 MASK> RF_DEVICE u32 rf_larger(u32 bits) {
    u32 other = __builtin_bit_cast(u32, rf_shuffle_xor<MASK>(__builtin_bit_cast(float, bits)));
    return bits > other ? bits : other;
}
RF_DEVICE u32 rf_magnitude(float x) { return __builtin_bit_cast(u32, rf_abs(x)); }
RF_DEVICE u32 rf_larger_of(u32 a, u32 b) { return a > b ? a : b; }

// Four values from element `at` on, of n in all. Eight lanes with neighbouring fours make a block; all 32 call it together, those beyond the
// end with in = false. A block with an infinite value or a NaN has that as its scale, and integers of 0.
RF_DEVICE void rf_quantize4(f4 v, u8 *y, u64 n, u64 at, bool in) {
    u32 top = rf_larger_of(rf_larger_of(rf_magnitude(v.x), rf_magnitude(v.y)), rf_larger_of(rf_magnitude(v.z), rf_magnitude(v.w)));
    top = rf_larger<1>(top);
    top = rf_larger<2>(top);
    top = rf_larger<4>(top);
    float largest = __builtin_bit_cast(float, top);
    // Below 2^-100 the inverse might overflow. That of the largest numbers is too small to be normal, that of a sixteenth is not.
    bool zero = largest < 0x1p-100f, finite = largest < RF_INF;
    float inverse = zero || !finite ? 0.0f : 127.0f / 16.0f * rf_rcp(largest * (1.0f / 16.0f));
    float sum = 0.0f;
    u32 word = 0;
#pragma unroll
    for (u32 e = 0; e < 4; ++e) {
        float q = finite ? __builtin_rintf(v[e] * inverse) : 0.0f;
        sum += q;
        word |= ((u32)(i32)q & 255) << 8 * e;
    }
    sum += rf_shuffle_xor<1>(sum);
    sum += rf_shuffle_xor<2>(sum);
    float other = rf_shuffle_xor<4>(sum);
    if (!in) return;
    u64 blocks = n / RF_Q8_BLOCK, block = at / RF_Q8_BLOCK;
    u32 part = (u32)(at / 4) % 8;
    u32 *quants = (u32 *)(y + 16 * blocks * (part / 4)) + 4 * block;
    quants[part % 4] = word;
    if (part == 0) {
        u32 *rest = (u32 *)(y + 32 * blocks) + 2 * block;
        rest[0] = __builtin_bit_cast(u32, zero ? 0.0f : largest * (1.0f / 127.0f));
        rest[1] = ((u32)(i32)sum & 0xffff) | (u32)(i32)other << 16;
    }
}
