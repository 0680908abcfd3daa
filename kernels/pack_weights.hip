// Weights from ggml's blocks to packed matrices: include/planes.h.
#include "include/planes.h"
#include "include/team.h"

typedef u32 u32_at2 __attribute__((aligned(2)));

RF_DEVICE u32 word(const u8 *p) { return *(const u32_at2 *)p; }
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
    u32 j = i % 8, fifth = 0;
    for (u32 b = 0; b < 32; ++b) fifth |= (u32)(p[16 + b] >> j & 1) << b;
    put<u4>(to, 0, at, nibbles(p + 48 + 32 * (j / 2), j % 2));
    if (j == 0) put<u4>(to, 16 * n, at / 8, scales(p));
    put<u32>(to, 18 * n, at, spread(fifth));
}
RF_PACK(q6_k) {
    const u8 *p = w + 210 * (i / 8);
    u32 j = i % 8, g = j % 4;
    const u8 *high = p + 128 + 32 * (j / 4);
    u2 bits = {0, 0};
    for (u32 b = 0; b < 16; ++b) {
        u32 at = b % 4 * 8 + b / 4 * 2;
        bits.x |= (u32)(high[b] >> 2 * g & 3) << at;
        bits.y |= (u32)(high[16 + b] >> 2 * g & 3) << at;
    }
    put<u4>(to, 0, at, nibbles(p + 64 * (j / 4) + 32 * (g % 2), g / 2));
    put<u2>(to, 16 * n, at, bits);
    put<u16>(to, 24 * n, at, (u16)half(p + 192 + 2 * j));
    if (j == 0) put<u16>(to, 26 * n, at / 8, (u16)half(p + 208));
}
