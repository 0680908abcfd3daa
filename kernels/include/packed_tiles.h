// Packed weights (planes.h, planes_bits.h, planes_table.h) as signed bytes for the matrix unit (tile8.h).
//
// A type is a struct with PLANES, the arrays of 16 bytes for each block that a matrix begins with; OWN and own(w, blocks, i, to), the words of a block beside
// them; SHARED and shared(w, blocks, i, to), those that eight neighbours share; and of(q, own, shared, i), the lane's bytes of a block and what they are
// multiplied with. HALVES: each half of a block has a scale. MIN: the sums of the activations count with a minimum. WIDE: scales may be over 2^100.
#pragma once
#include "planes_bits.h"
#include "planes_table.h"
#include "tile8.h"

// Bytes below 128 less `less`, as signed bytes.
RF_DEVICE RfWords rf_less(RfWords q, u32 less) { return ((q | 0x80808080u) - less * 0x01010101u) ^ 0x80808080u; }
// The lane's words of `bits`, in which word t of a half lies from bit BITS * t of each byte on.
template <u32 BITS> RF_DEVICE RfWords rf_bits(u32 bits) {
    RfWords q;
#pragma unroll
    for (u32 e = 0; e < RF_WORDS; ++e) q[e] = bits >> BITS * (rf_part() * RF_WORDS + e) & (BITS == 2 ? 0x03030303u : 0x01010101u);
    return q;
}

#if defined(__CUDA_ARCH__)
// A word of the lane whose number differs in the bits of MASK, and that of one of the four lanes that share rows.
template <u32 MASK> RF_DEVICE u32 rf_swap(u32 x) { return (u32)__nvvm_shfl_sync_bfly_i32(0xffffffffu, (i32)x, MASK, 31); }
RF_DEVICE u32 rf_of_four(u32 x, u32 lane) { return (u32)__nvvm_shfl_sync_idx_i32(0xffffffffu, (i32)x, (i32)((rf_lane() & 28) | lane), 31); }
#endif

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
RF_DEVICE TileWords rf_tile_less(TileWords q, u32 less) { return {rf_less(q.low, less), rf_less(q.high, less)}; }

