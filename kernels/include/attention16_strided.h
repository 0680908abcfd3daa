// Attention over 16-bit floats on the matrix unit, with f32 scores and sums: attention16.h, attention16_block.h. The kernels are those of
// attention16_{type}.hip and, with masks, caps, slopes and sinks, attention16_{type}_extra.hip.
// grid = (heads, batches, ceil(seq_q / (16 WAVES))), the blocks with most keys first where attention is causal.
#pragma once
#include "attention16_block.h"
#include "floats.h"

// Operands with strides, one head of one sequence.
template <class T, class TO, bool EXTRA> struct Strided16 {
    typedef T Type;
    typedef T Out;
    typedef Chunk Raw;
    __attribute__((device, always_inline)) static Chunk chunk(Chunk raw) { return raw; }
    static constexpr bool IN_PARTS = false;
    const T *q, *k, *v;
    T *out;
    float *lse; // of all heads: a pointer that may be null stays as it is given
    const float *mask;
    u64 lse_at, mask_at; // the head's first
    float slope, sink, inverse_cap;
    bool has_sink;
    i32 offset;
    u32 queries, keys;
    const Attention16 &p;

    __attribute__((device, always_inline)) u32 thread() const { return rf_thread(); }
    __attribute__((device, always_inline)) u32 token(u32 row) const { return row; }
    __attribute__((device, always_inline)) Chunk query(u32, u32 row, u32 piece) const {
        Chunk chunk = {0, 0, 0, 0};
        if (piece * 8 < p.width_k) chunk = *(const Chunk *)(q + rf_min(row, queries - 1) * p.q.row + piece * 8);
        return chunk;
    }
    __attribute__((device, always_inline)) float factor(u32) const { return 1.0f; }
    __attribute__((device, always_inline)) void look(u32) const {}
    __attribute__((device, always_inline)) Chunk key(u32 k0, Own16 i, Own16 piece) const {
        Chunk chunk = {0, 0, 0, 0};
        u32 key = k0 + i.own + i.common, from = (piece.own + piece.common) * 8;
        if (from < p.width_k) chunk = *(const Chunk *)(k + rf_min(key, keys - 1) * p.k.row + from);
        return chunk;
    }
    __attribute__((device, always_inline)) Chunk value(u32 k0, Own16 i, Own16 piece) const {
        Chunk chunk = {0, 0, 0, 0};
        u32 key = k0 + i.own + i.common, from = (piece.own + piece.common) * 8;
        if (from < p.width_v && key < keys) chunk = *(const Chunk *)(v + key * p.v.row + from);
        return chunk;
    }
    __attribute__((device, always_inline)) float adjust(float score, u32 row, u32 key) const {
        if (p.softcap != 0.0f) score = rf_softcap(score, p.softcap, inverse_cap);
        if (mask) score += mask[mask_at + rf_min(row, queries - 1) * p.mask.row + rf_min(key, keys - 1)];
        return score - slope * (float)((i64)row + offset - (i64)key);
    }
    __attribute__((device, always_inline)) float finish(u32 row, float top, float &total) const {
        float base = top == -RF_INF ? 0.0f : top, shrink = 1.0f;
        if (EXTRA && has_sink) {
            base = rf_max(top, sink);
            shrink = rf_exp2((top - base) * RF_LOG2E);
            total = total * shrink + rf_exp2((sink - base) * RF_LOG2E);
        }
        if (lse && rf_tile_first(rf_lane()) && row < queries)
            lse[lse_at + row] = total == 0.0f ? -RF_INF : (EXTRA ? base : base * 0.693147181f) + rf_log(total);
        return shrink;
    }
    __attribute__((device, always_inline)) static T result(float x) { return __builtin_bit_cast(T, TO::of(x)); }
    __attribute__((device, always_inline)) void store(u32 row, u32 at, Chunk chunk) const {
        if (at / 2 < p.width_v) *(Chunk *)(out + row * p.out.row + at / 2) = chunk;
    }
};

template <class T, class TO, u32 D, u32 WAVES, u32 BK, bool EXTRA>
RF_DEVICE void attention16(const T *__restrict__ q, const T *__restrict__ k, const T *__restrict__ v, T *__restrict__ out,
                           float *__restrict__ lse, const u32 *__restrict__ lengths, const Attention16Extra &x, const Attention16 &p) {
    constexpr u32 BQ = WAVES * 16;
    u32 blocks = (p.seq_q + BQ - 1) / BQ;
    u32 q0 = (p.causal ? blocks - 1 - rf_block_z() : rf_block_z()) * BQ;
    u32 head = rf_block_x(), batch = rf_block_y(), kv_head = head / (p.heads / p.kv_heads);
    Sequence16 seq = rf_sequence16(p, lengths, batch);
    if (q0 >= seq.queries) return;
    Strided16<T, TO, EXTRA> memory = {q + rf_plane(p.q, batch, head),
                                      k + rf_plane(p.k, batch, kv_head),
                                      v + rf_plane(p.v, batch, kv_head),
                                      out + rf_plane(p.out, batch, head),
                                      lse,
                                      x.mask,
                                      ((u64)batch * p.heads + head) * p.seq_q,
                                      EXTRA ? rf_plane(p.mask, batch, head) : 0,
                                      EXTRA && x.slopes ? x.slopes[head] : 0.0f,
                                      EXTRA && x.sinks ? x.sinks[head] : 0.0f,
                                      1.0f / p.softcap,
                                      EXTRA && x.sinks,
                                      seq.offset,
                                      seq.queries,
                                      seq.keys,
                                      p};
    Span16 span = {q0, seq.queries, seq.keys, seq.offset, p.causal != 0, p.window};
    rf_attention16<Strided16<T, TO, EXTRA>, D, WAVES, BK, EXTRA>(memory, span, p.scale);
}

#define RF_ATTENTION16(name, T, TO, D, WAVES, BK)                                                                                      \
    RF_KERNEL(WAVES *RF_WAVE)                                                                                                          \
    attention16_##name##_d##D(const void *q, const void *k, const void *v, void *out, float *lse, const u32 *lengths, Attention16 p) { \
        attention16<T, TO, D, WAVES, BK, false>((const T *)q, (const T *)k, (const T *)v, (T *)out, lse, lengths,                      \
                                                {nullptr, nullptr, nullptr}, p);                                                       \
    }
#define RF_ATTENTION16_EXTRA(name, T, TO, D, WAVES, BK)                                                                                \
    RF_KERNEL(WAVES *RF_WAVE)                                                                                                          \
    attention16_##name##_extra_d##D(const void *q, const void *k, const void *v, void *out, float *lse, const u32 *lengths,            \
                                    const float *mask, const float *slopes, const float *sinks, Attention16 p) {                                          \
        attention16<T, TO, D, WAVES, BK, true>((const T *)q, (const T *)k, (const T *)v, (T *)out, lse, lengths, {mask, slopes, sinks}, p); \
    }
