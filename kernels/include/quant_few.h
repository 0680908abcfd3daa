// Weights of the types with a codebook, of one or two bits each, and of nvfp4, as four values at a time in f32: more types like those of quant.h.
//
// A codebook has the places of eight or four values in the list of its format's levels, low bits first: two bits where there are three levels, four bits where
// there are eight. A row of it is 16 bits. The files are those of the decoders on the CPU.
//
// What decodes is RF_ARITHMETIC, with its loads: lines of a decoder that is inlined eight times took as much room as its code.
#pragma once
#include "quant.h"

#define RF_CODEBOOK static const __attribute__((device, aligned(4))) u8

#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wc23-extensions"
RF_CODEBOOK rf_iq1[] = {
#embed "../../crates/rocmforge-gguf/src/blocks/grids/iq1.bin"
};
RF_CODEBOOK rf_iq2_xxs[] = {
#embed "../../crates/rocmforge-gguf/src/blocks/grids/iq2_xxs.bin"
};
RF_CODEBOOK rf_iq2_xs[] = {
#embed "../../crates/rocmforge-gguf/src/blocks/grids/iq2_xs.bin"
};
RF_CODEBOOK rf_iq2_s[] = {
#embed "../../crates/rocmforge-gguf/src/blocks/grids/iq2_s.bin"
};
RF_CODEBOOK rf_iq3_xxs[] = {
#embed "../../crates/rocmforge-gguf/src/blocks/grids/iq3_xxs.bin"
};
RF_CODEBOOK rf_iq3_s[] = {
#embed "../../crates/rocmforge-gguf/src/blocks/grids/iq3_s.bin"
};
#pragma clang diagnostic pop

RF_ARITHMETIC u32 rf_u16_at(const u8 *p) { return *(const u16 *)p; }
// Row `row` of a codebook.
RF_ARITHMETIC u32 rf_codes(const u8 *book, u32 row) { return rf_u16_at(book + 2 * row); }
// Four numbers of two and of four bits, in a byte each.
RF_ARITHMETIC u32 rf_four_of_2(u32 bits) {
    u32 pairs = bits | bits << 6;
    return (pairs | pairs << 12) & 0x03030303;
}
RF_ARITHMETIC u32 rf_four_of_4(u32 bits) {
    u32 pairs = (bits | bits << 8) & 0x00ff00ff;
    return (pairs | pairs << 4) & 0x0f0f0f0f;
}
// Nibble i of the bytes at p.
RF_ARITHMETIC u32 rf_nibble_at(const u8 *p, u32 i) { return p[i / 2] >> 4 * (i % 2) & 15; }
// Eight signs of which seven are stored: the number of negative ones is even.
RF_ARITHMETIC u32 rf_even_signs(u32 seven) {
    seven &= 127;
    return seven | (u32)(__builtin_popcount(seven) & 1) << 7;
}
// Scale times each of four bytes, negative where its bit is set.
RF_ARITHMETIC f4 rf_signed(u32 bytes, float scale, u32 signs) {
    u4 v = __builtin_bit_cast(u4, rf_bytes(bytes) * scale);
#pragma unroll
    for (u32 e = 0; e < 4; ++e) v[e] ^= (signs >> e & 1) << 31;
    return __builtin_bit_cast(f4, v);
}

