// Attention of one block's queries over 16-bit floats on Hopper's tensor cores: the main loop of attention16_hopper.hip and paged16_hopper.hip, which
// say where queries, keys and values lie and where results go. Without masks, caps, slopes and sinks. include/wgmma.h.
// Shah et al., "FlashAttention-3", 2024.
//
// One warpgroup copies keys and values into two buffers each, GROUPS warpgroups have 64 queries each and walk from the last tile of 128 keys to the
// first. The next scores are multiplied while the current weights are made. Two groups take turns at the tensor cores: one makes weights while the
// other multiplies. Heads of 64 elements leave registers for a third group; three groups overlap without turns.
// Queries, keys and values lie in shared memory in rows of 128 bytes: 64 elements of a head, then the next 64.
#pragma once
#include "attention16.h"
#include "copy_async.h"
#include "functions.h"
#include "wgmma.h"

#define BK 128u
#define STAGES 2u

extern __attribute__((shared)) __attribute__((aligned(1024))) unsigned char attention16_lds[];

// Two floats in the type of the operands, side by side.
template <bool BF16> RF_DEVICE u32 two(float low, float high) {
    u32 both;
    if constexpr (BF16) {
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    } else {
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    }
    return both;
}

// The groups' turns: named barriers 1 and 2 of 256 threads, those who wait and those who let them. No group may let the other twice before that has
// waited: the two arrivals alone would fill the barrier.
RF_DEVICE void turn_wait(u32 group) { asm volatile("bar.sync %0, 256;" ::"r"(1 + group) : "memory"); }
RF_DEVICE void turn_give(u32 group) { asm volatile("bar.arrive %0, 256;" ::"r"(1 + group) : "memory"); }

// Queries of a block from one sequence, and the keys that they can see: query i is that at position i + offset.
struct Work16 {
    u32 first_query, queries, first_key, keys; // the first, and one past the last
    i64 offset;
};
// Tiles of keys that some query of the block sees.
struct Tiles16 {
    u32 begin, end;
    __attribute__((device, always_inline)) u32 count() const { return end - begin; }
};
template <u32 BQ, class Memory> RF_DEVICE Tiles16 rf_tiles16(const Memory &memory, const Work16 &w, bool causal, u32 window) {
    u32 begin = 0, end = w.keys;
    if (causal) {
        i64 newest = (i64)memory.token(rf_min(w.first_query + BQ, w.queries) - 1) + w.offset;
        i64 oldest = (i64)memory.token(w.first_query) + w.offset - window + 1;
        end = newest < 0 ? 0 : newest + 1 < (i64)end ? (u32)(newest + 1) : end;
        if (window && oldest > 0) begin = oldest < (i64)end ? (u32)oldest / BK : (end + BK - 1) / BK;
    }
    Tiles16 t = {begin, (end + BK - 1) / BK};
    if constexpr (Memory::IN_PARTS) {
        u32 each = (t.count() + memory.parts - 1) / memory.parts;
        t.begin = (u64)each * memory.part < t.count() ? t.begin + each * memory.part : t.end;
        t.end = t.count() < each ? t.end : t.begin + each;
    }
    return t;
}

// A tile of keys or values with strides to shared memory, `width` elements of each. Rows of keys that do not exist are 0: a weight of 0 times what lies in
// memory there need not be.
template <u32 ROWS>
RF_DEVICE void rf_copy_tile(const unsigned short *x, u64 stride, u32 width, const Work16 &w, u32 to, u32 tile, u32 row, u32 from) {
    u32 key = tile * BK + row;
    bool in = from < width;
    if (in && tile * BK + BK <= w.keys) {
        const unsigned short *at = x + from + key * stride;
#pragma unroll
        for (u32 i = 0; i < BK / ROWS; ++i, at += ROWS * stride) rf_copy_async(to + i * ROWS * 128, at, 16);
    } else {
#pragma unroll 1
        for (u32 i = 0; i < BK / ROWS; ++i) {
            bool exists = in && key + i * ROWS < w.keys;
            rf_copy_async(to + i * ROWS * 128, exists ? x + from + (key + i * ROWS) * stride : x, exists ? 16 : 0);
        }
    }
}

