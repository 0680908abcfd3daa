// Attention of many tokens over a paged cache of 16 bits or in q8_0 on the matrix unit: the formula of paged_attention.hip, the main loop of attention16_{type}.hip
// (attention16_block.h). For chunks of prompts.
//
// A block has 16 WAVES tokens and one head. It does the runs of its tokens (runs.h) one after the other, each with its own keys: what a token
// gets does not depend on sequences beside its own. Queries are rounded to f16, or to a cache's bf16, each multiplied by a power of two before and its scores by the
// inverse, so that none overflows. Blocks of the cache hold a power of two of keys, 16 or more: 16 keys from a multiple of 16 on lie in one block.
// grid = (heads, 1, ceil(tokens / (16 WAVES))), the last tokens first.
//
// A block number out of range is a fault of the first token that sees it; its keys are NaN, so that every token that sees one gets NaN.
#pragma once
#include "attention16_block.h"
#include "cache_eights.h"
#include "floats.h"
#include "quantize.h"
#include "range16.h"
#include "runs.h"

// One head of one run.
template <class C, u32 D, u32 BK, bool EXTRA> struct Pages16 {
    typedef typename C::Type Type;
    typedef typename C::Raw Raw;
    typedef float Out;
    __attribute__((device, always_inline)) static Chunk chunk(const Raw &raw) { return C::chunk(raw); }
    static constexpr bool IN_PARTS = false;
    const float *q;
    const u8 *k, *v;
    const u32 *blocks;
    float *out, *factors; // factors: one for each query of the block, in LDS
    float inverse_cap;
    const float *sink; // in LDS, of the head: one more logit of the softmax, without a key; -inf: none
    u32 row, column, own_column; // bytes between the keys of two tokens, and to the head's; elements to the head's queries
    u32 first_key, keys;         // the first key that is seen, and one past the last
    bool reports;             // whether this thread reports faults
    u32 first, end, position; // the run's tokens, and the first one's place in the sequence
    u32 shift; // of a block's keys
    const Paged &p;
    u32 held[BK / 16] = {}; // the blocks of a tile's keys, 16 by 16

    // What follows from it is computed for each run anew: kept over all runs, it would take registers that the main loop needs.
    __attribute__((device, always_inline)) u32 thread() const { return rf_opaque(rf_thread()); }
    __attribute__((device, always_inline)) u32 token(u32 row) const { return row; }
    __attribute__((device, always_inline)) Chunk query(u32 i, u32 token, u32 piece) const {
        f4 a = rf_splat(0.0f), b = a;
        if (token < end && piece * 8 < p.head_dim) {
            const float *in = q + (u64)token * p.heads * p.head_dim + own_column + piece * 8;
            a = rf_get4(in), b = rf_get4(in + 4);
        }
        u32 top = 0;
#pragma unroll
        for (u32 e = 0; e < 4; ++e) top = rf_larger_of(top, rf_larger_of(rf_magnitude(a[e]), rf_magnitude(b[e])));
        if constexpr (D >= 256) top = rf_larger<16>(top);
        if constexpr (D >= 128) top = rf_larger<8>(top);
        top = rf_larger<4>(top);
        top = rf_larger<2>(top);
        top = rf_larger<1>(top);
        Range16 range = rf_range16(top);
        if (piece == 0) factors[i] = range.down;
        typedef Type Halves __attribute__((ext_vector_type(8)));
        Halves halves;
#pragma unroll
        for (u32 e = 0; e < 4; ++e) halves[e] = (Type)(a[e] * range.up), halves[e + 4] = (Type)(b[e] * range.up);
        return __builtin_bit_cast(Chunk, halves);
    }
    __attribute__((device, always_inline)) float factor(u32 i) const { return factors[i]; }
    __attribute__((device, always_inline)) void look(u32 k0) {
#pragma unroll
        for (u32 g = 0; g < BK / 16; ++g) {
            u32 key = k0 + 16 * g;
            bool seen = key < keys && key + 16 > first_key;
            u32 block = seen ? blocks[key >> shift] : 0;
            held[g] = narrow(block);
            if (held[g] >= p.blocks && reports) {
                u32 later = key > position ? key - position : 0;
                rf_fault(p.fault, p.tag, first + later, held[g]);
            }
        }
    }
    // Where the tile's 16 keys of group g lie in their block.
    __attribute__((device, always_inline)) u64 place(u32 block, u32 key) const { return ((u64)block * p.block_size + (key & (p.block_size - 1))) * row; }
    // 8 elements of key k0 + i from a cache. An own part of i stays within 16 keys, or has none to add to.
    __attribute__((device, always_inline)) Raw get(const u8 *x, u32 k0, Own16 i, Own16 piece, Raw absent) const {
        Raw raw = {};
        u32 key = k0 + i.own + i.common;
        if ((piece.own + piece.common) * 8 >= p.head_dim || key - first_key >= keys - first_key) return raw; // one comparison: unsigned
        raw = absent;
        u32 common = i.common % 16, own = i.own % 16 * row + column + piece.own / C::EACH * C::BYTES;
#pragma unroll
        for (u32 g = 0; g < BK / 16; ++g) {
            if ((i.own + i.common) / 16 != g || held[g] >= p.blocks) continue;
            raw = C::load_of(x + place(held[g], k0 + 16 * g) + (u64)common * row + piece.common / C::EACH * C::BYTES + own, piece.own % C::EACH);
        }
        return raw;
    }
    __attribute__((device, always_inline)) Raw key(u32 k0, Own16 i, Own16 piece) const { return get(k, k0, i, piece, C::absent()); }
    __attribute__((device, always_inline)) Raw value(u32 k0, Own16 i, Own16 piece) const { return get(v, k0, i, piece, Raw{}); }
    __attribute__((device, always_inline)) float adjust(float score, u32, u32) const {
        return p.softcap != 0.0f ? rf_softcap(score, p.softcap, inverse_cap) : score;
    }
    __attribute__((device, always_inline)) float finish(u32, float top, float &total) const {
        float logit = EXTRA ? *sink : -RF_INF;
        if (logit == -RF_INF) return 1.0f;
        float base = rf_max(top, logit), shrink = rf_exp2((top - base) * RF_LOG2E);
        total = total * shrink + rf_exp2((logit - base) * RF_LOG2E);
        return shrink;
    }
    __attribute__((device, always_inline)) static float result(float x) { return x; }
    __attribute__((device, always_inline)) void store(u32 token, u32 at, Chunk chunk) const {
        if (at / 4 < p.head_dim) rf_put4(out + (u64)token * p.heads * p.head_dim + own_column + at / 4, __builtin_bit_cast(f4, chunk));
    }
};

