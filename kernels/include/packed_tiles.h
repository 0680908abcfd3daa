// Packed weights (planes.h, planes_bits.h, planes_table.h) on their way to the matrix unit (tile.h), in f16.
//
// A type is a struct with PLANES, the arrays of 16 bytes for each block that a matrix begins with; OWN and own(w, blocks, i, to), the words of a block beside
// them; SHARED and shared(w, blocks, i, to), those that eight neighbours share; and of(q, own, shared, i), the lane's bytes of a block and the scales of the block.
// A weight is (byte - LESS) * scale (+ minimum). HALVES: each half of a block has a scale. MIN: there is a minimum. WIDE: a scale may be beyond f16.
//
// A run is RF_RUN neighbouring blocks of a row, which a wave takes at a time. Of the rows rf_tile_b(lane, 0 .. RF_TILE_B) a lane has RF_BLOCKS blocks of a run, the
// s-th of which is block rf_block_of(s), and of each half of such a block, 16 weights, RF_WORDS words of four bytes, which begin at word rf_first_word(). They are
// y of RF_PRODUCTS products (tile.h) for each half. NVIDIA's four lanes that share rows have a block of the run each, whole, since narrow loads of many rows are what
// the first cache has least room for: a product has four weights of each of four blocks, and of its 16 k neighbours are 0, 1, 8 and 9 of them.
#pragma once
#include "planes_bits.h"
#include "planes_table.h"
#include "tile.h"

#if defined(__CUDA_ARCH__)
#define RF_RUN 4u
#define RF_BLOCKS 1u
#define RF_WORDS 4u
#define RF_PRODUCTS 4u
#else
#define RF_RUN 2u
#define RF_BLOCKS 2u
#define RF_WORDS (RF_PART / 4u)
#define RF_PRODUCTS 1u
#endif
typedef u32 RfWords __attribute__((ext_vector_type(RF_WORDS)));
RF_DEVICE u32 rf_block_of(u32 s) { return RF_BLOCKS == RF_RUN ? s : rf_lane() % 4; }
RF_DEVICE u32 rf_first_word() { return RF_WORDS == 4 ? 0 : rf_lane() / 16 * RF_WORDS; }

// Signed bytes, 128 more.
RF_DEVICE RfWords rf_more(RfWords q) { return q ^ 0x80808080u; }
// The lane's words of `bits`, in which word t of a half lies from bit BITS * t of each byte on.
template <u32 BITS> RF_DEVICE RfWords rf_bits(u32 bits) {
    RfWords q;
#pragma unroll
    for (u32 e = 0; e < RF_WORDS; ++e) q[e] = bits >> BITS * (rf_first_word() + e) & (BITS == 2 ? 0x03030303u : 0x01010101u);
    return q;
}

// The words of a block; the scales and minima of its halves. Those of types with one scale are the first ones.
struct TileWords {
    RfWords low, high;
};
struct TileScales {
    float d[2];
    float min[2] = {};
};
struct TileBlock {
    TileWords q;
    TileScales s;
};
RF_DEVICE TileWords rf_tile_nibbles(RfWords q) { return {q & RF_LOW4, q >> 4 & RF_LOW4}; }
RF_DEVICE TileWords rf_tile_fifth(RfWords q, u32 fifth) {
    return {(q & RF_LOW4) | rf_bits<1>(fifth) << 4, (q >> 4 & RF_LOW4) | rf_bits<1>(fifth >> 4) << 4};
}

// f16 scale; f16 scale and minimum in a word.
struct OneScale {
    static constexpr bool HALVES = false, MIN = false, WIDE = false;
    static constexpr u32 PLANES = 1, OWN = 1, SHARED = 0, LESS = 0;
    RF_DEVICE void shared(const u8 *, u64, u32, u32 *) {}
};
struct ScaleAndMin : OneScale {
    static constexpr bool MIN = true;
    RF_DEVICE TileScales scales(u32 dm) { return {{rf_f16(dm)}, {rf_f16(dm >> 16)}}; }
};
// The scales of eight blocks of a K-quant.
struct WithKScales {
    static constexpr bool HALVES = false, MIN = true, WIDE = false;
    static constexpr u32 PLANES = 1, SHARED = 4, LESS = 0;
    RF_DEVICE void shared(const u8 *w, u64 blocks, u32 i, u32 *to) {
        u4 h = rf_part<u4>(w, 16 * blocks, i / 8);
        to[0] = h.x, to[1] = h.y, to[2] = h.z, to[3] = h.w;
    }
    RF_DEVICE TileScales scales(const u32 *shared, u32 i) {
        KScales s = KScales::of(u4{shared[0], shared[1], shared[2], shared[3]}, i % 8);
        return {{s.d}, {s.min}};
    }
};
RF_DEVICE void rf_two_words(u2 from, u32 *to) { to[0] = from.x, to[1] = from.y; }

