// Products of 16 x 16 tiles of signed bytes over blocks of 32 (q8.h), on the matrix unit of each target that has one for integers.
//
// d[a][b] = sum over 32 k of x[a][k] y[b][k]. Which elements of d a lane has is said by tile.h. Of x and y it has rows rf_tile_b(lane, 0 .. RF_TILE_B) of
// 16, and of each half of such a row RF_WORDS words of four k, which begin at word rf_part() * RF_WORDS.
//
// | target | instruction | words of a half |
// |---|---|---|
// | gfx11 | v_wmma_i32_16x16x16_iu8, twice | all four; lanes 16 to 31 repeat |
// | gfx12 | v_wmma_i32_16x16x16_iu8, twice | two from 2 (lane / 16) |
// | gfx90a | v_mfma_i32_16x16x16_i8, twice | word lane / 16 |
// | gfx942 | v_mfma_i32_16x16x32_i8 | word lane / 16 |
// | sm_80 | mma.sync m16n8k32, twice | word lane % 4 |
//
// Sources: as tile.h.
#pragma once
#include "q8.h"
#include "tile.h"

#if defined(__GFX11__)
#define RF_WORDS 4u
#elif defined(__GFX12__)
#define RF_WORDS 2u
#else
#define RF_WORDS 1u
#endif
typedef u32 RfWords __attribute__((ext_vector_type(RF_WORDS)));

// The a's of a lane: element i of d has number rf_tile_own(i) of them.
#if defined(__CUDA_ARCH__)
#define RF_TILE_A 4u
#else
#define RF_TILE_A RF_TILE
#endif
RF_DEVICE constexpr u32 rf_tile_own(u32 i) { return RF_TILE_A == RF_TILE ? i : i % 2 + i / 4 * 2; }

// Which words of a half the lane has.
RF_DEVICE u32 rf_part() {
#if defined(__CUDA_ARCH__)
    return rf_lane() % 4;
#elif defined(__GFX11__)
    return 0;
#else
    return rf_lane() / 16;
#endif
}

// What a lane has of 16 rows of a block.
struct RfBytes {
    RfWords low[RF_TILE_B], high[RF_TILE_B];
};

// The a's of a lane lie together in memory where row a of 16 has place rf_place(a); on NVIDIA two and two.
RF_DEVICE u32 rf_place(u32 a) {
#if defined(__GFX11__)
    return a % 2 * 8 + a / 2;
#else
    return a;
#endif
}
typedef u32 RfOwn __attribute__((ext_vector_type(RF_TILE_A), aligned(16)));
RF_DEVICE RfOwn rf_own_load(const u32 *sixteen) {
#if defined(__CUDA_ARCH__)
    u2 first = *(const u2 *)(sixteen + 2 * rf_part()), second = *(const u2 *)(sixteen + 2 * rf_part() + 8);
    return RfOwn{first.x, first.y, second.x, second.y};
#else
    return *(const RfOwn *)(sixteen + rf_lane() / 16 * RF_TILE_A);
#endif
}

// Rows of 16 bytes in LDS, one after the other: the low halves of 16 rows, and the high ones.
RF_DEVICE RfBytes rf_bytes_load(const u4 *low, const u4 *high) {
#if defined(__CUDA_ARCH__)
    // Lane l gives the address of row l % 8 of the matrix l / 8: low rows 0 to 7, low rows 8 to 15, high ones.
    u32 lane = rf_lane(), at = rf_shared_address((lane < 16 ? low : high) + lane % 16);
    u32 a, b, c, d;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(at) : "memory");
    return {{a, b}, {c, d}};
#else
    u32 at = rf_lane() % 16 * (4 / RF_WORDS) + rf_part();
    return {{((const RfWords *)low)[at]}, {((const RfWords *)high)[at]}};
#endif
}

// Which halves of the blocks are multiplied.
enum RfHalves { RF_LOW_HALF = 1, RF_HIGH_HALF = 2, RF_BOTH_HALVES = 3 };

// d + RF_TILE_FROM in f32, exact: no sum reaches 2^22. The integer sums begin at the bits of 1.5 * 2^23, so they are the bits of the float that lies so far above
// it, and nothing is converted.
#define RF_TILE_FROM 0x1.8p23f
#if defined(__CUDA_ARCH__)
template <u32 HALVES> RF_DEVICE RfTile rf_tile_bytes(const RfBytes &x, const RfBytes &y) {
    u32 from = __builtin_bit_cast(u32, RF_TILE_FROM);
    RfTile d;
#pragma unroll
    for (u32 half = 0; half < 2; ++half) {
        u32 c[4];
        if constexpr (HALVES == RF_BOTH_HALVES) {
            asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%10,%10,%10};"
                : "=r"(c[0]), "=r"(c[1]), "=r"(c[2]), "=r"(c[3])
                : "r"(y.low[0].x), "r"(y.low[1].x), "r"(y.high[0].x), "r"(y.high[1].x), "r"(x.low[half].x), "r"(x.high[half].x), "r"(from));
        } else {
            const RfWords(&xs)[2] = HALVES == RF_LOW_HALF ? x.low : x.high, (&ys)[2] = HALVES == RF_LOW_HALF ? y.low : y.high;
            asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%7,%7,%7};"
                : "=r"(c[0]), "=r"(c[1]), "=r"(c[2]), "=r"(c[3])
                : "r"(ys[0].x), "r"(ys[1].x), "r"(xs[half].x), "r"(from));
        }
#pragma unroll
        for (u32 e = 0; e < 4; ++e) d[4 * half + e] = __builtin_bit_cast(float, c[e]);
    }
    return d;
}
#else
typedef i32 RfSums __attribute__((ext_vector_type(RF_TILE)));
#if defined(__GFX11__)
RF_DEVICE RfSums rf_multiply_bytes(RfWords x, RfWords y, RfSums d) { return __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32(true, x, true, y, d, false); }
#elif defined(__GFX12__)
RF_DEVICE RfSums rf_multiply_bytes(RfWords x, RfWords y, RfSums d) { return __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32_gfx12(true, x, true, y, d, false); }
#elif defined(__gfx90a__)
RF_DEVICE RfSums rf_multiply_bytes(RfWords x, RfWords y, RfSums d) { return __builtin_amdgcn_mfma_i32_16x16x16i8((i32)x.x, (i32)y.x, d, 0, 0, 0); }
#endif
template <u32 HALVES> RF_DEVICE RfTile rf_tile_bytes(const RfBytes &x, const RfBytes &y) {
    RfSums d = RfSums(__builtin_bit_cast(i32, RF_TILE_FROM));
#if defined(__gfx942__)
    constexpr bool LOW = HALVES & RF_LOW_HALF, HIGH = HALVES & RF_HIGH_HALF;
    u64 xs = (LOW ? x.low[0].x : 0) | (u64)(HIGH ? x.high[0].x : 0) << 32, ys = (LOW ? y.low[0].x : 0) | (u64)(HIGH ? y.high[0].x : 0) << 32;
    d = __builtin_amdgcn_mfma_i32_16x16x32_i8((long)xs, (long)ys, d, 0, 0, 0);
#else
    if constexpr (HALVES & RF_LOW_HALF) d = rf_multiply_bytes(x.low[0], y.low[0], d);
    if constexpr (HALVES & RF_HIGH_HALF) d = rf_multiply_bytes(x.high[0], y.high[0], d);
#endif
    return __builtin_bit_cast(RfTile, d);
}
#endif
