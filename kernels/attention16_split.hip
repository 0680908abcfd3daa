// Attention of a few queries over 16-bit floats on the matrix unit, its keys in parts: attention16_split computes each part, attention16_combine joins
// them. include/attention16.h, include/attention16_block.h. Dao et al., "Flash-Decoding", 2023.
//
// The queries of all heads that share a head of keys and values are rows of one tile, query by query: every key is read once for 16 of them. Of a block's
// waves one multiplies; all copy. grid = (kv_heads * ceil(rows / 16), batches, parts), rows = seq_q * heads / kv_heads.
//
// A part leaves its mean of values [batch, heads, seq_q, parts, D] and the logarithm to base 2 of its sum of weights [batch, heads, seq_q, parts]; a part
// without a key that is seen has -inf there, and zeros.
#include "include/attention16_block.h"
#include "include/floats.h"
#include "include/groups.h"

template <class T, u32 D> struct Packed16 {
    typedef T Type;
    typedef float Out;
    typedef Chunk Raw;
    __attribute__((device, always_inline)) static Chunk chunk(Chunk raw) { return raw; }
    static constexpr bool IN_PARTS = true;
    const T *q, *k, *v;
    float *values, *sums;
    u32 heads, first_head, batch, part, parts; // heads that share keys, and the first of them
    u32 queries, keys;                         // rows
    const Attention16 &p;

    __attribute__((device, always_inline)) u32 thread() const { return rf_thread(); }
    __attribute__((device, always_inline)) u32 token(u32 row) const { return row / heads; }
    __attribute__((device, always_inline)) Chunk query(u32, u32 row, u32 piece) const {
        Chunk chunk = {0, 0, 0, 0};
        if (piece * 8 < p.width_k && row < queries) chunk = *(const Chunk *)(q + row / heads * p.q.row + (first_head + row % heads) * p.q.head + piece * 8);
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
    __attribute__((device, always_inline)) float adjust(float score, u32, u32) const { return score; }
    __attribute__((device, always_inline)) u64 place(u32 row) const {
        return (((u64)batch * p.heads + first_head + row % heads) * p.seq_q + row / heads) * parts + part;
    }
    __attribute__((device, always_inline)) float finish(u32 row, float top, float &total) const {
        if (row < queries && rf_tile_first(rf_lane())) sums[place(row)] = total == 0.0f ? -RF_INF : top + rf_log(total) * RF_LOG2E;
        return 1.0f;
    }
    __attribute__((device, always_inline)) static float result(float x) { return x; }
    __attribute__((device, always_inline)) void store(u32 row, u32 at, Chunk chunk) const { *(Chunk *)(values + place(row) * D + at / 4) = chunk; }
};

template <class T, u32 D>
RF_DEVICE void attention16_split(const T *__restrict__ q, const T *__restrict__ k, const T *__restrict__ v, float *__restrict__ values,
                                 float *__restrict__ sums, const u32 *__restrict__ lengths, u32 parts, const Attention16 &p) {
    u32 heads = p.heads / p.kv_heads, tiles = (p.seq_q * heads + 15) / 16;
    u32 kv_head = rf_block_x() / tiles, first = rf_block_x() % tiles * 16, batch = rf_block_y();
    Sequence16 seq = rf_sequence16(p, lengths, batch);
    u32 rows = seq.queries * heads;
    if (first >= rows) return;
    Packed16<T, D> memory = {q + batch * p.q.batch, k + rf_plane(p.k, batch, kv_head), v + rf_plane(p.v, batch, kv_head), values, sums,
                             heads, kv_head * heads, batch, rf_block_z(), parts, rows, seq.keys, p};
    Span16 span = {first, rows, seq.keys, seq.offset, p.causal != 0, p.window, memory.part, parts};
    rf_attention16<Packed16<T, D>, D, 4, 32, false, 1>(memory, span, p.scale);
}

// out[b, h, i] and lse of the parts. D / 4 threads have four of a row each, groups of them every RF_ROW_BLOCK / (D / 4)-th part.
// grid = (heads, batches, seq_q).
template <class T, class TO, u32 D>
RF_DEVICE void attention16_combine(const float *__restrict__ values, const float *__restrict__ sums, T *__restrict__ out, float *__restrict__ lse,
                                   const u32 *__restrict__ lengths, u32 parts, const Attention16 &p) {
    constexpr u32 LANES = D / 4, GROUPS = RF_ROW_BLOCK / LANES;
    RF_SHARED f4_lds joined[GROUPS][LANES];
    u32 tid = rf_thread(), group = tid / LANES, lane = tid % LANES;
    u32 head = rf_block_x(), batch = rf_block_y(), query = rf_block_z();
    u32 queries = rf_opaque(p.seq_q); // or the parameter would go to private memory, for one load from either
    if (lengths) queries = lengths[2 * batch];
    if (query >= queries) return;
    u64 row = ((u64)batch * p.heads + head) * p.seq_q + query;
    sums += row * parts;
    values += row * parts * D + lane * 4;
    float top = -RF_INF;
    for (u32 s = 0; s < parts; ++s) top = rf_max(top, sums[s]);
    float base = top == -RF_INF ? 0.0f : top, total = 0.0f;
    for (u32 s = 0; s < parts; ++s) total += rf_exp2(sums[s] - base);
    f4 result = rf_splat(0.0f);
#pragma unroll 4
    for (u32 s = group; s < parts; s += GROUPS) {
        float weight = rf_exp2(sums[s] - base);
        f4 v = rf_get4(values + (u64)s * D);
#pragma unroll
        for (u32 e = 0; e < 4; ++e) result[e] = rf_fma(weight, v[e], result[e]);
    }
    joined[group][lane] = result;
    rf_barrier();
    if (group != 0) return;
#pragma unroll
    for (u32 g = 1; g < GROUPS; ++g) {
        f4_lds other = joined[g][lane];
#pragma unroll
        for (u32 e = 0; e < 4; ++e) result[e] += other[e];
    }
    if (lse && lane == 0) lse[row] = total == 0.0f ? -RF_INF : top * 0.693147181f + rf_log(total);
    float inverse = total == 0.0f ? 0.0f : 1.0f / total;
    if (lane * 4 >= p.width_v) return;
    u32 bits[4];
#pragma unroll
    for (u32 e = 0; e < 4; ++e) bits[e] = __builtin_bit_cast(unsigned short, TO::of(result[e] * inverse));
    *(u2 *)(out + rf_plane(p.out, batch, head) + query * p.out.row + lane * 4) = u2{bits[0] | bits[1] << 16, bits[2] | bits[3] << 16};
}

#define RF_ATTENTION16_SPLIT(name, T, TO, D)                                                                                          \
    RF_KERNEL(4 * RF_WAVE)                                                                                                            \
    attention16_split_##name##_d##D(const void *q, const void *k, const void *v, float *values, float *sums, const u32 *lengths,      \
                                    u32 parts, Attention16 p) {                                                                       \
        attention16_split<T, D>((const T *)q, (const T *)k, (const T *)v, values, sums, lengths, parts, p);                           \
    }                                                                                                                                 \
    RF_KERNEL(RF_ROW_BLOCK)                                                                                                           \
    attention16_combine_##name##_d##D(const float *values, const float *sums, void *out, float *lse, const u32 *lengths, u32 parts,   \
                                      Attention16 p) {                                                                                \
        attention16_combine<T, TO, D>(values, sums, (T *)out, lse, lengths, parts, p);                                                \
    }

RF_ATTENTION16_SPLIT(f16, RfHalf, ToF16, 64)
RF_ATTENTION16_SPLIT(f16, RfHalf, ToF16, 128)
RF_ATTENTION16_SPLIT(bf16, RfBfloat, ToBf16, 64)
RF_ATTENTION16_SPLIT(bf16, RfBfloat, ToBf16, 128)
