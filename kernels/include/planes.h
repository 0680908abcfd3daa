// Packed weights: what a lane reads of 32 weights, and their product with 32 activations.
//
// A packed matrix has the bits of ggml's blocks in another order: an array for each part of a block, the largest parts first. So each part
// is aligned, and 32 lanes with a block each read neighbours. Block i is the i-th 32 weights of the matrix, row by row; `blocks` is their
// number. A type is a struct with Raw, what load(w, blocks, i) reads of block i; of(raw, i), the integers and scales made from it; and
// add(block, x, sum), sum + the product with the activations x.
#pragma once
#include "q8.h"

#define RF_LOW4 0x0f0f0f0fu

RF_DEVICE float rf_f16(u32 bits) { return (float)__builtin_bit_cast(_Float16, (u16)bits); }
// Part i of an array of parts, `skip` bytes into the matrix.
template <class T> RF_DEVICE T rf_part(const u8 *w, u64 skip, u32 i) { return ((const T *)(w + skip))[i]; }
// The same of 16 bytes that nobody reads again.
RF_DEVICE u4 rf_stream(const u8 *w, u64 skip, u32 i) { return rf_get_once((const u4 *)(w + skip) + i); }

// Nibbles: weights 0 to 15 in the low ones, 16 to 31 in the high ones.
struct Nibbles {
    u4 low, high;
    RF_DEVICE Nibbles of(u4 q) { return {q & RF_LOW4, q >> 4 & RF_LOW4}; }
};

// f16 scale.
struct PackedQ4_0 {
    struct Raw {
        u4 q;
        u16 d;
    };
    u4 q;
    float d;
    RF_DEVICE Raw load(const u8 *w, u64 blocks, u32 i) { return {rf_stream(w, 0, i), rf_part<u16>(w, 16 * blocks, i)}; }
    RF_DEVICE PackedQ4_0 of(const Raw &r, u32) { return {r.q, rf_f16(r.d)}; }
    RF_DEVICE float add(const PackedQ4_0 &w, const Q8Block &x, float sum) {
        Nibbles q = Nibbles::of(w.q);
        i32 dot = rf_dot16(q.high, x.high, rf_dot16(q.low, x.low, -8 * (x.low_sum + x.high_sum)));
        return rf_fma(w.d * x.d, (float)dot, sum);
    }
};

// Integers from 0, a scale and a minimum: the sum of the activations counts with the minimum.
struct WithMin {
    u4 q;
    float d, min;
    RF_DEVICE float sum_of(const WithMin &w, Nibbles q, const Q8Block &x, float sum) {
        i32 dot = rf_dot16(q.high, x.high, rf_dot16(q.low, x.low, 0));
        return rf_fma(x.d, rf_fma(w.d, (float)dot, w.min * (float)(x.low_sum + x.high_sum)), sum);
    }
    RF_DEVICE float add(const WithMin &w, const Q8Block &x, float sum) { return sum_of(w, Nibbles::of(w.q), x, sum); }
};

// f16 scale and minimum.
struct PackedQ4_1 : WithMin {
    struct Raw {
        u4 q;
        u32 dm;
    };
    RF_DEVICE Raw load(const u8 *w, u64 blocks, u32 i) { return {rf_stream(w, 0, i), rf_part<u32>(w, 16 * blocks, i)}; }
    RF_DEVICE WithMin of(const Raw &r, u32) { return {r.q, rf_f16(r.dm), rf_f16(r.dm >> 16)}; }
};

// Values 0 to 15 of each block, values 16 to 31, f16 scale.
struct PackedQ8_0 {
    struct Raw {
        u4 low, high;
        u16 d;
    };
    u4 low, high;
    float d;
    RF_DEVICE Raw load(const u8 *w, u64 blocks, u32 i) {
        return {rf_stream(w, 0, i), rf_stream(w, 16 * blocks, i), rf_part<u16>(w, 32 * blocks, i)};
    }
    RF_DEVICE PackedQ8_0 of(const Raw &r, u32) { return {r.low, r.high, rf_f16(r.d)}; }
    RF_DEVICE float add(const PackedQ8_0 &w, const Q8Block &x, float sum) {
        i32 dot = rf_dot16(w.high, x.high, rf_dot16(w.low, x.low, 0));
        return rf_fma(w.d * x.d, (float)dot, sum);
    }
};

// Scale and minimum of block j of the eight of a K-quant: f16 factors of both in the first word; the low four bits of the scales, the low
// four bits of the minima, and the two high bits of each.
struct KScales {
    float d, min;
    RF_DEVICE KScales of(u4 h, u32 j) {
        u32 scale = (h.y >> 4 * j & 15) | (h.w >> 2 * j & 3) << 4;
        u32 min = (h.z >> 4 * j & 15) | (h.w >> 16 >> 2 * j & 3) << 4;
        return {rf_f16(h.x) * (float)scale, -rf_f16(h.x >> 16) * (float)min};
    }
};

