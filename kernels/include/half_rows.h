// Rows of f32 values, and of weights of every type, as rows of f16, each with a power of two: value = f16 * 2^exponent.
//
// The power brings the row's largest finite magnitude to 2^14 .. 2^15, so nothing overflows f16, and what is at least 2^-28 of the largest keeps
// f16's 11 bits. An infinite value or a NaN stays one.
#pragma once
#include "packed_fours.h"
#include "quant.h"
#include "team.h"

typedef _Float16 h8 __attribute__((ext_vector_type(8)));
struct HalfRowEight {
    f4 low, high;
    RF_DEVICE float largest(const HalfRowEight &v) {
        float top = 0.0f;
#pragma unroll
        for (u32 e = 0; e < 4; ++e) top = rf_max(top, rf_max(rf_abs(v.low[e]), rf_abs(v.high[e])));
        return top;
    }
    RF_DEVICE h8 scaled(const HalfRowEight &v, float factor) {
        f4 a = v.low * factor, b = v.high * factor;
        return h8{(_Float16)a.x, (_Float16)a.y, (_Float16)a.z, (_Float16)a.w, (_Float16)b.x, (_Float16)b.y, (_Float16)b.z, (_Float16)b.w};
    }
};

// The exponent of a row with this largest magnitude. That of zeros and of numbers too small to be normal is -126, the least.
RF_DEVICE i32 rf_half_exponent(float largest) {
    i32 e = (i32)(__builtin_bit_cast(u32, largest) >> 23); // 255: infinite
    e = e > 254 ? 254 : e;
    return e < 15 ? -126 : e - 141;
}
// 2^x for an x of -126 to 127.
RF_DEVICE float rf_power_of_two(i32 x) { return __builtin_bit_cast(float, (u32)(x + 127) << 23); }

// One row of k values, eight to a thread and step: `eight(c)` gives those from column c on, 0 beyond k. `to` has k rounded up to a multiple of
// 8 elements and begins at a multiple of 16 bytes.
template <class Team, class Eight> RF_DEVICE void rf_half_row(u32 k, _Float16 *__restrict__ to, i32 *__restrict__ exponent, Eight eight) {
    // Steps in registers. Those of longer rows are read twice, the second time from the caches.
    constexpr u32 HELD = 4, STEP = Team::width * 8;
    HalfRowEight held[HELD];
    float largest = 0.0f;
    u32 first = Team::lane() * 8;
#pragma unroll
    for (u32 s = 0; s < HELD; ++s) {
        held[s] = HalfRowEight{rf_splat(0.0f), rf_splat(0.0f)};
        if (s * STEP + first < k) held[s] = eight(s * STEP + first);
    }
#pragma unroll
    for (u32 s = 0; s < HELD; ++s) largest = rf_max(largest, HalfRowEight::largest(held[s]));
    for (u32 c = HELD * STEP + first; c < k; c += STEP) largest = rf_max(largest, HalfRowEight::largest(eight(c)));
    i32 power = rf_half_exponent(Team::max(largest));
    float factor = rf_power_of_two(-power);
    if (Team::lane() == 0) *exponent = power;
#pragma unroll
    for (u32 s = 0; s < HELD; ++s)
        if (s * STEP + first < k) *(h8 *)(to + s * STEP + first) = HalfRowEight::scaled(held[s], factor);
    for (u32 c = HELD * STEP + first; c < k; c += STEP) *(h8 *)(to + c) = HalfRowEight::scaled(eight(c), factor);
}

// Rows of weights. 32 lanes have a row of up to 1024 columns, a block has a longer one. grid = ceil(count / 8), or count.
template <class Row> RF_DEVICE void half_rows(_Float16 *to, i32 *exponents, u32 count, u32 k, u64 stride, Row row) {
    if (k <= 1024) {
        u32 r = Team32::row();
        if (r < count) rf_half_row<Team32>(k, to + r * stride, exponents + r, row(r));
    } else {
        u32 r = rf_block_x();
        rf_half_row<Team256>(k, to + r * stride, exponents + r, row(r));
    }
}

// Row r of ggml's order.
template <class W> struct RowOf {
    const u8 *row;
    u32 k;
    __attribute__((device, always_inline)) HalfRowEight operator()(u32 c) const {
        if constexpr (W::block == 1) {
            if (c + 8 <= k) return {W::four(row, c / 4), W::four(row, c / 4 + 1)};
            HalfRowEight v = {rf_splat(0.0f), rf_splat(0.0f)};
#pragma unroll
            for (u32 e = 0; e < 7; ++e)
                if (c + e < k) (e < 4 ? v.low : v.high)[e % 4] = W::one(row, c + e);
            return v;
        } else {
            const u8 *block = row + (u64)(c / W::block) * W::bytes;
            u32 i = c % W::block / 4;
            return {W::four(block, i), W::four(block, i + 1)};
        }
    }
};
// A row of a packed matrix, from its first block on.
template <class W> struct PackedRowOf {
    const u8 *w;
    u64 blocks;
    u32 first;
    __attribute__((device, always_inline)) HalfRowEight operator()(u32 c) const {
        u32 i = first + c / RF_Q8_BLOCK, f = c % RF_Q8_BLOCK / 4;
        return {W::four(w, blocks, i, f), W::four(w, blocks, i, f + 1)};
    }
};

#define RF_HALF_ROWS(name, W)                                                                                                      \
    RF_KERNEL(RF_ROW_BLOCK) half_rows_##name(const u8 *w, _Float16 *to, i32 *exponents, u32 count, u32 k, u64 stride) {            \
        half_rows(to, exponents, count, k, stride,                                                                                 \
                  [=](u32 r) __attribute__((always_inline)) { return RowOf<W>{w + r * (u64)(k / W::block) * W::bytes, k}; });      \
    }
#define RF_HALF_ROWS_PACKED(name, W)                                                                                               \
    RF_KERNEL(RF_ROW_BLOCK)                                                                                                        \
    half_rows_packed_##name(const u8 *w, _Float16 *to, i32 *exponents, u32 first, u32 count, u32 n, u32 k, u64 stride) {           \
        u32 row_blocks = k / RF_Q8_BLOCK;                                                                                          \
        half_rows(to, exponents, count, k, stride, [=](u32 r) __attribute__((always_inline)) {                                     \
            return PackedRowOf<W>{w, (u64)n * row_blocks, (first + r) * row_blocks};                                               \
        });                                                                                                                        \
    }