struct TileQ4_0 : OneScale {
    static constexpr u32 LESS = 8;
    RF_DEVICE void own(const u8 *w, u64 blocks, u32 i, u32 *to) { to[0] = rf_part<u16>(w, 16 * blocks, i); }
    RF_DEVICE TileBlock of(const RfWords *q, const u32 *own, const u32 *, u32) { return {rf_tile_nibbles(q[0]), {{rf_f16(own[0])}}}; }
};
struct TileQ4_1 : ScaleAndMin {
    RF_DEVICE void own(const u8 *w, u64 blocks, u32 i, u32 *to) { to[0] = rf_part<u32>(w, 16 * blocks, i); }
    RF_DEVICE TileBlock of(const RfWords *q, const u32 *own, const u32 *, u32) { return {rf_tile_nibbles(q[0]), scales(own[0])}; }
};
struct TileQ5_0 : OneScale {
    static constexpr u32 OWN = 2, LESS = 16;
    RF_DEVICE void own(const u8 *w, u64 blocks, u32 i, u32 *to) { to[0] = rf_part<u32>(w, 16 * blocks, i), to[1] = rf_part<u16>(w, 20 * blocks, i); }
    RF_DEVICE TileBlock of(const RfWords *q, const u32 *own, const u32 *, u32) {
        return {rf_tile_fifth(q[0], own[0]), {{rf_f16(own[1])}}};
    }
};
struct TileQ5_1 : ScaleAndMin {
    static constexpr u32 OWN = 2;
    RF_DEVICE void own(const u8 *w, u64 blocks, u32 i, u32 *to) { to[0] = rf_part<u32>(w, 16 * blocks, i), to[1] = rf_part<u32>(w, 20 * blocks, i); }
    RF_DEVICE TileBlock of(const RfWords *q, const u32 *own, const u32 *, u32) { return {rf_tile_fifth(q[0], own[0]), scales(own[1])}; }
};
struct TileQ8_0 : OneScale {
    static constexpr u32 PLANES = 2, LESS = 128;
    RF_DEVICE void own(const u8 *w, u64 blocks, u32 i, u32 *to) { to[0] = rf_part<u16>(w, 32 * blocks, i); }
    RF_DEVICE TileBlock of(const RfWords *q, const u32 *own, const u32 *, u32) { return {{rf_more(q[0]), rf_more(q[1])}, {{rf_f16(own[0])}}}; }
};
struct TileQ4K : WithKScales {
    static constexpr u32 OWN = 0;
    RF_DEVICE void own(const u8 *, u64, u32, u32 *) {}
    RF_DEVICE TileBlock of(const RfWords *q, const u32 *, const u32 *shared, u32 i) { return {rf_tile_nibbles(q[0]), scales(shared, i)}; }
};
struct TileQ5K : WithKScales {
    static constexpr u32 OWN = 1;
    RF_DEVICE void own(const u8 *w, u64 blocks, u32 i, u32 *to) { to[0] = rf_part<u32>(w, 18 * blocks, i); }
    RF_DEVICE TileBlock of(const RfWords *q, const u32 *own, const u32 *shared, u32 i) { return {rf_tile_fifth(q[0], own[0]), scales(shared, i)}; }
};
struct TileQ6K {
    static constexpr bool HALVES = true, MIN = false, WIDE = false;
    static constexpr u32 PLANES = 1, OWN = 3, SHARED = 1, LESS = 32;
    RF_DEVICE void own(const u8 *w, u64 blocks, u32 i, u32 *to) {
        rf_two_words(rf_part<u2>(w, 16 * blocks, i), to);
        to[2] = rf_part<u16>(w, 24 * blocks, i);
    }
    RF_DEVICE void shared(const u8 *w, u64 blocks, u32 i, u32 *to) { to[0] = rf_part<u16>(w, 26 * blocks, i / 8); }
    RF_DEVICE TileBlock of(const RfWords *q, const u32 *own, const u32 *shared, u32) {
        TileWords v = rf_tile_nibbles(q[0]);
        v.low |= rf_bits<2>(own[0]) << 4, v.high |= rf_bits<2>(own[1]) << 4;
        float d = rf_f16(shared[0]);
        i32 scales = (short)own[2];
        return {v, {{d * (float)(signed char)scales, d * (float)(scales >> 8)}}};
    }
};
struct TileQ2K {
    static constexpr bool HALVES = true, MIN = true, WIDE = false;
    static constexpr u32 PLANES = 0, OWN = 3, SHARED = 1, LESS = 0;
    RF_DEVICE void own(const u8 *w, u64 blocks, u32 i, u32 *to) {
        rf_two_words(rf_part<u2>(w, 0, i), to);
        to[2] = rf_part<u16>(w, 8 * blocks, i);
    }
    RF_DEVICE void shared(const u8 *w, u64 blocks, u32 i, u32 *to) { to[0] = rf_part<u32>(w, 10 * blocks, i / 8); }
    RF_DEVICE TileBlock of(const RfWords *, const u32 *own, const u32 *shared, u32 i) {
        PackedQ2K s = PackedQ2K::of({u2{own[0], own[1]}, shared[0], (u16)own[2]}, i);
        return {{rf_bits<2>(own[0]), rf_bits<2>(own[1])}, {{s.low_d, s.high_d}, {s.low_min, s.high_min}}};
    }
};
struct TileQ3K {
    static constexpr bool HALVES = true, MIN = false, WIDE = false;
    static constexpr u32 PLANES = 0, OWN = 3, SHARED = 4, LESS = 4;
    RF_DEVICE void own(const u8 *w, u64 blocks, u32 i, u32 *to) {
        rf_two_words(rf_part<u2>(w, 0, i), to);
        to[2] = rf_part<u32>(w, 8 * blocks, i);
    }
    RF_DEVICE void shared(const u8 *w, u64 blocks, u32 i, u32 *to) {
        Q3Scales s = rf_part<Q3Scales>(w, 12 * blocks, i / 8);
        to[0] = s.first, to[1] = s.second, to[2] = s.high, to[3] = rf_part<u16>(w, 13 * blocks + blocks / 2, i / 8);
    }
    RF_DEVICE TileBlock of(const RfWords *, const u32 *own, const u32 *shared, u32 i) {
        PackedQ3K s = PackedQ3K::of({u2{own[0], own[1]}, own[2], {shared[0], shared[1], shared[2]}, (u16)shared[3]}, i);
        TileWords q = {rf_bits<2>(own[0]) | rf_bits<1>(own[2]) << 2, rf_bits<2>(own[1]) | rf_bits<1>(own[2] >> 4) << 2};
        return {q, {{s.low_d, s.high_d}}};
    }
};
// 128 more than the signed bytes of a table.
template <u64 LOW, u64 HIGH> RF_DEVICE TileWords rf_tile_table(RfWords q) {
    constexpr u64 MORE = 0x8080808080808080u;
    TileWords v;
#pragma unroll
    for (u32 e = 0; e < RF_WORDS; ++e) {
        u2 bytes = rf_look_up(q[e], LOW ^ MORE, HIGH ^ MORE);
        v.low[e] = bytes.x, v.high[e] = bytes.y;
    }
    return v;
}
struct TileIq4Nl : TileQ4_0 {
    static constexpr u32 LESS = 128;
    RF_DEVICE TileBlock of(const RfWords *q, const u32 *own, const u32 *, u32) { return {rf_tile_table<RF_IQ4>(q[0]), {{rf_f16(own[0])}}}; }
};
struct TileIq4Xs : OneScale {
    static constexpr u32 OWN = 0, SHARED = 2, LESS = 128;
    RF_DEVICE void own(const u8 *, u64, u32, u32 *) {}
    RF_DEVICE void shared(const u8 *w, u64 blocks, u32 i, u32 *to) { rf_two_words(rf_part<u2>(w, 16 * blocks, i / 8), to); }
    RF_DEVICE TileBlock of(const RfWords *q, const u32 *, const u32 *shared, u32 i) {
        return {rf_tile_table<RF_IQ4>(q[0]), {{rf_iq4_xs_scale(u2{shared[0], shared[1]}, i % 8)}}};
    }
};
struct TileMxfp4 : OneScale {
    static constexpr bool WIDE = true;
    static constexpr u32 LESS = 128;
    RF_DEVICE void own(const u8 *w, u64 blocks, u32 i, u32 *to) { to[0] = rf_part<u8>(w, 16 * blocks, i); }
    RF_DEVICE TileBlock of(const RfWords *q, const u32 *own, const u32 *, u32) { return {rf_tile_table<RF_E2M1>(q[0]), {{rf_mxfp4_scale(own[0])}}}; }
};

