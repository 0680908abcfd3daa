// Weights from ggml's blocks to packed matrices: include/planes.h, planes_bits.h and planes_table.h.
#include "include/planes_bits.h"
#include "include/planes_table.h"
#include "include/team.h"

RF_DEVICE u32 word(const u8 *p) { return rf_word_at2(p); }
RF_DEVICE u32 half(const u8 *p) { return *(const u16 *)p; }
RF_DEVICE u4 words(const u8 *p) { return u4{word(p), word(p + 4), word(p + 8), word(p + 12)}; }
template <class T> RF_DEVICE void put(u8 *to, u64 skip, u64 i, T part) { ((T *)(to + skip))[i] = part; }

// 32 bits of 32 weights, bit i that of weight i, as rf_with_fifth reads them.
RF_DEVICE u32 spread(u32 bits) {
    u32 out = 0;
    for (u32 i = 0; i < 32; ++i) out |= (bits >> i & 1) << (i % 4 * 8 + i / 4);
    return out;
}
// Low (half 0) or high (half 1) nibbles of 32 bytes, as the low and high nibbles of 16.
RF_DEVICE u4 nibbles(const u8 *p, u32 half) {
    return (words(p) >> 4 * half & RF_LOW4) | (words(p + 16) >> 4 * half & RF_LOW4) << 4;
}
// Bit j of 32 bytes, as rf_with_fifth reads 32 bits.
RF_DEVICE u32 bits(const u8 *p, u32 j) {
    u32 out = 0;
    for (u32 t = 0; t < 8; ++t) out |= (word(p + 4 * t) >> j & 0x01010101) << t;
    return out;
}
// Bits 2 g and 2 g + 1 of 16 bytes, as rf_two_bits reads them, and of the next 16.
RF_DEVICE u32 two_bits_of(u4 w, u32 g) {
    w = w >> 2 * g & 0x03030303;
    return w.x | w.y << 2 | w.z << 4 | w.w << 6;
}
RF_DEVICE u2 two_bits(const u8 *p, u32 g) { return {two_bits_of(words(p), g), two_bits_of(words(p + 16), g)}; }
// The eight scales and minima of Q4_K and Q5_K, as KScales reads them.
RF_DEVICE u4 scales(const u8 *p) {
    u4 h = {word(p), 0, 0, 0};
    const u8 *s = p + 4;
    for (u32 j = 0; j < 8; ++j) {
        u32 scale = j < 4 ? s[j] & 63u : (s[j + 4] & 15u) | (u32)s[j - 4] >> 6 << 4;
        u32 min = j < 4 ? s[j + 4] & 63u : (u32)s[j + 4] >> 4 | (u32)s[j] >> 6 << 4;
        h.y |= (scale & 15) << 4 * j;
        h.z |= (min & 15) << 4 * j;
        h.w |= scale >> 4 << 2 * j | min >> 4 << (16 + 2 * j);
    }
    return h;
}

// The sixteen scales of Q3_K, as Q3Scales reads them.
RF_DEVICE Q3Scales q3_scales(const u8 *p) {
    u32 low[2] = {word(p), word(p + 4)}, high = word(p + 8);
    Q3Scales s = {0, 0, 0};
#pragma unroll
    for (u32 j = 0; j < 16; ++j) {
        u32 nibble = low[j / 4 % 2] >> 8 * (j % 4) >> 4 * (j / 8) & 15;
        (j % 2 ? s.second : s.first) |= nibble << 4 * (j / 2);
        s.high |= (high >> 8 * (j % 4) >> 2 * (j / 4) & 3) << 2 * j;
    }
    return s;
}

// Blocks 0 .. count of w become the blocks from `first` on of a packed matrix of n; `first` is a multiple of 8. A thread to 32 weights: i of w,
// `at` of the matrix. grid = ceil(count / 256).
#define RF_PACK(name)                                                                                                              \
    RF_DEVICE void name##_block(const u8 *w, u8 *to, u64 n, u64 i, u64 at);                                                        \
    RF_KERNEL(RF_FLAT_BLOCK) pack_##name(const u8 *w, u8 *to, u64 n, u64 first, u64 count) {                                       \
        u64 i = (u64)rf_block_x() * RF_FLAT_BLOCK + rf_thread();                                                                   \
        if (i < count) name##_block(w, to, n, i, first + i);                                                                       \
    }                                                                                                                              \
    RF_DEVICE void name##_block(const u8 *w, u8 *to, u64 n, u64 i, u64 at)