// f16 scale; f16 scale and minimum in a word.
struct OneScale {
    static constexpr bool HALVES = false, MIN = false, WIDE = false;
    static constexpr u32 PLANES = 1, OWN = 1, SHARED = 0;
    RF_DEVICE void shared(const u8 *, u64, u32, u32 *) {}
};
struct ScaleAndMin : OneScale {
    static constexpr bool MIN = true;
    RF_DEVICE TileScales scales(u32 dm) { return {{rf_f16(dm)}, {rf_f16(dm >> 16)}}; }
};
// The scales of eight blocks of a K-quant.
struct WithKScales {
    static constexpr bool HALVES = false, MIN = true, WIDE = false;
    static constexpr u32 PLANES = 1, SHARED = 4;
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
    RF_DEVICE void own(const u8 *w, u64 blocks, u32 i, u32 *to) { to[0] = rf_part<u16>(w, 16 * blocks, i); }
    RF_DEVICE TileBlock of(const RfWords *q, const u32 *own, const u32 *, u32) { return {rf_tile_less(rf_tile_nibbles(q[0]), 8), {{rf_f16(own[0])}}}; }
};
struct TileQ4_1 : ScaleAndMin {
    RF_DEVICE void own(const u8 *w, u64 blocks, u32 i, u32 *to) { to[0] = rf_part<u32>(w, 16 * blocks, i); }
    RF_DEVICE TileBlock of(const RfWords *q, const u32 *own, const u32 *, u32) { return {rf_tile_nibbles(q[0]), scales(own[0])}; }
};
struct TileQ5_0 : OneScale {
    static constexpr u32 OWN = 2;
    RF_DEVICE void own(const u8 *w, u64 blocks, u32 i, u32 *to) { to[0] = rf_part<u32>(w, 16 * blocks, i), to[1] = rf_part<u16>(w, 20 * blocks, i); }
    RF_DEVICE TileBlock of(const RfWords *q, const u32 *own, const u32 *, u32) {
        return {rf_tile_less(rf_tile_fifth(q[0], own[0]), 16), {{rf_f16(own[1])}}};
    }
};
struct TileQ5_1 : ScaleAndMin {
    static constexpr u32 OWN = 2;
    RF_DEVICE void own(const u8 *w, u64 blocks, u32 i, u32 *to) { to[0] = rf_part<u32>(w, 16 * blocks, i), to[1] = rf_part<u32>(w, 20 * blocks, i); }
    RF_DEVICE TileBlock of(const RfWords *q, const u32 *own, const u32 *, u32) { return {rf_tile_fifth(q[0], own[0]), scales(own[1])}; }
};
struct TileQ8_0 : OneScale {
    static constexpr u32 PLANES = 2;
    RF_DEVICE void own(const u8 *w, u64 blocks, u32 i, u32 *to) { to[0] = rf_part<u16>(w, 32 * blocks, i); }
    RF_DEVICE TileBlock of(const RfWords *q, const u32 *own, const u32 *, u32) { return {{q[0], q[1]}, {{rf_f16(own[0])}}}; }
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
    static constexpr u32 PLANES = 1, OWN = 3, SHARED = 1;
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
        return {rf_tile_less(v, 32), {{d * (float)(signed char)scales, d * (float)(scales >> 8)}}};
    }
};
struct TileQ2K {
    static constexpr bool HALVES = true, MIN = true, WIDE = false;
    static constexpr u32 PLANES = 0, OWN = 3, SHARED = 1;
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
    static constexpr u32 PLANES = 0, OWN = 3, SHARED = 4;
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
        return {rf_tile_less(q, 4), {{s.low_d, s.high_d}}};
    }
};
template <u64 LOW, u64 HIGH> RF_DEVICE TileWords rf_tile_table(RfWords q) {
    TileWords v;
#pragma unroll
    for (u32 e = 0; e < RF_WORDS; ++e) {
        u2 bytes = rf_look_up(q[e], LOW, HIGH);
        v.low[e] = bytes.x, v.high[e] = bytes.y;
    }
    return v;
}
struct TileIq4Nl : TileQ4_0 {
    RF_DEVICE TileBlock of(const RfWords *q, const u32 *own, const u32 *, u32) { return {rf_tile_table<RF_IQ4>(q[0]), {{rf_f16(own[0])}}}; }
};
struct TileIq4Xs : OneScale {
    static constexpr u32 OWN = 0, SHARED = 2;
    RF_DEVICE void own(const u8 *, u64, u32, u32 *) {}
    RF_DEVICE void shared(const u8 *w, u64 blocks, u32 i, u32 *to) { rf_two_words(rf_part<u2>(w, 16 * blocks, i / 8), to); }
    RF_DEVICE TileBlock of(const RfWords *q, const u32 *, const u32 *shared, u32 i) {
        return {rf_tile_table<RF_IQ4>(q[0]), {{rf_iq4_xs_scale(u2{shared[0], shared[1]}, i % 8)}}};
    }
};
struct TileMxfp4 : OneScale {
    static constexpr bool WIDE = true;
    RF_DEVICE void own(const u8 *w, u64 blocks, u32 i, u32 *to) { to[0] = rf_part<u8>(w, 16 * blocks, i); }
    RF_DEVICE TileBlock of(const RfWords *q, const u32 *own, const u32 *, u32) { return {rf_tile_table<RF_E2M1>(q[0]), {{rf_mxfp4_scale(own[0])}}}; }
};