// iq2_*: eight values of 8, 25 or 43, and a scale that is an odd number of eighths.
RF_ARITHMETIC f4 rf_iq2(u32 codes, u32 half, float d, u32 scale, u32 signs) {
    u32 c = rf_four_of_2(codes >> 8 * half & 255);
    return rf_signed(c * 17 + (c >> 1 & 0x01010101) + 0x08080808, d * (float)(2 * scale + 1) * 0.125f, signs >> 4 * half);
}
struct Iq2Xxs {
    static constexpr u32 block = 256, bytes = 66, gap = 1;
    RF_ARITHMETIC f4 four(const u8 *p, u32 i) {
        const u8 *group = p + 2 + 8 * (i / 8);
        u32 j = i / 2 % 4, signs = rf_word_at2(group + 4);
        return rf_iq2(rf_codes(rf_iq2_xxs, group[j]), i % 2, rf_half_at(p), signs >> 28, rf_even_signs(signs >> 7 * j));
    }
};
struct Iq2Xs {
    static constexpr u32 block = 256, bytes = 74, gap = 1;
    RF_ARITHMETIC f4 four(const u8 *p, u32 i) {
        u32 j = i / 2, q = rf_u16_at(p + 2 + 2 * j);
        return rf_iq2(rf_codes(rf_iq2_xs, q & 511), i % 2, rf_half_at(p), rf_nibble_at(p + 66, j / 2), rf_even_signs(q >> 9));
    }
};
struct Iq2S {
    static constexpr u32 block = 256, bytes = 82, gap = 1;
    RF_ARITHMETIC f4 four(const u8 *p, u32 i) {
        u32 j = i / 2, row = p[2 + j] | (p[66 + j / 4] >> 2 * (j % 4) & 3) << 8;
        return rf_iq2(rf_codes(rf_iq2_s, row), i % 2, rf_half_at(p), rf_nibble_at(p + 74, j / 2), p[34 + j]);
    }
};

// iq3_*: four values of eight levels, and a byte of signs for two fours.
struct Iq3Xxs {
    static constexpr u32 block = 256, bytes = 98, gap = 1;
    RF_ARITHMETIC f4 four(const u8 *p, u32 i) {
        u32 signs = rf_word_at2(p + 66 + 4 * (i / 8)), c = rf_four_of_4(rf_codes(rf_iq3_xxs, p[2 + i]));
        // 4 12 20 28 36 44 52 62
        u32 values = c * 8 + 0x04040404 + ((c + 0x01010101) >> 2 & 0x02020202);
        return rf_signed(values, rf_half_at(p) * (float)(2 * (signs >> 28) + 1) * 0.25f, rf_even_signs(signs >> 7 * (i % 8 / 2)) >> 4 * (i % 2));
    }
};
struct Iq3S {
    static constexpr u32 block = 256, bytes = 110, gap = 1;
    RF_ARITHMETIC f4 four(const u8 *p, u32 i) {
        u32 row = p[2 + i] | (p[66 + i / 8] >> i % 8 & 1) << 8;
        // 1 3 5 7 9 11 13 15
        u32 values = rf_four_of_4(rf_codes(rf_iq3_s, row)) * 2 + 0x01010101;
        return rf_signed(values, rf_half_at(p) * (float)(2 * rf_nibble_at(p + 106, i / 8) + 1), p[74 + i / 2] >> 4 * (i % 2));
    }
};

// iq1_*: eight values of -1, 0 or 1, all of them an eighth higher or lower.
RF_ARITHMETIC f4 rf_iq1_four(u32 row, u32 half, float d, u32 scale, bool down) {
    u32 c = rf_four_of_2(rf_codes(rf_iq1, row) >> 8 * half & 255);
    float factor = d * (float)(2 * scale + 1);
    return rf_scaled(rf_bytes(c), factor, factor * (down ? -1.125f : -0.875f));
}
struct Iq1S {
    static constexpr u32 block = 256, bytes = 50, gap = 1;
    RF_ARITHMETIC f4 four(const u8 *p, u32 i) {
        u32 j = i / 2, high = rf_u16_at(p + 34 + 2 * (j / 4));
        u32 row = p[2 + j] | (high >> 3 * (j % 4) & 7) << 8;
        return rf_iq1_four(row, i % 2, rf_half_at(p), high >> 12 & 7, high >> 15);
    }
};
struct Iq1M {
    static constexpr u32 block = 256, bytes = 56, gap = 1;
    RF_ARITHMETIC f4 four(const u8 *p, u32 i) {
        u32 j = i / 2, high = rf_nibble_at(p + 32, j), a = rf_word(p + 48), b = rf_word(p + 52);
        u32 scale = rf_u16_at(p + 48 + 2 * (j / 8)) >> 3 * (j / 2 % 4) & 7;
        // The highest nibbles of four numbers of 16 bits are the scale of the block.
        float d = rf_half((u16)((a >> 12 & 0xf) | (a >> 24 & 0xf0) | (b >> 4 & 0xf00) | (b >> 16 & 0xf000)));
        return rf_iq1_four(p[j] | (high & 7) << 8, i % 2, d, scale, high >> 3);
    }
};