RF_PACK(q4_0) {
    const u8 *p = w + 18 * i;
    put<u4>(to, 0, at, words(p + 2));
    put<u16>(to, 16 * n, at, (u16)half(p));
}
RF_PACK(q4_1) {
    const u8 *p = w + 20 * i;
    put<u4>(to, 0, at, words(p + 4));
    put<u32>(to, 16 * n, at, word(p));
}
RF_PACK(q5_0) {
    const u8 *p = w + 22 * i;
    put<u4>(to, 0, at, words(p + 6));
    put<u32>(to, 16 * n, at, spread(word(p + 2)));
    put<u16>(to, 20 * n, at, (u16)half(p));
}
RF_PACK(q5_1) {
    const u8 *p = w + 24 * i;
    put<u4>(to, 0, at, words(p + 8));
    put<u32>(to, 16 * n, at, spread(word(p + 4)));
    put<u32>(to, 20 * n, at, word(p));
}
RF_PACK(q8_0) {
    const u8 *p = w + 34 * i;
    put<u4>(to, 0, at, words(p + 2));
    put<u4>(to, 16 * n, at, words(p + 18));
    put<u16>(to, 32 * n, at, (u16)half(p));
}
RF_PACK(q4_k) {
    const u8 *p = w + 144 * (i / 8);
    u32 j = i % 8;
    put<u4>(to, 0, at, nibbles(p + 16 + 32 * (j / 2), j % 2));
    if (j == 0) put<u4>(to, 16 * n, at / 8, scales(p));
}
RF_PACK(q5_k) {
    const u8 *p = w + 176 * (i / 8);
    u32 j = i % 8;
    put<u4>(to, 0, at, nibbles(p + 48 + 32 * (j / 2), j % 2));
    if (j == 0) put<u4>(to, 16 * n, at / 8, scales(p));
    put<u32>(to, 18 * n, at, bits(p + 16, j));
}
RF_PACK(q6_k) {
    const u8 *p = w + 210 * (i / 8);
    u32 j = i % 8, g = j % 4;
    put<u4>(to, 0, at, nibbles(p + 64 * (j / 4) + 32 * (g % 2), g / 2));
    put<u2>(to, 16 * n, at, two_bits(p + 128 + 32 * (j / 4), g));
    put<u16>(to, 24 * n, at, (u16)half(p + 192 + 2 * j));
    if (j == 0) put<u16>(to, 26 * n, at / 8, (u16)half(p + 208));
}
RF_PACK(iq4_nl) {
    const u8 *p = w + 18 * i;
    put<u4>(to, 0, at, words(p + 2));
    put<u16>(to, 16 * n, at, (u16)half(p));
}
RF_PACK(iq4_xs) {
    const u8 *p = w + 136 * (i / 8);
    u32 j = i % 8;
    put<u4>(to, 0, at, words(p + 8 + 16 * j));
    if (j == 0) put<u2>(to, 16 * n, at / 8, u2{word(p), word(p + 4)});
}
RF_PACK(mxfp4) {
    const u8 *p = w + 17 * i;
    put<u4>(to, 0, at, u4{rf_word_at1(p + 1), rf_word_at1(p + 5), rf_word_at1(p + 9), rf_word_at1(p + 13)});
    put<u8>(to, 16 * n, at, p[0]);
}
RF_PACK(q2_k) {
    const u8 *p = w + 84 * (i / 8);
    u32 j = i % 8;
    put<u2>(to, 0, at, two_bits(p + 16 + 32 * (j / 4), j % 4));
    put<u16>(to, 8 * n, at, (u16)half(p + 2 * j));
    if (j == 0) put<u32>(to, 10 * n, at / 8, word(p + 80));
}
RF_PACK(q3_k) {
    const u8 *p = w + 110 * (i / 8);
    u32 j = i % 8;
    put<u2>(to, 0, at, two_bits(p + 32 + 32 * (j / 4), j % 4));
    put<u32>(to, 8 * n, at, bits(p, j));
    if (j == 0) {
        put<Q3Scales>(to, 12 * n, at / 8, q3_scales(p + 96));
        put<u16>(to, 13 * n + n / 2, at / 8, (u16)half(p + 108));
    }
}
