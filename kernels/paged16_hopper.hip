// The attention of paged16.hip on Hopper's tensor cores, without caps: include/attention16_hopper.h.
//
// A block has 64 GROUPS tokens and one head and does the runs of its tokens (include/runs.h) one after the other. Keys and values of the next run are
// copied while the current one is computed. Each group rounds its own queries.
// grid = (heads, 1, ceil(tokens / (64 GROUPS))), the last tokens first. Heads of up to D elements.
#include "include/attention16_hopper.h"
#include "include/quantize.h"
#include "include/range16.h"
#include "include/runs.h"

template <u32 BQ, u32 ROWS> struct Pages16 {
    const float *q;
    const unsigned short *k, *v;
    const u32 *table;
    float *out, *factors; // factors: one for each query of the block, in shared memory
    u32 row_stride, head;
    Runs<BQ> runs;
    const Paged &p;
    const u32 *blocks = nullptr; // of the run's sequence
    u32 after = 0;                // the token after the run

    // The next run that is known; those before it are the fault of their tokens, which get NaN.
    __attribute__((device, always_inline)) bool from(u32 at, Work16 &w, bool consumer) {
        while (at < runs.end) {
            Run run = runs.run(at);
            at = after = run.end;
            if (run.known) {
                u32 oldest = p.window != 0 && run.position >= p.window ? run.position - p.window + 1 : 0;
                w = {run.first, run.end, oldest, run.position + (run.end - run.first), (i64)run.position - (i64)run.first};
                blocks = table + (u64)run.seq * p.max_blocks;
                return true;
            }
            if (!consumer) continue;
            if (rf_thread() == 128 && head == 0) runs.fault(run);
            u32 elements = (run.end - run.first) * p.head_dim;
            for (u32 i = rf_thread() - 128; i < elements; i += 2 * BQ)
                out[(u64)(run.first + i / p.head_dim) * p.heads * p.head_dim + i % p.head_dim] = __builtin_nanf("");
        }
        return false;
    }
    static constexpr bool IN_PARTS = false;
    __attribute__((device, always_inline)) u32 token(u32 row) const { return row; }
    __attribute__((device, always_inline)) bool first(Work16 &w, bool consumer) { return from(runs.first, w, consumer); }
    __attribute__((device, always_inline)) bool next(Work16 &w, bool consumer) { return from(after, w, consumer); }

    __attribute__((device, always_inline)) void copy_queries(const Work16 &, u32, u32, u32, u32) const {}
    template <u32 D> __attribute__((device, always_inline)) void make_queries(const Work16 &w, u32 to, u32 group, u32 row, u32 from, u32) const {
        // The group's last products have read its queries, and its threads their factors.
        asm volatile("bar.sync %0, 128;" ::"r"(3 + group) : "memory");
#pragma unroll 1
        for (u32 i = 0; i < 64 / ROWS; ++i) {
            u32 in_block = group * 64 + row + i * ROWS, token = w.first_query + in_block;
            f4_wide a = {0.0f, 0.0f, 0.0f, 0.0f}, b = a;
            if (token < w.queries && from < p.head_dim) {
                const float *in = q + (u64)token * p.heads * p.head_dim + from;
                a = *(const f4_wide *)in, b = *(const f4_wide *)(in + 4);
            }
            u32 top = 0;
#pragma unroll
            for (u32 e = 0; e < 4; ++e) top = rf_larger_of(top, rf_larger_of(rf_magnitude(a[e]), rf_magnitude(b[e])));
            if constexpr (D == 128) top = rf_larger<8>(top);
            top = rf_larger<4>(top);
            top = rf_larger<2>(top);
            top = rf_larger<1>(top);
            Range16 range = rf_range16(top);
            if (from == 0) factors[in_block] = range.down;
            u4 halves = {two<false>(a[0] * range.up, a[1] * range.up), two<false>(a[2] * range.up, a[3] * range.up),
                         two<false>(b[0] * range.up, b[1] * range.up), two<false>(b[2] * range.up, b[3] * range.up)};
            rf_shared_put(to + i * ROWS * 128, halves);
        }
        rf_fence_async();
        asm volatile("bar.sync %0, 128;" ::"r"(3 + group) : "memory");
    }
    __attribute__((device, always_inline)) float factor(u32 i) const { return factors[i]; }

    // A tile of keys or values, 16 from a multiple of 16 on in one block. Rows of those that do not exist are 0; keys of a block that does not exist
    // are NaN, which is the fault of the first token that sees them.
    template <bool KEYS> __attribute__((device, always_inline)) void copy(const unsigned short *x, const Work16 &w, u32 to, u32 tile, u32 row, u32 from) const {
        bool in = from < p.head_dim;
#pragma unroll 4
        for (u32 g = 0; g < BK / 16; ++g) {
            u32 key = tile * BK + 16 * g;
            bool seen = key < w.keys && key + 16 > w.first_key;
            u32 block = seen ? blocks[key >> __builtin_ctz(p.block_size)] : 0;
            bool bad = block >= p.blocks;
            if (KEYS && bad && head == 0 && rf_thread() == 0) {
                u32 position = w.first_query + (u32)w.offset;
                rf_fault(p.fault, p.tag, w.first_query + (key > position ? key - position : 0), block);
            }
            const unsigned short *at = x + ((u64)block * p.block_size + (key & (p.block_size - 1)) + row) * row_stride + from;
#pragma unroll
            for (u32 i = 0; i < 16 / ROWS; ++i) {
                u32 own = key + row + i * ROWS, place = to + (16 * g + i * ROWS) * 128;
                bool exists = in && own >= w.first_key && own < w.keys;
                if (KEYS && bad && exists) {
                    rf_shared_put(place, u4{0x7e007e00, 0x7e007e00, 0x7e007e00, 0x7e007e00});
                    rf_fence_async();
                } else {
                    exists = exists && !bad;
                    rf_copy_async(place, exists ? at + (u64)i * ROWS * row_stride : x, exists ? 16 : 0);
                }
            }
        }
    }
    __attribute__((device, always_inline)) void copy_keys(const Work16 &w, u32 to, u32 tile, u32 row, u32 from) const {
        copy<true>(k, w, to, tile, row, from);
    }
    __attribute__((device, always_inline)) void copy_values(const Work16 &w, u32 to, u32 tile, u32 row, u32 from) const {
        copy<false>(v, w, to, tile, row, from);
    }
    __attribute__((device, always_inline)) void finish(u32, bool, float, float) const {}
    __attribute__((device, always_inline)) void store(u32 token, u32 column, float a, float b) const {
        if (column < p.head_dim) *(f2_wide *)(out + (u64)token * p.heads * p.head_dim + column) = f2_wide{a, b};
    }
};