struct PackedQ4K : WithMin {
    struct Raw {
        u4 q, scales;
    };
    RF_DEVICE Raw load(const u8 *w, u64 blocks, u32 i) { return {rf_stream(w, 0, i), rf_part<u4>(w, 16 * blocks, i / 8)}; }
    RF_DEVICE WithMin of(const Raw &r, u32 i) {
        KScales s = KScales::of(r.scales, i % 8);
        return {r.q, s.d, s.min};
    }
};

// Four low bits, two high bits (bits 2 t of byte b of word h: weight 16 h + 4 t + b), two signed scales for 16 each, f16 factor of eight
// blocks.
struct PackedQ6K {
    struct Raw {
        u4 low;
        u2 high;
        u16 scales, d;
    };
    u4 q;
    u2 upper;
    float low_d, high_d;
    RF_DEVICE Raw load(const u8 *w, u64 blocks, u32 i) {
        return {rf_stream(w, 0, i), rf_part<u2>(w, 16 * blocks, i), rf_part<u16>(w, 24 * blocks, i),
                rf_part<u16>(w, 26 * blocks, i / 8)};
    }
    RF_DEVICE u4 bits(u32 h) {
        constexpr u32 BITS = 0x30303030u;
        return u4{h << 4 & BITS, h << 2 & BITS, h & BITS, h >> 2 & BITS};
    }
    RF_DEVICE PackedQ6K of(const Raw &r, u32) {
        float d = rf_f16(r.d);
        i32 scales = (short)r.scales;
        return {r.low, r.high, d * (float)(signed char)scales, d * (float)(scales >> 8)};
    }
    RF_DEVICE float add(const PackedQ6K &w, const Q8Block &x, float sum) {
        Nibbles q = Nibbles::of(w.q);
        i32 low = rf_dot16(q.low | bits(w.upper.x), x.low, -32 * x.low_sum);
        i32 high = rf_dot16(q.high | bits(w.upper.y), x.high, -32 * x.high_sum);
        return rf_fma(x.d, rf_fma(w.low_d, (float)low, w.high_d * (float)high), sum);
    }
};

// Bit t of byte b: the fifth bit of weight 4 t + b.
RF_DEVICE Nibbles rf_with_fifth(Nibbles q, u32 h) {
    constexpr u32 BIT = 0x10101010u;
    q.low |= u4{h << 4 & BIT, h << 3 & BIT, h << 2 & BIT, h << 1 & BIT};
    q.high |= u4{h & BIT, h >> 1 & BIT, h >> 2 & BIT, h >> 3 & BIT};
    return q;
}
// Four low bits, the fifth, f16 scale.
struct PackedQ5_0 {
    struct Raw {
        u4 q;
        u32 fifth;
        u16 d;
    };
    u4 q;
    u32 fifth;
    float d;
    RF_DEVICE Raw load(const u8 *w, u64 blocks, u32 i) {
        return {rf_stream(w, 0, i), rf_part<u32>(w, 16 * blocks, i), rf_part<u16>(w, 20 * blocks, i)};
    }
    RF_DEVICE PackedQ5_0 of(const Raw &r, u32) { return {r.q, r.fifth, rf_f16(r.d)}; }
    RF_DEVICE float add(const PackedQ5_0 &w, const Q8Block &x, float sum) {
        Nibbles q = rf_with_fifth(Nibbles::of(w.q), w.fifth);
        i32 dot = rf_dot16(q.high, x.high, rf_dot16(q.low, x.low, -16 * (x.low_sum + x.high_sum)));
        return rf_fma(w.d * x.d, (float)dot, sum);
    }
};
// The same with a fifth bit.
struct WithFifth {
    WithMin w;
    u32 fifth;
    RF_DEVICE float add(const WithFifth &f, const Q8Block &x, float sum) {
        return WithMin::sum_of(f.w, rf_with_fifth(Nibbles::of(f.w.q), f.fifth), x, sum);
    }
};
struct PackedQ5_1 : WithFifth {
    struct Raw {
        u4 q;
        u32 fifth, dm;
    };
    RF_DEVICE Raw load(const u8 *w, u64 blocks, u32 i) {
        return {rf_stream(w, 0, i), rf_part<u32>(w, 16 * blocks, i), rf_part<u32>(w, 20 * blocks, i)};
    }
    RF_DEVICE WithFifth of(const Raw &r, u32) { return {{r.q, rf_f16(r.dm), rf_f16(r.dm >> 16)}, r.fifth}; }
};
struct PackedQ5K : WithFifth {
    struct Raw {
        u4 q, scales;
        u32 fifth;
    };
    RF_DEVICE Raw load(const u8 *w, u64 blocks, u32 i) {
        return {rf_stream(w, 0, i), rf_part<u4>(w, 16 * blocks, i / 8), rf_part<u32>(w, 18 * blocks, i)};
    }
    RF_DEVICE WithFifth of(const Raw &r, u32 i) {
        KScales s = KScales::of(r.scales, i % 8);
        return {{r.q, s.d, s.min}, r.fifth};
    }
};
