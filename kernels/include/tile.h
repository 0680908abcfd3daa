// Products of 16 x 16 tiles of 16-bit floats with f32 sums, on the matrix unit of each target.
//
// d[a][b] += sum over 16 k of x[a][k] y[b][k]. A wave (RF_WAVE lanes) holds x, y and d together: a lane has RF_TILE elements of d, at
// a = rf_tile_a(lane, i), b = rf_tile_b(lane, i), of RF_TILE_B different b. What follows needs no more: a row of scores (b a query,
// a a key) is reduced within the lane and then by rf_tile_max or rf_tile_sum, and rf_tile_y makes d the y of a further product.
//
// | target | instruction | x and y of a lane | d of a lane |
// |---|---|---|---|
// | gfx11 | v_wmma 16x16x16 | row lane % 16, all k; lanes 16 to 31 repeat | b = lane % 16, a = 2 i + lane / 16 |
// | gfx12 | v_wmma 16x16x16 | row lane % 16, k from 8 (lane / 16) | b = lane % 16, a = 8 (lane / 16) + i |
// | gfx90a, gfx942 | v_mfma 16x16x16, waves of 64 | row lane % 16, k from 4 (lane / 16) | b = lane % 16, a = 4 (lane / 16) + i |
// | sm_80 | mma.sync m16n8k16, twice | rows lane / 4 and + 8, k from 2 (lane % 4) and + 8 | b = lane / 4 and + 8, a = 2 (lane % 4) + i % 2 and + 8 |
// | gfx1030 | v_fma_mix or v_fma | as gfx11; rows of x in lanes 16 to 31 in pairs swapped | as gfx11 |
//
// Sources: AMD's matrix instruction calculator; PTX ISA 8.0, "Matrix multiply-accumulate operation".
#pragma once
#include "rf.h"

typedef _Float16 RfHalf;
typedef __bf16 RfBfloat;

#if defined(__gfx90a__) || defined(__gfx942__)
#define RF_WAVE 64u
#define RF_TILE 4u
#define RF_PART 4u
#else
#define RF_WAVE 32u
#define RF_TILE 8u
#if defined(__CUDA_ARCH__) || defined(__GFX12__)
#define RF_PART 8u
#else
#define RF_PART 16u
#endif
#endif

#if defined(__CUDA_ARCH__)
#define RF_TILE_B 2u
#else
#define RF_TILE_B 1u
#endif

// How often a loop around products is unrolled: without a matrix unit a product is a loop of its own.
#if defined(__CUDA_ARCH__) || defined(__GFX11__) || defined(__GFX12__) || defined(__gfx90a__) || defined(__gfx942__)
#define RF_TILE_UNROLL(times) times
#else
#define RF_TILE_UNROLL(times) 1
#endif

// What a lane holds of 16 rows of 16 elements.
template <class T> struct RfPart {
    typedef T Type __attribute__((ext_vector_type(RF_PART)));
    Type v;
};
// What a lane holds of d.
typedef float RfTile __attribute__((ext_vector_type(RF_TILE)));

// The products before this point are computed before it. The compiler would move them behind a barrier, to where they are used, and keep all
// of their operands until then.
RF_DEVICE void rf_tile_finish(RfTile &d) {
#if defined(__CUDA_ARCH__)
    (void)d;
#else
    asm volatile("" : "+v"(d));
#endif
}

// A number that is the same in all lanes of a wave, as one the compiler knows to be so: addresses made of it take no vector registers.
RF_DEVICE u32 rf_uniform(u32 x) {
#if defined(__CUDA_ARCH__)
    return x;
#else
    return (u32)__builtin_amdgcn_readfirstlane((i32)x);
#endif
}

RF_DEVICE u32 rf_lane() { return rf_thread() % RF_WAVE; }

RF_DEVICE u32 rf_tile_a(u32 lane, u32 i) {
#if defined(__CUDA_ARCH__)
    return 8 * (i / 4) + 2 * (lane % 4) + i % 2;
#elif defined(__GFX12__)
    return 8 * (lane / 16) + i;
#elif defined(__gfx90a__) || defined(__gfx942__)
    return 4 * (lane / 16) + i;
#else
    return 2 * i + lane / 16;
#endif
}
// Whether the lane is the first of those that share its b's.
RF_DEVICE bool rf_tile_first(u32 lane) { return RF_TILE_B == 2 ? lane % 4 == 0 : lane < 16; }
// Which of the lane's b's element i has: below RF_TILE_B.
RF_DEVICE constexpr u32 rf_tile_which(u32 i) { return RF_TILE_B == 2 ? i / 2 % 2 : 0; }
RF_DEVICE u32 rf_tile_b(u32 lane, u32 which) { return RF_TILE_B == 2 ? lane / 4 + 8 * which : lane % 16; }

#if defined(__CUDA_ARCH__)