template <u32 D, u32 GROUPS>
RF_DEVICE void paged16_hopper(const float *__restrict__ q, const unsigned short *__restrict__ k, const unsigned short *__restrict__ v,
                              const u32 *__restrict__ table, const u32 *__restrict__ seq_of, const u32 *__restrict__ positions, float *__restrict__ out,
                              u32 tokens, const Paged &p) {
    constexpr u32 BQ = 64 * GROUPS, ROWS = 128 / (D / 8);
    RF_SHARED float factors[BQ];
    RF_SHARED u32 begins[BQ / 32];
    u32 head = rf_block_x(), kv_head = head / (p.heads / p.kv_heads);
    u32 first = ((tokens + BQ - 1) / BQ - 1 - rf_block_z()) * BQ;
    Runs<BQ> runs = {seq_of, positions, begins, first, rf_min(first + BQ, tokens), p};
    runs.find();
    Pages16<BQ, ROWS> memory = {q + (u64)head * p.head_dim,
                                k + (u64)kv_head * p.head_dim,
                                v + (u64)kv_head * p.head_dim,
                                table,
                                out + (u64)head * p.head_dim,
                                factors,
                                p.kv_heads * p.head_dim,
                                head,
                                runs,
                                p};
    // Its first barrier comes before the first run is looked up.
    rf_attention16_hopper<Pages16<BQ, ROWS>, false, D, GROUPS>(memory, p.scale, true, p.window);
}

#define RF_PAGED16_HOPPER(D, GROUPS)                                                                                                  \
    extern "C" __attribute__((global, launch_bounds(128 + 128 * GROUPS, 1))) void paged16_hopper_d##D(                                \
        const float *q, const void *k, const void *v, const u32 *table, const u32 *seq_of, const u32 *positions, float *out,          \
        u32 tokens, u32 heads, u32 kv_heads, u32 head_dim, u32 block_size, u32 blocks, u32 sequences, u32 max_blocks, u32 window,     \
        float scale, float softcap, u64 *fault, u32 tag) {                                                                            \
        paged16_hopper<D, GROUPS>(q, (const unsigned short *)k, (const unsigned short *)v, table, seq_of, positions, out, tokens,     \
                                  Paged{heads, kv_heads, head_dim, block_size, blocks, sequences, max_blocks, window, scale,          \
                                        softcap, fault, tag});                                                                        \
    }
RF_PAGED16_HOPPER(64, 2)
RF_PAGED16_HOPPER(128, 2)