// Rows of weights on their way from memory: a lane's row for each of its b's. A wave takes RF_RUN neighbouring blocks of each row at a time, and the loads of its
// next run are in flight while it uses one.
#if defined(__CUDA_ARCH__)
#define RF_RUN 4u
#else
#define RF_RUN 2u
#endif
template <class W> struct RowFeed {
    // Without arrays of no elements.
    static constexpr u32 PLANES = W::PLANES ? W::PLANES : 1, OWN = W::OWN ? W::OWN : 1, SHARED = W::SHARED ? W::SHARED : 1;
    const u8 *w;
    u64 blocks;
    u32 begin, row_blocks; // of the row
#if defined(__CUDA_ARCH__)
    // The four lanes that share a row load one block of the run each, whole, since narrow loads of many rows are what the first cache has least
    // room for; and give each other their words.
    u4 wide[PLANES];
    u32 next_own[OWN], next_shared[SHARED];
    RfWords q[RF_RUN][PLANES];
    u32 own[OWN], shared[SHARED];

    __attribute__((device, always_inline)) void fetch(u32 first) {
        u32 i = begin + rf_min(first + rf_part(), row_blocks - 1);
#pragma unroll
        for (u32 p = 0; p < W::PLANES; ++p) wide[p] = rf_get_once((const u4 *)(w + 16 * p * blocks) + i);
        W::own(w, blocks, i, next_own);
        W::shared(w, blocks, i, next_shared);
    }
    // The run that was fetched is now used, and the one from block `first` on is fetched.
    __attribute__((device, always_inline)) void turn(u32 first) {
#pragma unroll
        for (u32 p = 0; p < W::PLANES; ++p) {
            u4 v = wide[p];
            bool odd = rf_part() & 1, upper = rf_part() & 2;
            u32 a = rf_swap<1>(odd ? v.x : v.y), b = rf_swap<1>(odd ? v.z : v.w);
            v = odd ? u4{a, v.y, b, v.w} : u4{v.x, a, v.z, b};
            u32 c = rf_swap<2>(upper ? v.x : v.z), d = rf_swap<2>(upper ? v.y : v.w);
            v = upper ? u4{c, d, v.z, v.w} : u4{v.x, v.y, c, d};
            q[0][p] = v.x, q[1][p] = v.y, q[2][p] = v.z, q[3][p] = v.w;
        }
#pragma unroll
        for (u32 e = 0; e < W::OWN; ++e) own[e] = next_own[e];
#pragma unroll
        for (u32 e = 0; e < W::SHARED; ++e) shared[e] = next_shared[e];
        fetch(first);
    }
    // Block s of the run, the row's block i.
    __attribute__((device, always_inline)) TileBlock block(u32 s, u32 i) {
        u32 of_block[OWN], of_eight[SHARED];
#pragma unroll
        for (u32 e = 0; e < W::OWN; ++e) of_block[e] = rf_of_four(own[e], s);
#pragma unroll
        for (u32 e = 0; e < W::SHARED; ++e) of_eight[e] = rf_of_four(shared[e], s);
        return W::of(q[s], of_block, of_eight, begin + i);
    }
    __attribute__((device, always_inline)) void used(u32, u32) {}
#else
    RfWords q[RF_RUN][PLANES];
    u32 own[RF_RUN][OWN], shared[RF_RUN][SHARED];

    __attribute__((device, always_inline)) void fetch_block(u32 s, u32 i) {
        i = begin + rf_min(i, row_blocks - 1);
#pragma unroll
        for (u32 p = 0; p < W::PLANES; ++p) q[s][p] = ((const RfWords *)(w + 16 * p * blocks))[(u64)i * (4 / RF_WORDS) + rf_part()];
        W::own(w, blocks, i, own[s]);
        W::shared(w, blocks, i, shared[s]);
    }
    __attribute__((device, always_inline)) void fetch(u32 first) {
#pragma unroll
        for (u32 s = 0; s < RF_RUN; ++s) fetch_block(s, first + s);
    }
    __attribute__((device, always_inline)) void turn(u32) {}
    __attribute__((device, always_inline)) TileBlock block(u32 s, u32 i) { return W::of(q[s], own[s], shared[s], begin + i); }
    // Block s of the run has been taken: its place is that of the next run's block, the row's block i.
    __attribute__((device, always_inline)) void used(u32 s, u32 i) { fetch_block(s, i); }
#endif
};