// Ternary: -1, 0 or 1 times a scale.
struct Tq2_0 {
    static constexpr u32 block = 256, bytes = 66, gap = 8;
    RF_ARITHMETIC f4 four(const u8 *p, u32 i) {
        float d = rf_half_at(p + 64);
        u32 q = rf_word_at2(p + 32 * (i / 32) + 4 * (i % 8)) >> 2 * (i / 8 % 4) & 0x03030303;
        return rf_scaled(rf_bytes(q), d, -d);
    }
};
// Five digits of base 3 in a byte, as a fraction of 256: the next digit is what leaves the byte when it is multiplied by 3. The first 32 bytes have values
// 32 n .. 32 n + 31 as their digits n, the next 16 bytes those after 160, and four bytes the last 16 in four digits.
struct Tq1_0 {
    static constexpr u32 block = 256, bytes = 54, gap = 8;
    RF_ARITHMETIC f4 four(const u8 *p, u32 i) {
        u32 digit = i < 40 ? i / 8 : i < 60 ? (i - 40) / 4 : i - 60;
        u32 at = i < 40 ? i % 8 * 4 : i < 60 ? 32 + (i - 40) % 4 * 4 : 48;
        u32 power = digit == 0 ? 1 : digit == 1 ? 3 : digit == 2 ? 9 : digit == 3 ? 27 : 81;
        u32 word = rf_word_at2(p + at), q = 0;
#pragma unroll
        for (u32 e = 0; e < 4; ++e) q |= ((word >> 8 * e & 255) * power & 255) * 3 >> 8 << 8 * e;
        float d = rf_half_at(p + 52);
        return rf_scaled(rf_bytes(q), d, -d);
    }
};
// A bit: the scale, negative where it is not set.
struct Q1_0 {
    static constexpr u32 block = 128, bytes = 18, gap = 1;
    RF_ARITHMETIC f4 four(const u8 *p, u32 i) {
        float d = rf_half_at(p);
        return rf_signed(0x01010101, d, ~(p[2 + i / 2] >> 4 * (i % 2)));
    }
};
// -1, 0, 1 or 2 times a scale.
struct Q2_0 {
    static constexpr u32 block = 64, bytes = 18, gap = 1;
    RF_ARITHMETIC f4 four(const u8 *p, u32 i) {
        float d = rf_half_at(p);
        return rf_scaled(rf_bytes(rf_four_of_2(p[2 + i])), d, -d);
    }
};
// A float of 4 bits, and for 16 of them a scale of 8: E4M3 without its sign.
struct Nvfp4 {
    static constexpr u32 block = 64, bytes = 36, gap = 2;
    RF_ARITHMETIC f4 four(const u8 *p, u32 i) {
        u32 scale = p[i / 4];
        // Half its value, of which 0x7f is 0.
        u32 exponent = scale >> 3 & 15;
        float half = exponent ? __builtin_bit_cast(float, (exponent + 119) << 23 | (scale & 7) << 20) : (float)(scale & 7) * (1.0f / 1024);
        return rf_entries(rf_nibbles(rf_word(p + 4 + 8 * (i / 4) + 4 * (i % 2)), i / 2 % 2), RF_E2M1) * (scale == 0x7f ? 0.0f : half);
    }
};
