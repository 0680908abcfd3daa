// The attention of attention16_{f16,bf16}.hip on Hopper's tensor cores, without masks, caps, slopes and sinks:
// include/attention16.h, include/attention16_hopper.h.
// grid = (heads, batches, ceil(seq_q / (64 GROUPS))), the blocks with most keys first where attention is causal. Heads of up to D elements.
#include "include/attention16_hopper.h"

// Operands with strides, one head of one sequence.
template <bool BF16, u32 BQ, u32 ROWS> struct Strided16 {
    const unsigned short *q, *k, *v;
    unsigned short *out;
    float *lse;
    Work16 work;
    const Attention16 &p;

    static constexpr bool IN_PARTS = false;
    __attribute__((device, always_inline)) u32 token(u32 row) const { return row; }
    __attribute__((device, always_inline)) bool first(Work16 &to, bool) const {
        to = work;
        return true;
    }
    __attribute__((device, always_inline)) bool next(Work16 &, bool) const { return false; }
    __attribute__((device, always_inline)) void copy_queries(const Work16 &w, u32 to, u32 row, u32 from, u32 there) const {
        bool in = from < p.width_k;
#pragma unroll 4
        for (u32 i = 0; i < BQ / ROWS; ++i) {
            const unsigned short *at = q + rf_min(w.first_query + row + i * ROWS, w.queries - 1) * p.q.row;
            rf_copy_async(to + i * ROWS * 128, in ? at + from : q, in ? 16 : 0);
        }
        rf_mbarrier_copies(there);
    }
    template <u32 D> __attribute__((device, always_inline)) void make_queries(const Work16 &, u32, u32, u32, u32, u32 there) const {
        rf_mbarrier_wait(there, 0);
    }
    __attribute__((device, always_inline)) float factor(u32) const { return 1.0f; }
    __attribute__((device, always_inline)) void copy_keys(const Work16 &w, u32 to, u32 tile, u32 row, u32 from) const {
        rf_copy_tile<ROWS>(k, p.k.row, p.width_k, w, to, tile, row, from);
    }
    __attribute__((device, always_inline)) void copy_values(const Work16 &w, u32 to, u32 tile, u32 row, u32 from) const {
        rf_copy_tile<ROWS>(v, p.v.row, p.width_v, w, to, tile, row, from);
    }
    __attribute__((device, always_inline)) void finish(u32 query, bool leads, float top, float total) const {
        if (lse && leads) lse[((u64)rf_block_y() * p.heads + rf_block_x()) * p.seq_q + query] = total == 0.0f ? -RF_INF : top * 0.693147181f + rf_log(total);
    }
    __attribute__((device, always_inline)) void store(u32 query, u32 column, float a, float b) const {
        if (column < p.width_v) *(u32 *)(out + query * p.out.row + column) = two<BF16>(a, b);
    }
};

template <bool BF16, u32 D, u32 GROUPS>
RF_DEVICE void attention16_hopper(const unsigned short *__restrict__ q, const unsigned short *__restrict__ k, const unsigned short *__restrict__ v,
                                  unsigned short *__restrict__ out, float *__restrict__ lse, const u32 *__restrict__ lengths, const Attention16 &p) {
    constexpr u32 BQ = 64 * GROUPS, ROWS = 128 / (D / 8);
    u32 blocks = (p.seq_q + BQ - 1) / BQ;
    u32 q0 = (p.causal ? blocks - 1 - rf_block_z() : rf_block_z()) * BQ;
    u32 head = rf_block_x(), batch = rf_block_y(), kv_head = head / (p.heads / p.kv_heads);
    Sequence16 seq = rf_sequence16(p, lengths, batch);
    if (q0 >= seq.queries) return;
    Strided16<BF16, BQ, ROWS> memory = {q + rf_plane(p.q, batch, head),
                                        k + rf_plane(p.k, batch, kv_head),
                                        v + rf_plane(p.v, batch, kv_head),
                                        out + rf_plane(p.out, batch, head),
                                        lse,
                                        {q0, seq.queries, 0, seq.keys, seq.offset},
                                        p};
    rf_attention16_hopper<Strided16<BF16, BQ, ROWS>, BF16, D, GROUPS>(memory, p.scale, p.causal != 0, p.window);
}

#define RF_ATTENTION16_HOPPER(name, BF16, D, GROUPS)                                                                                   \
    extern "C" __attribute__((global, launch_bounds(128 + 128 * GROUPS, 1))) void attention16_hopper_##name##_d##D(                    \
        const void *q, const void *k, const void *v, void *out, float *lse, const u32 *lengths, Attention16 p) {                       \
        attention16_hopper<BF16, D, GROUPS>((const unsigned short *)q, (const unsigned short *)k, (const unsigned short *)v,           \
                                            (unsigned short *)out, lse, lengths, p);                                                   \
    }
RF_ATTENTION16_HOPPER(f16, false, 64, 3)
RF_ATTENTION16_HOPPER(f16, false, 128, 2)
RF_ATTENTION16_HOPPER(bf16, true, 64, 3)
RF_ATTENTION16_HOPPER(bf16, true, 128, 2)