// Four bytes as f16, 1024 more.
typedef _Float16 h2 __attribute__((ext_vector_type(2)));
struct HalfFour {
    h2 first, second;
};
RF_DEVICE HalfFour rf_half_four(u32 bytes) {
    constexpr u32 MORE = 0x64646464u;
#if defined(__CUDA_ARCH__)
    u32 first = __nvvm_prmt(bytes, MORE, 0x4140), second = __nvvm_prmt(bytes, MORE, 0x4342);
#else
    u32 first = __builtin_amdgcn_perm(MORE, bytes, 0x04010400), second = __builtin_amdgcn_perm(MORE, bytes, 0x04030402);
#endif
    return {__builtin_bit_cast(h2, first), __builtin_bit_cast(h2, second)};
}
// Weights are 2^RF_LIFT times what they are: gfx90a's matrix unit takes f16 below the normal numbers, 2^-14, as 0.
#if defined(__gfx90a__)
#define RF_LIFT 8
#else
#define RF_LIFT 0
#endif
RF_DEVICE h2 rf_two_halves(float x) {
    _Float16 half = (_Float16)(RF_LIFT ? x * (float)(1 << RF_LIFT) : x);
    return h2{half, half};
}

// The largest scale of the blocks that a product has of a row, where a type is WIDE: the weights are relative to it. A scale of mxfp4 is neither 0 nor infinite.
RF_DEVICE float rf_top_scale(TileBlock &block) {
    float d = block.s.d[0], top = d;
#if defined(__CUDA_ARCH__)
    top = rf_max(top, rf_shuffle_xor<1>(top));
    top = rf_max(top, rf_shuffle_xor<2>(top));
    float up = top < 1.0f ? 0x1p100f : 0x1p-100f; // keeps the inverse normal
    block.s.d[0] = d * up * rf_rcp(top * up);
#endif
    return top;
}
// Whether the lane's scales are those of the weights in f16. Otherwise what a product has of a row has one scale, which its sums are multiplied by.
template <class W> RF_DEVICE constexpr bool rf_scales_weights() { return !W::WIDE || RF_BLOCKS < RF_RUN; }

