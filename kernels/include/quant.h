// Weights of every type, as four values at a time in f32.
//
// A type is a struct with `block` (weights that share a scale; they lie along k), `bytes` (of a block), `gap` (fours between the two
// that come from the same packed bytes: reading them together reads the bytes once) and four(p, i), the weights 4 i .. 4 i + 3 of the
// block at p. The formats are ggml's, little endian. A block is as aligned as its size is even, so wider loads say what they can
// rely on: AMD's targets load any address at once, in PTX the compiler splits the load.
//
// Products of a scale and a weight are exact in f32, or rounded once, so the values are those of the definition.
#pragma once
#include "table16.h"

typedef unsigned char u8;
typedef unsigned short u16;
typedef u32 u32_at1 __attribute__((aligned(1)));
typedef u32 u32_at2 __attribute__((aligned(2)));

RF_DEVICE u32 rf_word(const u8 *p) { return *(const u32 *)p; }
RF_DEVICE u32 rf_word_at1(const u8 *p) { return *(const u32_at1 *)p; }
RF_DEVICE u32 rf_word_at2(const u8 *p) { return *(const u32_at2 *)p; }
// A scale becomes f32 once, not in each product with it.
RF_DEVICE float rf_half(u16 bits) { return rf_opaque((float)__builtin_bit_cast(_Float16, bits)); }
RF_DEVICE float rf_half_at(const u8 *p) { return rf_opaque((float)*(const _Float16 *)p); }
RF_DEVICE float rf_bf16(u16 bits) { return __builtin_bit_cast(float, (u32)bits << 16); }

// The four bytes of a word, from 0 to 255 each.
RF_DEVICE f4 rf_bytes(u32 w) {
    w = rf_opaque(w); // masked already, all four at once
    return f4{(float)(w & 255), (float)(w >> 8 & 255), (float)(w >> 16 & 255), (float)(w >> 24)};
}
// factor * v + add
RF_DEVICE f4 rf_scaled(f4 v, float factor, float add) {
    return f4{rf_fma(v.x, factor, add), rf_fma(v.y, factor, add), rf_fma(v.z, factor, add), rf_fma(v.w, factor, add)};
}
// Low (half 0) or high (half 1) nibbles of four bytes.
RF_DEVICE u32 rf_nibbles(u32 w, u32 half) { return w >> 4 * half & 0x0f0f0f0f; }
// Bits 0 to 3 become bit 4 of the four bytes.
RF_DEVICE u32 rf_fifth_bits(u32 w) { return (w & 1) << 4 | (w & 2) << 11 | (w & 4) << 18 | (w & 8) << 25; }

// Blocks of one weight. gap 1: 8 neighbours. A row may start at any multiple of a weight, and end within a four.
struct F32 {
    static constexpr u32 block = 1, bytes = 4, gap = 1;
    RF_DEVICE float one(const u8 *row, u32 k) { return ((const float *)row)[k]; }
    RF_DEVICE f4 four(const u8 *row, u32 i) { return rf_get4((const float *)row + 4 * i); }
};
// Two loads of a word rather than four of a weight, wherever the row starts.
struct F16 {
    static constexpr u32 block = 1, bytes = 2, gap = 1;
    RF_DEVICE float one(const u8 *row, u32 k) { return (float)((const _Float16 *)row)[k]; }
    RF_DEVICE f4 four(const u8 *row, u32 i) {
        u32 a = rf_word_at2(row + 8 * i), b = rf_word_at2(row + 8 * i + 4);
        typedef _Float16 Halves __attribute__((ext_vector_type(2)));
        Halves low = __builtin_bit_cast(Halves, a), high = __builtin_bit_cast(Halves, b);
        return f4{(float)low.x, (float)low.y, (float)high.x, (float)high.y};
    }
};
struct Bf16 {
    static constexpr u32 block = 1, bytes = 2, gap = 1;
    RF_DEVICE float one(const u8 *row, u32 k) { return rf_bf16(((const u16 *)row)[k]); }
    RF_DEVICE f4 four(const u8 *row, u32 i) {
        u32 a = rf_word_at2(row + 8 * i), b = rf_word_at2(row + 8 * i + 4);
        return f4{rf_bf16((u16)a), __builtin_bit_cast(float, a & 0xffff0000), rf_bf16((u16)b),
                  __builtin_bit_cast(float, b & 0xffff0000)};
    }
};