// The lane's row and its first k: lane l gives the address of row l % 8 of the 8 x 8 matrix l / 8.
RF_DEVICE u32 rf_x_row() { return rf_lane() % 16; }
RF_DEVICE u32 rf_y_row() { return rf_lane() % 16; }
template <class T> RF_DEVICE RfPart<T> rf_row_load(const T *row, u32 piece, u32 swizzle) {
    u32 at = rf_shared_address(row + ((piece + rf_lane() / 16) ^ swizzle) * 8);
    typedef u32 Words __attribute__((ext_vector_type(4)));
    Words r;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w)
                 : "r"(at)
                 : "memory");
    return {__builtin_bit_cast(typename RfPart<T>::Type, r)};
}

#define RF_MMA(type)                                                                                                                   \
    asm("mma.sync.aligned.m16n8k16.row.col.f32." type "." type ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"           \
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                                                                               \
        : "r"(y[0]), "r"(y[1]), "r"(y[2]), "r"(y[3]), "r"(x0), "r"(x1))
template <class T> RF_DEVICE void rf_tile_multiply(RfTile &d, RfPart<T> xs, RfPart<T> ys) {
    typedef u32 u32x4 __attribute__((ext_vector_type(4)));
    u32x4 x = __builtin_bit_cast(u32x4, xs.v), y = __builtin_bit_cast(u32x4, ys.v);
#pragma unroll
    for (u32 half = 0; half < 2; ++half) {
        float c[4] = {d[4 * half], d[4 * half + 1], d[4 * half + 2], d[4 * half + 3]};
        u32 x0 = x[half], x1 = x[half + 2];
        if constexpr (__is_same(T, RfHalf)) {
            RF_MMA("f16");
        } else {
            RF_MMA("bf16");
        }
#pragma unroll
        for (u32 e = 0; e < 4; ++e) d[4 * half + e] = c[e];
    }
}
#undef RF_MMA

RF_DEVICE float rf_tile_max(float x) {
    x = rf_max(x, rf_shuffle_xor<1>(x));
    return rf_max(x, rf_shuffle_xor<2>(x));
}
RF_DEVICE float rf_tile_sum(float x) {
    x += rf_shuffle_xor<1>(x);
    return x + rf_shuffle_xor<2>(x);
}

// d as y: rows b, k = a. Element order of the registers: (b, k 0..7), (b + 8, k 0..7), (b, k 8..15), (b + 8, k 8..15).
template <class T> RF_DEVICE RfPart<T> rf_tile_y(RfTile d) {
    typename RfPart<T>::Type v;
#pragma unroll
    for (u32 i = 0; i < 8; ++i) v[i] = (T)d[i];
    return {v};
}

#else

RF_DEVICE u32 rf_y_row() { return rf_lane() % 16; }
#if defined(__GFX11__) || defined(__GFX12__) || defined(__gfx90a__) || defined(__gfx942__)
RF_DEVICE u32 rf_x_row() { return rf_lane() % 16; }
#else
RF_DEVICE u32 rf_x_row() { return rf_lane() % 16 ^ rf_lane() / 16; }
#endif

template <class T> RF_DEVICE RfPart<T> rf_row_load(const T *row, u32 piece, u32 swizzle) {
    RfPart<T> part;
    if constexpr (RF_PART == 16) {
        typedef T Piece __attribute__((ext_vector_type(8)));
        Piece first = *(const Piece *)(row + (piece ^ swizzle) * 8), second = *(const Piece *)(row + ((piece + 1) ^ swizzle) * 8);
        part.v = __builtin_shufflevector(first, second, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    } else {
        u32 k = rf_lane() / 16 * RF_PART;
        part.v = *(const typename RfPart<T>::Type *)(row + ((piece + k / 8) ^ swizzle) * 8 + k % 8);
    }
    return part;
}

#if defined(__GFX11__)
RF_DEVICE void rf_tile_multiply(RfTile &d, RfPart<RfHalf> x, RfPart<RfHalf> y) {
    d = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(x.v, y.v, d);
}
RF_DEVICE void rf_tile_multiply(RfTile &d, RfPart<RfBfloat> x, RfPart<RfBfloat> y) {
    typedef short Bits __attribute__((ext_vector_type(16)));
    d = __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(__builtin_bit_cast(Bits, x.v), __builtin_bit_cast(Bits, y.v), d);
}
#elif defined(__GFX12__)
RF_DEVICE void rf_tile_multiply(RfTile &d, RfPart<RfHalf> x, RfPart<RfHalf> y) {
    d = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(x.v, y.v, d);
}
RF_DEVICE void rf_tile_multiply(RfTile &d, RfPart<RfBfloat> x, RfPart<RfBfloat> y) {
    typedef short Bits __attribute__((ext_vector_type(8)));
    d = __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32_gfx12(__builtin_bit_cast(Bits, x.v), __builtin_bit_cast(Bits, y.v), d);
}
#elif defined(__gfx90a__) || defined(__gfx942__)
RF_DEVICE void rf_tile_multiply(RfTile &d, RfPart<RfHalf> x, RfPart<RfHalf> y) {
    d = __builtin_amdgcn_mfma_f32_16x16x16f16(x.v, y.v, d, 0, 0, 0);
}
RF_DEVICE void rf_tile_multiply(RfTile &d, RfPart<RfBfloat> x, RfPart<RfBfloat> y) {
    typedef short Bits __attribute__((ext_vector_type(4)));
    d = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(__builtin_bit_cast(Bits, x.v), __builtin_bit_cast(Bits, y.v), d, 0, 0, 0);
}
#else
// No matrix unit: row_share gives every lane of 16 the same row of x; the swapped pairs make that row 2 i in lanes 0 to 15 and 2 i + 1 in
// lanes 16 to 31.
template <u32 I, class T> RF_ARITHMETIC float rf_tile_row(float sum, u32 x, float y0, float y1) {
    typedef T Pair __attribute__((ext_vector_type(2)));
    Pair pair = __builtin_bit_cast(Pair, (u32)__builtin_amdgcn_update_dpp(0, (i32)x, 0x150 + 2 * I, 0xf, 0xf, true));
    return rf_fma((float)pair.y, y1, rf_fma((float)pair.x, y0, sum));
}
template <class T> RF_DEVICE void rf_tile_multiply(RfTile &d, RfPart<T> xs, RfPart<T> ys) {
    typedef u32 Words __attribute__((ext_vector_type(8)));
    Words x = __builtin_bit_cast(Words, xs.v);
#pragma unroll
    for (u32 w = 0; w < 8; ++w) {
        // Each product converts its operands anew: kept as floats, they would be spilled.
        asm volatile("" : "+v"(x[w]));
        float y0 = (float)ys.v[2 * w], y1 = (float)ys.v[2 * w + 1];
        d[0] = rf_tile_row<0, T>(d[0], x[w], y0, y1);
        d[1] = rf_tile_row<1, T>(d[1], x[w], y0, y1);
        d[2] = rf_tile_row<2, T>(d[2], x[w], y0, y1);
        d[3] = rf_tile_row<3, T>(d[3], x[w], y0, y1);
        d[4] = rf_tile_row<4, T>(d[4], x[w], y0, y1);
        d[5] = rf_tile_row<5, T>(d[5], x[w], y0, y1);
        d[6] = rf_tile_row<6, T>(d[6], x[w], y0, y1);
        d[7] = rf_tile_row<7, T>(d[7], x[w], y0, y1);
    }
}
#endif

// The value of the lane whose number differs by 32, in waves of 64.
#if defined(__gfx90a__) || defined(__gfx942__)
RF_DEVICE float rf_other_half(float x) {
    u32 from = (rf_lane() ^ 32) * 4;
    return __builtin_bit_cast(float, __builtin_amdgcn_ds_bpermute((i32)from, __builtin_bit_cast(i32, x)));
}
RF_DEVICE float rf_tile_max(float x) {
    x = rf_max(x, rf_shuffle_xor<16>(x));
    return rf_max(x, rf_other_half(x));
}
RF_DEVICE float rf_tile_sum(float x) {
    x += rf_shuffle_xor<16>(x);
    return x + rf_other_half(x);
}
#else
RF_DEVICE float rf_tile_max(float x) { return rf_max(x, rf_shuffle_xor<16>(x)); }
RF_DEVICE float rf_tile_sum(float x) { return x + rf_shuffle_xor<16>(x); }
#endif

// d as y: rows b, k = a.
template <class T> RF_DEVICE RfPart<T> rf_tile_y(RfTile d) {
    typename RfPart<T>::Type v;
#if defined(__GFX12__) || defined(__gfx90a__) || defined(__gfx942__)
#pragma unroll
    for (u32 i = 0; i < RF_TILE; ++i) v[i] = (T)d[i];
#else
    // A lane has every second k, the lane 16 further the others.
    typedef T Pair __attribute__((ext_vector_type(2)));
    bool upper = rf_lane() >= 16;
#pragma unroll
    for (u32 i = 0; i < 4; ++i) {
        Pair pair = {(T)d[2 * i], (T)d[2 * i + 1]};
        u32 own = __builtin_bit_cast(u32, pair);
        u32 other = (u32)__builtin_amdgcn_permlanex16((i32)own, (i32)own, 0x76543210, (i32)0xfedcba98, false, false);
        u32 even = upper ? other : own, odd = upper ? own : other;
        u32 first = __builtin_amdgcn_perm(odd, even, 0x05040100), second = __builtin_amdgcn_perm(odd, even, 0x07060302);
        Pair a = __builtin_bit_cast(Pair, first), b = __builtin_bit_cast(Pair, second);
        v[4 * i] = a.x, v[4 * i + 1] = a.y, v[4 * i + 2] = b.x, v[4 * i + 3] = b.y;
    }
#endif
    return {v};
}
#endif

// x or y from 16 rows in LDS that lie `stride` elements apart and begin at multiples of 16 bytes. rf_row_load takes the lane's own row, and the
// piece of 8 elements to begin at; piece p lies at p ^ swizzle.
template <class T> RF_DEVICE RfPart<T> rf_x_load(const T *tile, u32 stride) { return rf_row_load(tile + rf_x_row() * stride, 0, 0); }
template <class T> RF_DEVICE RfPart<T> rf_y_load(const T *tile, u32 stride) { return rf_row_load(tile + rf_y_row() * stride, 0, 0); }
