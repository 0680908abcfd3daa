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

// A lane's four values of a block of 32, as integers; the scale and the sums of both halves are those of the block, in its first lane.
struct Q8Four {
    u32 word;
    float d;
    i32 low_sum, high_sum;
};

// Eight lanes with neighbouring fours make a block; all 32 call it together. A block with an infinite value or a NaN has that as its scale, and
// integers of 0.
RF_DEVICE Q8Four rf_q8_four(f4 v) {
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
    return {word, zero ? 0.0f : largest * (1.0f / 127.0f), (i32)sum, (i32)other};
}
// d and the sums as memory holds them.
RF_DEVICE u2 rf_q8_rest(const Q8Four &q) { return u2{__builtin_bit_cast(u32, q.d), ((u32)q.low_sum & 0xffff) | (u32)q.high_sum << 16}; }

// Four values from element `at` on, of n in all, into memory. All 32 lanes call it together, those beyond the end with in = false.
RF_DEVICE void rf_quantize4(f4 v, u8 *y, u64 n, u64 at, bool in) {
    Q8Four q = rf_q8_four(v);
    if (!in) return;
    u64 blocks = n / RF_Q8_BLOCK, block = at / RF_Q8_BLOCK;
    u32 part = (u32)(at / 4) % 8;
    u32 *quants = (u32 *)(y + 16 * blocks * (part / 4)) + 4 * block;
    quants[part % 4] = q.word;
    if (part == 0) ((u2 *)(y + 32 * blocks))[block] = rf_q8_rest(q);
}