// `Memory` has, for the block and one head:
//   IN_PARTS, part, parts        whether a block has a part of the keys, and which
//   token(row)                   the token that query `row` belongs to: keys are visible by tokens
//   first(work, consumer), next(work, consumer)  the work of the block, part by part, the same for all threads; false after the last
//   copy_queries, make_queries   queries to shared memory by the 128 threads that copy, or by each group its own
//   copy_keys, copy_values       a tile to shared memory; `row` and `from` are the thread's first row and its 8 elements
//   factor(i)                    what the scores of the block's i-th query are multiplied by, beside `scale`
//   finish, store                a query's largest score times log2 e, and sum of weights; two neighbouring elements of a result
template <class Memory, bool BF16, u32 D, u32 GROUPS>
RF_DEVICE void rf_attention16_hopper(Memory &memory, float scale, bool causal, u32 window) {
    constexpr bool TURNS = GROUPS == 2;
    constexpr u32 COPY_REGISTERS = GROUPS == 2 ? 40 : 32, REGISTERS = GROUPS == 2 ? 232 : 160; // all 65,536 of a multiprocessor
    constexpr u32 BQ = 64 * GROUPS, PIECES = D / 8, ROWS = 128 / PIECES; // rows that 128 threads copy at once
    constexpr u32 Q_PANEL = BQ * 128, K_PANEL = BK * 128, TILE = K_PANEL * (D / 64);
    u32 tid = rf_thread(), lane = tid % 32, warp = tid / 32 % 4;
    u32 queries = (rf_shared_address(attention16_lds) + 1023) & ~1023u;
    u32 keys = queries + Q_PANEL * (D / 64), values = keys + STAGES * TILE, barriers = values + STAGES * TILE;
    u32 keys_there = barriers, values_there = keys_there + 8 * STAGES, keys_used = values_there + 8 * STAGES, values_used = keys_used + 8 * STAGES;
    u32 queries_there = values_used + 8 * STAGES;
    u32 piece = tid % PIECES, row = tid / PIECES % ROWS, from = 8 * piece;                 // of 128 threads that copy rows
    u32 to = row * 128 + ((piece % 8 ^ (row & 7)) << 4); // ROWS is a multiple of 8: the same place in all rows of a thread
    Work16 work;

    if (tid == 0) {
        for (u32 i = 0; i < STAGES; ++i) {
            rf_mbarrier_begin(keys_there + 8 * i, 128);
            rf_mbarrier_begin(values_there + 8 * i, 128);
            rf_mbarrier_begin(keys_used + 8 * i, GROUPS * 4);
            rf_mbarrier_begin(values_used + 8 * i, GROUPS * 4);
        }
        rf_mbarrier_begin(queries_there, 128);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    rf_barrier();

    if (tid < 128) {
        if constexpr (GROUPS > 1) asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COPY_REGISTERS));
        u32 stage_k = 0, parity_k = 1, stage_v = 0, parity_v = 1;
        for (bool more = memory.first(work, false); more; more = memory.next(work, false)) {
            Tiles16 t = rf_tiles16<BQ>(memory, work, causal, window);
            memory.copy_queries(work, queries + piece / 8 * Q_PANEL + to, row, from, queries_there);
            // In the order of use: keys of tile j + 1 before values of tile j.
#pragma unroll 1
            for (u32 j = 0; j <= t.count(); ++j) {
                if (j < t.count()) {
                    rf_mbarrier_wait(keys_used + 8 * stage_k, parity_k);
                    memory.copy_keys(work, keys + stage_k * TILE + piece / 8 * K_PANEL + to, t.end - 1 - j, row, from);
                    rf_mbarrier_copies(keys_there + 8 * stage_k);
                    if (++stage_k == STAGES) stage_k = 0, parity_k ^= 1;
                }
                if (j > 0) {
                    rf_mbarrier_wait(values_used + 8 * stage_v, parity_v);
                    memory.copy_values(work, values + stage_v * TILE + piece / 8 * K_PANEL + to, t.end - j, row, from);
                    rf_mbarrier_copies(values_there + 8 * stage_v);
                    if (++stage_v == STAGES) stage_v = 0, parity_v ^= 1;
                }
            }
        }
        asm volatile("cp.async.wait_all;" ::: "memory");
        return;
    }

    if constexpr (GROUPS > 1) asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGISTERS));
    u32 group = tid / 128 - 1;
    u64 tile_q = rf_wgmma_tile(queries + group * 64 * 128, 16, 1024);
    u32 stage_k = 0, parity_k = 0, stage_v = 0, parity_v = 0;
    // Once for all parts of the work, not for each: group 1 may begin the next part before group 0 ends this one.
    if (TURNS && group == 1) turn_give(0);
    for (bool more = memory.first(work, true); more; more = memory.next(work, true)) {
        Tiles16 t = rf_tiles16<BQ>(memory, work, causal, window);
        memory.template make_queries<D>(work, queries + piece / 8 * Q_PANEL + group * 64 * 128 + to, group, row, from, queries_there);
        u32 tiles = t.count();
        float sums[D / 2], scores[BK / 2], top[2] = {-RF_INF, -RF_INF}, total[2] = {0.0f, 0.0f}, shrink[2], factor[2];
        u32 weights[BK / 4];
#pragma unroll
        for (u32 i = 0; i < D / 2; ++i) sums[i] = 0.0f;
        u32 in_block = group * 64 + warp * 16 + lane / 4; // the lane's queries are this and + 8 of the block's
        u32 own = work.first_query + in_block;
        u32 first[2], last[2]; // keys that they see: first <= key < last
#pragma unroll
        for (u32 h = 0; h < 2; ++h) {
            factor[h] = scale * RF_LOG2E * memory.factor(in_block + 8 * h);
            i64 until = (i64)memory.token(own + 8 * h) + work.offset + 1, since = until - window;
            last[h] = causal && until < (i64)work.keys ? (until < 0 ? 0 : (u32)until) : work.keys;
            first[h] = causal && window && since > 0 ? rf_min((u32)since, last[h]) : 0;
        }
        i64 group_first = (i64)memory.token(work.first_query + group * 64) + work.offset;

        auto multiply_keys = [&](u32 stage) __attribute__((always_inline)) {
            u64 tile_k = rf_wgmma_tile(stage, 16, 1024);
#pragma unroll
            for (u32 c = 0; c < D / 16; ++c)
                rf_wgmma<BF16>(scores, tile_q + c / 4 * (Q_PANEL >> 4) + c % 4 * 2, tile_k + c / 4 * (K_PANEL >> 4) + c % 4 * 2, c != 0);
            rf_wgmma_commit();
        };
        auto multiply_values = [&](u32 stage) __attribute__((always_inline)) {
            u64 tile_v = rf_wgmma_tile(stage, K_PANEL, 1024);
#pragma unroll
            for (u32 c = 0; c < BK / 16; ++c)
                rf_wgmma_columns<BF16>(sums, weights[4 * c], weights[4 * c + 1], weights[4 * c + 2], weights[4 * c + 3], tile_v + c * 128);
            rf_wgmma_commit();
        };
        // Scores become weights, as f32.
        auto weigh = [&](u32 tile) __attribute__((always_inline)) {
            u32 k0 = tile * BK;
            bool edge = k0 + BK > work.keys || (causal && ((i64)k0 + BK - 1 > group_first || (window && (i64)k0 <= group_first + 63 - window)));
            if (edge) {
#pragma unroll
                for (u32 i = 0; i < BK / 2; ++i) {
                    u32 key = k0 + i / 4 * 8 + 2 * (lane % 4) + i % 2, h = i / 2 % 2;
                    scores[i] = key - first[h] < last[h] - first[h] ? scores[i] : -RF_INF;
                }
            }
            float best[2] = {-RF_INF, -RF_INF};
#pragma unroll
            for (u32 i = 0; i < BK / 2; ++i) best[i / 2 % 2] = rf_max(best[i / 2 % 2], scores[i]);
#pragma unroll
            for (u32 h = 0; h < 2; ++h) {
                best[h] = rf_max(best[h], rf_shuffle_xor<1>(best[h]));
                best[h] = rf_max(best[h], rf_shuffle_xor<2>(best[h]));
                // `top` has the factor: what is rounded there is the same for all that is compared with it.
                best[h] = rf_max(top[h], best[h] * factor[h]);
                // While everything seen so far is -inf, any finite number does: all weights are 0.
                float base = best[h] == -RF_INF ? 0.0f : best[h];
                shrink[h] = rf_exp2(top[h] - base);
                top[h] = best[h];
                best[h] = base;
                total[h] *= shrink[h];
            }
#pragma unroll
            for (u32 i = 0; i < BK / 2; ++i) {
                scores[i] = rf_exp2(rf_fma(scores[i], factor[i / 2 % 2], -best[i / 2 % 2]));
                total[i / 2 % 2] += scores[i];
            }
        };
        auto pack = [&]() __attribute__((always_inline)) {
#pragma unroll
            for (u32 i = 0; i < BK / 4; ++i) weights[i] = two<BF16>(scores[2 * i], scores[2 * i + 1]);
        };

        if (tiles > 0) {
            rf_mbarrier_wait(keys_there + 8 * stage_k, parity_k);
            rf_fence_async();
            rf_wgmma_hold(scores);
            rf_wgmma_fence();
            multiply_keys(keys + stage_k * TILE);
            rf_wgmma_wait<0>();
            rf_wgmma_hold(scores);
            if (lane == 0) rf_mbarrier_arrive(keys_used + 8 * stage_k);
            if (++stage_k == STAGES) stage_k = 0, parity_k ^= 1;
            weigh(t.end - 1);
            pack();
        }
#pragma unroll 1
        for (u32 j = 1; j < tiles; ++j) {
            rf_mbarrier_wait(keys_there + 8 * stage_k, parity_k);
            rf_fence_async();
            if (TURNS) turn_wait(group);
            rf_wgmma_hold(scores);
            rf_wgmma_hold(sums);
            rf_wgmma_fence();
            multiply_keys(keys + stage_k * TILE);
            rf_mbarrier_wait(values_there + 8 * stage_v, parity_v);
            rf_fence_async();
            rf_wgmma_fence();
            multiply_values(values + stage_v * TILE);
            if (TURNS) turn_give(1 - group);
            rf_wgmma_wait<1>();
            rf_wgmma_hold(scores);
            if (lane == 0) rf_mbarrier_arrive(keys_used + 8 * stage_k);
            if (++stage_k == STAGES) stage_k = 0, parity_k ^= 1;
            weigh(t.end - 1 - j);
            rf_wgmma_wait<0>();
            rf_wgmma_hold(sums);
            if (lane == 0) rf_mbarrier_arrive(values_used + 8 * stage_v);
            if (++stage_v == STAGES) stage_v = 0, parity_v ^= 1;
            pack();
#pragma unroll
            for (u32 i = 0; i < D / 2; ++i) sums[i] *= shrink[i / 2 % 2];
        }
        if (tiles > 0) {
            rf_mbarrier_wait(values_there + 8 * stage_v, parity_v);
            rf_fence_async();
            rf_wgmma_hold(sums);
            rf_wgmma_fence();
            multiply_values(values + stage_v * TILE);
            rf_wgmma_wait<0>();
            rf_wgmma_hold(sums);
            if (lane == 0) rf_mbarrier_arrive(values_used + 8 * stage_v);
            if (++stage_v == STAGES) stage_v = 0, parity_v ^= 1;
        }
#pragma unroll
        for (u32 h = 0; h < 2; ++h) {
            total[h] += rf_shuffle_xor<1>(total[h]);
            total[h] += rf_shuffle_xor<2>(total[h]);
            u32 query = own + 8 * h;
            if (query >= work.queries) continue;
            memory.finish(query, lane % 4 == 0, top[h], total[h]);
            float inverse = total[h] == 0.0f ? 0.0f : 1.0f / total[h];
#pragma unroll
            for (u32 i = 0; i < D / 8; ++i) memory.store(query, 8 * i + 2 * (lane % 4), sums[4 * i + 2 * h] * inverse, sums[4 * i + 2 * h + 1] * inverse);
        }
    }
    if (TURNS && group == 0) turn_wait(0); // takes what group 1 gave last
}