// Blocks of 32. Weights 0 to 15 are the low nibbles of the 16 bytes `qs`, 16 to 31 the high ones.
struct Q4_0 {
    static constexpr u32 block = 32, bytes = 18, gap = 4;
    RF_DEVICE f4 four(const u8 *p, u32 i) {
        float d = rf_half_at(p);
        return rf_scaled(rf_bytes(rf_nibbles(rf_word_at2(p + 2 + 4 * (i % 4)), i / 4)), d, -8.0f * d);
    }
};
struct Q4_1 {
    static constexpr u32 block = 32, bytes = 20, gap = 4;
    RF_DEVICE f4 four(const u8 *p, u32 i) {
        u32 scales = rf_word(p);
        return rf_scaled(rf_bytes(rf_nibbles(rf_word(p + 4 + 4 * (i % 4)), i / 4)), rf_half((u16)scales), rf_half((u16)(scales >> 16)));
    }
};
struct Q5_0 {
    static constexpr u32 block = 32, bytes = 22, gap = 4;
    RF_DEVICE f4 four(const u8 *p, u32 i) {
        float d = rf_half_at(p);
        u32 q = rf_nibbles(rf_word_at2(p + 6 + 4 * (i % 4)), i / 4) | rf_fifth_bits(rf_word_at2(p + 2) >> 4 * i);
        return rf_scaled(rf_bytes(q), d, -16.0f * d);
    }
};
struct Q5_1 {
    static constexpr u32 block = 32, bytes = 24, gap = 4;
    RF_DEVICE f4 four(const u8 *p, u32 i) {
        u32 scales = rf_word(p);
        u32 q = rf_nibbles(rf_word(p + 8 + 4 * (i % 4)), i / 4) | rf_fifth_bits(rf_word(p + 4) >> 4 * i);
        return rf_scaled(rf_bytes(q), rf_half((u16)scales), rf_half((u16)(scales >> 16)));
    }
};
struct Q8_0 {
    static constexpr u32 block = 32, bytes = 34, gap = 1;
    RF_DEVICE f4 four(const u8 *p, u32 i) {
        float d = rf_half_at(p);
        // With its top bit flipped a signed byte is its value plus 128.
        return rf_scaled(rf_bytes(rf_word_at2(p + 2 + 4 * i) ^ 0x80808080), d, -128.0f * d);
    }
};

// Four entries of a table of 16 signed bytes (table16.h), each byte of `n` from 0 to 15.
RF_DEVICE f4 rf_entries(u32 n, u64 low, u64 high) {
    u32 v = rf_look_up(n, low, high).x;
    return f4{(float)(signed char)v, (float)(signed char)(v >> 8), (float)(signed char)(v >> 16), (float)((i32)v >> 24)};
}
// -127 -104 -83 -65 -49 -35 -22 -10, 1 13 25 38 53 69 89 113
#define RF_IQ4 0xf6eaddcfbfad9881ull, 0x7159453526190d01ull
// 0 1 2 3 4 6 8 12, 0 -1 -2 -3 -4 -6 -8 -12: twice the values of a 4-bit float
#define RF_E2M1 0x0c08060403020100ull, 0xf4f8fafcfdfeff00ull

// 2^(e - 128); denormal for an e of 0 or 1.
RF_DEVICE float rf_mxfp4_scale(u32 e) { return __builtin_bit_cast(float, e < 2 ? 0x00200000u << e : (e - 1) << 23); }

struct Iq4Nl {
    static constexpr u32 block = 32, bytes = 18, gap = 4;
    RF_DEVICE f4 four(const u8 *p, u32 i) {
        return rf_entries(rf_nibbles(rf_word_at2(p + 2 + 4 * (i % 4)), i / 4), RF_IQ4) * rf_half_at(p);
    }
};
struct Mxfp4 {
    static constexpr u32 block = 32, bytes = 17, gap = 4;
    RF_DEVICE f4 four(const u8 *p, u32 i) {
        return rf_entries(rf_nibbles(rf_word_at1(p + 1 + 4 * (i % 4)), i / 4), RF_E2M1) * rf_mxfp4_scale(p[0]);
    }
};

