// The parts of attention16_split.hip on Hopper's tensor cores: include/attention16_hopper.h. 64 rows to a tile, of which a decoding step fills few: the
// time is that of reading keys and values, of which 128 KiB are on their way. grid = (kv_heads * ceil(rows / 64), batches, parts).
#include "include/attention16_hopper.h"

template <u32 D> struct Packed16 {
    static constexpr bool IN_PARTS = true;
    static constexpr u32 ROWS = 128 / (D / 8);
    const unsigned short *q, *k, *v;
    float *values, *sums;
    u32 heads, first_head, batch, part, parts; // heads that share keys, and the first of them
    Work16 work;
    const Attention16 &p;

    __attribute__((device, always_inline)) u32 token(u32 row) const { return row / heads; }
    __attribute__((device, always_inline)) bool first(Work16 &to, bool) const {
        to = work;
        return true;
    }
    __attribute__((device, always_inline)) bool next(Work16 &, bool) const { return false; }
    __attribute__((device, always_inline)) void copy_queries(const Work16 &w, u32 to, u32 row, u32 from, u32 there) const {
#pragma unroll 1
        for (u32 i = 0; i < 64 / ROWS; ++i) {
            u32 own = w.first_query + row + i * ROWS;
            bool in = from < p.width_k && own < w.queries;
            const unsigned short *at = q + own / heads * p.q.row + (first_head + own % heads) * p.q.head + from;
            rf_copy_async(to + i * ROWS * 128, in ? at : q, in ? 16 : 0);
        }
        rf_mbarrier_copies(there);
    }
    template <u32> __attribute__((device, always_inline)) void make_queries(const Work16 &, u32, u32, u32, u32, u32 there) const {
        rf_mbarrier_wait(there, 0);
    }
    __attribute__((device, always_inline)) float factor(u32) const { return 1.0f; }
    __attribute__((device, always_inline)) void copy_keys(const Work16 &w, u32 to, u32 tile, u32 row, u32 from) const {
        rf_copy_tile<ROWS>(k, p.k.row, p.width_k, w, to, tile, row, from);
    }
    __attribute__((device, always_inline)) void copy_values(const Work16 &w, u32 to, u32 tile, u32 row, u32 from) const {
        rf_copy_tile<ROWS>(v, p.v.row, p.width_v, w, to, tile, row, from);
    }
    __attribute__((device, always_inline)) u64 place(u32 row) const {
        return (((u64)batch * p.heads + first_head + row % heads) * p.seq_q + row / heads) * parts + part;
    }
    __attribute__((device, always_inline)) void finish(u32 row, bool leads, float top, float total) const {
        if (leads) sums[place(row)] = total == 0.0f ? -RF_INF : top + rf_log(total) * RF_LOG2E;
    }
    __attribute__((device, always_inline)) void store(u32 row, u32 column, float a, float b) const {
        *(f2_wide *)(values + place(row) * D + column) = f2_wide{a, b};
    }
};

template <bool BF16, u32 D>
RF_DEVICE void attention16_split_hopper(const unsigned short *__restrict__ q, const unsigned short *__restrict__ k,
                                        const unsigned short *__restrict__ v, float *__restrict__ values, float *__restrict__ sums,
                                        const u32 *__restrict__ lengths, u32 parts, const Attention16 &p) {
    u32 heads = p.heads / p.kv_heads, tiles = (p.seq_q * heads + 63) / 64;
    u32 kv_head = rf_block_x() / tiles, first = rf_block_x() % tiles * 64, batch = rf_block_y();
    Sequence16 seq = rf_sequence16(p, lengths, batch);
    u32 rows = seq.queries * heads;
    if (first >= rows) return;
    Packed16<D> memory = {q + batch * p.q.batch, k + rf_plane(p.k, batch, kv_head), v + rf_plane(p.v, batch, kv_head), values, sums,
                          heads, kv_head * heads, batch, rf_block_z(), parts, {first, rows, 0, seq.keys, seq.offset}, p};
    rf_attention16_hopper<Packed16<D>, BF16, D, 1>(memory, p.scale, p.causal != 0, p.window);
}

#define RF_ATTENTION16_SPLIT_HOPPER(name, BF16, D)                                                                                    \
    extern "C" __attribute__((global, launch_bounds(256, 1))) void attention16_split_hopper_##name##_d##D(                            \
        const void *q, const void *k, const void *v, float *values, float *sums, const u32 *lengths, u32 parts, Attention16 p) {      \
        attention16_split_hopper<BF16, D>((const unsigned short *)q, (const unsigned short *)k, (const unsigned short *)v, values,    \
                                          sums, lengths, parts, p);                                                                   \
    }
RF_ATTENTION16_SPLIT_HOPPER(f16, false, 64)
RF_ATTENTION16_SPLIT_HOPPER(f16, false, 128)
RF_ATTENTION16_SPLIT_HOPPER(bf16, true, 64)
RF_ATTENTION16_SPLIT_HOPPER(bf16, true, 128)