template <class C, u32 D, u32 WAVES, u32 BK, bool EXTRA>
RF_DEVICE void paged16(const float *__restrict__ q, const u8 *__restrict__ k, const u8 *__restrict__ v, const u32 *__restrict__ table,
                       const u32 *__restrict__ seq_of, const u32 *__restrict__ positions, const float *__restrict__ sinks,
                       float *__restrict__ out, u32 tokens, const Paged &p) {
    constexpr u32 BQ = WAVES * 16;
    RF_SHARED float factors[BQ];
    RF_SHARED u32 begins[BQ / 32];
    RF_SHARED float sink; // in LDS, because there are too few registers to keep it
    u32 head = rf_block_x(), kv_head = head / (p.heads / p.kv_heads);
    u32 first = ((tokens + BQ - 1) / BQ - 1 - rf_block_z()) * BQ;
    Runs<BQ> runs = {seq_of, positions, begins, first, rf_min(first + BQ, tokens), p};
    runs.find();
    if (EXTRA && rf_thread() == 0) sink = sinks ? sinks[head] : -RF_INF;
    rf_barrier();
    bool reports = rf_thread() == 0 && head == 0;
    u32 head_bytes = p.head_dim / 8 / C::EACH * C::BYTES, column = narrow(kv_head * head_bytes), own_column = narrow(head * p.head_dim);
#pragma unroll 1
    for (u32 at = first; at < runs.end;) {
        Run run = runs.run(at);
        if (run.known) {
            u32 keys = run.position + (run.end - run.first);
            u32 oldest = p.window != 0 && run.position >= p.window ? run.position - p.window + 1 : 0;
            Pages16<C, D, BK, EXTRA> memory = {q, k, v, table + (u64)run.seq * p.max_blocks, out, factors,
                                     1.0f / p.softcap, &sink, narrow(p.kv_heads * head_bytes), column, own_column,
                                     narrow(oldest), narrow(keys), reports,
                                     narrow(run.first), narrow(run.end), narrow(run.position), (u32)__builtin_ctz(p.block_size), p};
            Span16 span = {run.first, run.end, keys, (i64)run.position - (i64)run.first, true, p.window};
            rf_attention16<Pages16<C, D, BK, EXTRA>, D, WAVES, BK, EXTRA>(memory, span, p.scale);
            rf_lds_barrier(); // results have been read from LDS
        } else {
            if (reports) runs.fault(run);
            u32 rows = run.end - run.first;
            for (u32 i = rf_thread(); i < rows * p.head_dim; i += WAVES * RF_WAVE)
                out[(u64)(run.first + i / p.head_dim) * p.heads * p.head_dim + own_column + i % p.head_dim] = __builtin_nanf("");
        }
        at = run.end;
    }
}

#define RF_PAGED16(name, D, WAVES, BK)                                                                                                \
    RF_KERNEL(WAVES *RF_WAVE)                                                                                                         \
    paged16_##name(const float *q, const void *k, const void *v, const u32 *table, const u32 *seq_of, const u32 *positions,           \
                   float *out, u32 tokens, u32 heads, u32 kv_heads, u32 head_dim, u32 block_size, u32 blocks, u32 sequences,          \
                   u32 max_blocks, u32 window, float scale, float softcap, u64 *fault, u32 tag) {                                     \
        paged16<HalfEights, D, WAVES, BK, false>(q, (const u8 *)k, (const u8 *)v, table, seq_of, positions, nullptr, out, tokens,         \
                                     Paged{heads, kv_heads, head_dim, block_size, blocks, sequences, max_blocks, window, scale,       \
                                           softcap, fault, tag});                                                                     \
    }
#define RF_PAGED16_CAPPED(name, C, D, WAVES, BK)                                                                                      \
    RF_KERNEL(WAVES *RF_WAVE)                                                                                                         \
    paged16_##name##_d##D(const float *q, const void *k, const void *v, const u32 *table, const u32 *seq_of, const u32 *positions,    \
                          const float *sinks, float *out, u32 tokens, u32 heads, u32 kv_heads, u32 head_dim, u32 block_size,          \
                          u32 blocks, u32 sequences, u32 max_blocks, u32 window, float scale, float softcap, u64 *fault, u32 tag) {   \
        paged16<C, D, WAVES, BK, true>(q, (const u8 *)k, (const u8 *)v, table, seq_of, positions, sinks, out, tokens,                 \
                                       Paged{narrow(heads), kv_heads, head_dim, block_size, blocks, sequences, max_blocks, window,    \
                                             scale, softcap, fault, tag});                                                            \
    }