// Blocks of 256, in parts of 16 or 32 with a scale each.
struct Q2K {
    static constexpr u32 block = 256, bytes = 84, gap = 8;
    RF_DEVICE f4 four(const u8 *p, u32 i) {
        u32 scales = rf_word(p + 80), own = p[i / 4];
        u32 q = rf_word(p + 16 + 32 * (i / 32) + 4 * (i % 8)) >> 2 * (i / 8 % 4) & 0x03030303;
        return rf_scaled(rf_bytes(q), rf_half((u16)scales) * (float)(own & 15), -rf_half((u16)(scales >> 16)) * (float)(own >> 4));
    }
};
struct Q3K {
    static constexpr u32 block = 256, bytes = 110, gap = 8;
    RF_DEVICE f4 four(const u8 *p, u32 i) {
        u32 j = i / 4;
        u32 own = (p[96 + j % 8] >> 4 * (j / 8) & 15) | (p[104 + j % 4] >> 2 * (j / 4) & 3) << 4;
        float d = rf_half_at(p + 108) * (float)((i32)own - 32);
        u32 q = rf_word_at2(p + 32 + 32 * (i / 32) + 4 * (i % 8)) >> 2 * (i / 8 % 4) & 0x03030303;
        q |= (rf_word_at2(p + 4 * (i % 8)) >> i / 8 & 0x01010101) << 2;
        return rf_scaled(rf_bytes(q), d, -4.0f * d);
    }
};

// Scale and minimum of part j of Q4_K and Q5_K: two f16 and 12 bytes with 6 bits each, read at once.
struct SixBits {
    float scale, min;
    RF_DEVICE SixBits of(const u8 *p, u32 j) {
        typedef u32 Words __attribute__((ext_vector_type(4), aligned(4)));
        Words w = *(const Words *)p;
        u32 at = 8 * (j % 4);
        u32 a = w.y >> at & 255, b = w.z >> at & 255, c = w.w >> at & 255;
        u32 scale = j < 4 ? a & 63 : (c & 15) | a >> 6 << 4;
        u32 min = j < 4 ? b & 63 : c >> 4 | b >> 6 << 4;
        return {rf_half((u16)w.x) * (float)scale, -rf_half((u16)(w.x >> 16)) * (float)min};
    }
};
struct Q4K {
    static constexpr u32 block = 256, bytes = 144, gap = 8;
    RF_DEVICE f4 four(const u8 *p, u32 i) {
        u32 j = i / 8;
        SixBits s = SixBits::of(p, j);
        return rf_scaled(rf_bytes(rf_nibbles(rf_word(p + 16 + 32 * (j / 2) + 4 * (i % 8)), j % 2)), s.scale, s.min);
    }
};
struct Q5K {
    static constexpr u32 block = 256, bytes = 176, gap = 8;
    RF_DEVICE f4 four(const u8 *p, u32 i) {
        u32 j = i / 8;
        SixBits s = SixBits::of(p, j);
        u32 q = rf_nibbles(rf_word(p + 48 + 32 * (j / 2) + 4 * (i % 8)), j % 2);
        q |= (rf_word(p + 16 + 4 * (i % 8)) >> j & 0x01010101) << 4;
        return rf_scaled(rf_bytes(q), s.scale, s.min);
    }
};
struct Q6K {
    static constexpr u32 block = 256, bytes = 210, gap = 16;
    RF_DEVICE f4 four(const u8 *p, u32 i) {
        u32 group = i / 8 % 4;
        float d = rf_half_at(p + 208) * (float)(signed char)p[192 + i / 4];
        u32 q = rf_nibbles(rf_word_at2(p + 64 * (i / 32) + 32 * (group % 2) + 4 * (i % 8)), group / 2);
        q |= (rf_word_at2(p + 128 + 32 * (i / 32) + 4 * (i % 8)) >> 2 * group & 0x03030303) << 4;
        return rf_scaled(rf_bytes(q), d, -32.0f * d);
    }
};
struct Iq4Xs {
    static constexpr u32 block = 256, bytes = 136, gap = 4;
    RF_DEVICE f4 four(const u8 *p, u32 i) {
        u32 group = i / 8, scales = rf_word(p);
        u32 own = (p[4 + group / 2] >> 4 * (group % 2) & 15) | (scales >> 16 >> 2 * group & 3) << 4;
        float d = rf_half((u16)scales) * (float)((i32)own - 32);
        return rf_entries(rf_nibbles(rf_word(p + 8 + 16 * group + 4 * (i % 4)), i / 4 % 2), RF_IQ4) * d;
    }
};