// The weights of half `half` of blocks of the lane's rows: y of product `product`. Those of WIDE types are without their scale, or relative to the largest.
template <class W> RF_DEVICE RfPart<RfHalf> rf_tile_weights(const TileBlock (&blocks)[RF_TILE_B], u32 half, u32 product) {
    constexpr u32 WORDS = RF_WORDS / RF_PRODUCTS;
    constexpr _Float16 LESS = 1024 + W::LESS;
    RfPart<RfHalf> y;
#pragma unroll
    for (u32 b = 0; b < RF_TILE_B; ++b) {
        const TileBlock &block = blocks[b];
        h2 d = rf_two_halves(block.s.d[W::HALVES ? half : 0]), min = rf_two_halves(block.s.min[W::HALVES ? half : 0]);
#pragma unroll
        for (u32 e = 0; e < WORDS; ++e) {
            HalfFour four = rf_half_four((half ? block.q.high : block.q.low)[product * WORDS + e]);
            h2 pairs[2] = {four.first - LESS, four.second - LESS};
#pragma unroll
            for (u32 p = 0; p < 2; ++p) {
                if constexpr (W::MIN) {
                    pairs[p] = pairs[p] * d + min;
                } else if constexpr (rf_scales_weights<W>()) {
                    pairs[p] *= d;
                }
                u32 at = RF_TILE_B == 2 ? 2 * (2 * p + b) : 4 * e + 2 * p;
                y.v[at] = pairs[p].x, y.v[at + 1] = pairs[p].y;
            }
        }
    }
    return y;
}

#if defined(__CUDA_ARCH__)
// 16 bytes that nobody reads again, of 128 neighbours that will all be read: those come from memory together.
RF_DEVICE u4 rf_get_line(const u4 *p) {
    u4 v;
    asm("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
    return v;
}
#endif

// Rows of weights on their way from memory: a lane's row for each of its b's. The loads of the next run are in flight while one is used.
template <class W> struct RowFeed {
    // Without arrays of no elements.
    static constexpr u32 PLANES = W::PLANES ? W::PLANES : 1, OWN = W::OWN ? W::OWN : 1, SHARED = W::SHARED ? W::SHARED : 1;
    const u8 *w;
    u64 blocks;
    u32 begin, row_blocks; // of the row
    RfWords q[RF_BLOCKS][PLANES];
    u32 own[RF_BLOCKS][OWN], shared[RF_BLOCKS][SHARED];

    // Block s of the run that begins at block `first` of the row.
    __attribute__((device, always_inline)) void fetch(u32 s, u32 first) {
        u32 i = begin + rf_min(first + rf_block_of(s), row_blocks - 1);
#pragma unroll
        for (u32 p = 0; p < W::PLANES; ++p) {
#if defined(__CUDA_ARCH__)
            q[s][p] = rf_get_line((const u4 *)(w + 16 * p * blocks) + i);
#else
            q[s][p] = ((const RfWords *)(w + 16 * p * blocks))[(u64)i * (4 / RF_WORDS) + rf_first_word() / RF_WORDS];
#endif
        }
        W::own(w, blocks, i, own[s]);
        W::shared(w, blocks, i, shared[s]);
    }
    // Block s of the run that begins at block `first`, which has been fetched.
    __attribute__((device, always_inline)) TileBlock block(u32 s, u32 first) const { return W::of(q[s], own[s], shared[s], begin + first + rf_block_of(s)); }
};
