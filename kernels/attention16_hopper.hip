// The attention of attention16.hip on Hopper's tensor cores, without masks, caps, slopes and sinks: include/attention16.h, include/wgmma.h.
// Shah et al., "FlashAttention-3", 2024.
//
// One warpgroup copies keys and values into two buffers each, GROUPS warpgroups have 64 queries each and walk from the last tile of 128 keys to the
// first. The next scores are multiplied while the current weights are made. Two groups take turns at the tensor cores: one makes weights while the
// other multiplies. Heads of 64 elements leave registers for a third group; three groups overlap without turns.
// Queries, keys and values lie in shared memory in rows of 128 bytes: 64 elements of a head, then the next 64.
// grid = (heads, batches, ceil(seq_q / (64 GROUPS))), the blocks with most keys first where attention is causal. Heads of up to D elements.
#include "include/attention16.h"
#include "include/copy_async.h"
#include "include/functions.h"
#include "include/wgmma.h"

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

// The groups' turns: named barriers 1 and 2 of 256 threads, those who wait and those who let them.
RF_DEVICE void turn_wait(u32 group) { asm volatile("bar.sync %0, 256;" ::"r"(1 + group) : "memory"); }
RF_DEVICE void turn_give(u32 group) { asm volatile("bar.arrive %0, 256;" ::"r"(1 + group) : "memory"); }

template <bool BF16, u32 D, u32 GROUPS>
RF_DEVICE void attention16_hopper(const unsigned short *__restrict__ q, const unsigned short *__restrict__ k, const unsigned short *__restrict__ v,
                                  unsigned short *__restrict__ out, float *__restrict__ lse, const u32 *__restrict__ lengths, const Attention16 &p) {
    constexpr bool TURNS = GROUPS == 2;
    constexpr u32 COPY_REGISTERS = GROUPS == 2 ? 40 : 32, REGISTERS = GROUPS == 2 ? 232 : 160; // all 65,536 of a multiprocessor
    constexpr u32 BQ = 64 * GROUPS, PIECES = D / 8, ROWS = 128 / PIECES; // rows that 128 threads copy at once
    constexpr u32 Q_PANEL = BQ * 128, K_PANEL = BK * 128, TILE = K_PANEL * (D / 64);
    u32 tid = rf_thread(), lane = tid % 32, warp = tid / 32 % 4;
    u32 queries = (rf_shared_address(attention16_lds) + 1023) & ~1023u;
    u32 keys = queries + Q_PANEL * (D / 64), values = keys + STAGES * TILE, barriers = values + STAGES * TILE;
    u32 keys_there = barriers, values_there = keys_there + 8 * STAGES, keys_used = values_there + 8 * STAGES, values_used = keys_used + 8 * STAGES;
    u32 queries_there = values_used + 8 * STAGES;

    u32 blocks = (p.seq_q + BQ - 1) / BQ;
    u32 q0 = (p.causal ? blocks - 1 - rf_block_z() : rf_block_z()) * BQ;
    u32 head = rf_block_x(), batch = rf_block_y(), kv_head = head / (p.heads / p.kv_heads);
    Sequence16 seq = rf_sequence16(p, lengths, batch);
    if (q0 >= seq.queries) return;
    // Tiles of keys that some query of the block sees.
    u32 begin = 0, end = seq.keys;
    if (p.causal) {
        i64 newest = (i64)rf_min(q0 + BQ, seq.queries) - 1 + seq.offset, oldest = (i64)q0 + seq.offset - p.window + 1;
        end = newest < 0 ? 0 : newest + 1 < (i64)end ? (u32)(newest + 1) : end;
        if (p.window && oldest > 0) begin = oldest < (i64)end ? (u32)oldest / BK : (end + BK - 1) / BK;
    }
    u32 last_tile = (end + BK - 1) / BK, tiles = last_tile - begin;

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
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COPY_REGISTERS));
        u32 piece = tid % PIECES, row = tid / PIECES, from = 8 * piece;
        u32 to = row * 128 + ((piece % 8 ^ (row & 7)) << 4); // ROWS is a multiple of 8: the same place in all rows of a thread
        q += rf_plane(p.q, batch, head) + from;
        k += rf_plane(p.k, batch, kv_head) + from;
        v += rf_plane(p.v, batch, kv_head) + from;
        bool in_k = from < p.width_k, in_v = from < p.width_v;
#pragma unroll 4
        for (u32 i = 0; i < BQ / ROWS; ++i) {
            const unsigned short *at = q + rf_min(q0 + row + i * ROWS, seq.queries - 1) * p.q.row;
            rf_copy_async(queries + piece / 8 * Q_PANEL + to + i * ROWS * 128, in_k ? at : q - from, in_k ? 16 : 0);
        }
        rf_mbarrier_copies(queries_there);
        to += piece / 8 * K_PANEL;
        // Rows of keys that do not exist are 0: a weight of 0 times what lies in memory there need not be.
        auto copy = [&](const unsigned short *p0, bool in, u64 stride, u32 stage, u32 tile, u32 there) __attribute__((always_inline)) {
            u32 key = tile * BK + row;
            if (in && tile * BK + BK <= seq.keys) {
                const unsigned short *at = p0 + key * stride;
#pragma unroll
                for (u32 i = 0; i < BK / ROWS; ++i, at += ROWS * stride) rf_copy_async(stage + to + i * ROWS * 128, at, 16);
            } else {
#pragma unroll 1
                for (u32 i = 0; i < BK / ROWS; ++i) {
                    bool exists = in && key + i * ROWS < seq.keys;
                    rf_copy_async(stage + to + i * ROWS * 128, exists ? p0 + (key + i * ROWS) * stride : p0 - from, exists ? 16 : 0);
                }
            }
            rf_mbarrier_copies(there);
        };
        // In the order of use: keys of tile j + 1 before values of tile j.
        u32 stage_k = 0, parity_k = 1, stage_v = 0, parity_v = 1;
#pragma unroll 1
        for (u32 j = 0; j <= tiles; ++j) {
            if (j < tiles) {
                rf_mbarrier_wait(keys_used + 8 * stage_k, parity_k);
                copy(k, in_k, p.k.row, keys + stage_k * TILE, last_tile - 1 - j, keys_there + 8 * stage_k);
                if (++stage_k == STAGES) stage_k = 0, parity_k ^= 1;
            }
            if (j > 0) {
                rf_mbarrier_wait(values_used + 8 * stage_v, parity_v);
                copy(v, in_v, p.v.row, values + stage_v * TILE, last_tile - j, values_there + 8 * stage_v);
                if (++stage_v == STAGES) stage_v = 0, parity_v ^= 1;
            }
        }
        asm volatile("cp.async.wait_all;" ::: "memory");
        return;
    }

    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGISTERS));
    u32 group = tid / 128 - 1;
    float sums[D / 2], scores[BK / 2], top[2] = {-RF_INF, -RF_INF}, total[2] = {0.0f, 0.0f}, shrink[2];
    u32 weights[BK / 4];
#pragma unroll
    for (u32 i = 0; i < D / 2; ++i) sums[i] = 0.0f;
    float factor = p.scale * RF_LOG2E;
    u32 own = q0 + group * 64 + warp * 16 + lane / 4; // the lane's queries are own and own + 8
    u32 first[2], last[2];                            // keys that they see: first <= key < last
#pragma unroll
    for (u32 h = 0; h < 2; ++h) {
        i64 until = (i64)(own + 8 * h) + seq.offset + 1, since = until - p.window;
        last[h] = p.causal && until < (i64)seq.keys ? (until < 0 ? 0 : (u32)until) : seq.keys;
        first[h] = p.causal && p.window && since > 0 ? rf_min((u32)since, last[h]) : 0;
    }
    i64 group_first = (i64)(q0 + group * 64) + seq.offset;
    u64 tile_q = rf_wgmma_tile(queries + group * 64 * 128, 16, 1024);

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
        bool edge = k0 + BK > seq.keys || (p.causal && ((i64)k0 + BK - 1 > group_first || (p.window && (i64)k0 <= group_first + 63 - p.window)));
        if (edge) {
#pragma unroll
            for (u32 i = 0; i < BK / 2; ++i) {
                u32 key = k0 + i / 4 * 8 + 2 * (lane % 4) + i % 2, h = i / 2 % 2;
                scores[i] = key - first[h] < last[h] - first[h] ? scores[i] : -RF_INF;
            }
        }
        float best[2] = {top[0], top[1]};
#pragma unroll
        for (u32 i = 0; i < BK / 2; ++i) best[i / 2 % 2] = rf_max(best[i / 2 % 2], scores[i]);
#pragma unroll
        for (u32 h = 0; h < 2; ++h) {
            best[h] = rf_max(best[h], rf_shuffle_xor<1>(best[h]));
            best[h] = rf_max(best[h], rf_shuffle_xor<2>(best[h]));
            // While everything seen so far is -inf, any finite number does: all weights are 0.
            float base = best[h] == -RF_INF ? 0.0f : best[h] * factor;
            shrink[h] = rf_exp2(top[h] * factor - base);
            top[h] = best[h];
            best[h] = base;
            total[h] *= shrink[h];
        }
#pragma unroll
        for (u32 i = 0; i < BK / 2; ++i) {
            scores[i] = rf_exp2(rf_fma(scores[i], factor, -best[i / 2 % 2]));
            total[i / 2 % 2] += scores[i];
        }
    };
    auto pack = [&]() __attribute__((always_inline)) {
#pragma unroll
        for (u32 i = 0; i < BK / 4; ++i) weights[i] = two<BF16>(scores[2 * i], scores[2 * i + 1]);
    };

    u32 stage_k = 0, parity_k = 0, stage_v = 0, parity_v = 0;
    rf_mbarrier_wait(queries_there, 0);
    if (TURNS && group == 1) turn_give(0);
    if (tiles > 0) {
        rf_mbarrier_wait(keys_there, 0);
        rf_fence_async();
        rf_wgmma_hold(scores);
        rf_wgmma_fence();
        multiply_keys(keys);
        rf_wgmma_wait<0>();
        rf_wgmma_hold(scores);
        if (lane == 0) rf_mbarrier_arrive(keys_used);
        stage_k = 1;
        weigh(last_tile - 1);
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
        weigh(last_tile - 1 - j);
        rf_wgmma_wait<0>();
        rf_wgmma_hold(sums);
        if (lane == 0) rf_mbarrier_arrive(values_used + 8 * stage_v);
        if (++stage_v == STAGES) stage_v = 0, parity_v ^= 1;
        pack();
#pragma unroll
        for (u32 i = 0; i < D / 2; ++i) sums[i] *= shrink[i / 2 % 2];
    }
    if (TURNS && group == 0) turn_wait(0); // takes what group 1 gave last
    if (tiles > 0) {
        rf_mbarrier_wait(values_there + 8 * stage_v, parity_v);
        rf_fence_async();
        rf_wgmma_hold(sums);
        rf_wgmma_fence();
        multiply_values(values + stage_v * TILE);
        rf_wgmma_wait<0>();
        rf_wgmma_hold(sums);
    }
#pragma unroll
    for (u32 h = 0; h < 2; ++h) {
        total[h] += rf_shuffle_xor<1>(total[h]);
        total[h] += rf_shuffle_xor<2>(total[h]);
        u32 query = own + 8 * h;
        if (query >= seq.queries) continue;
        if (lse && lane % 4 == 0)
            lse[((u64)batch * p.heads + head) * p.seq_q + query] = total[h] == 0.0f ? -RF_INF : top[h] * p.scale + rf_log(total[h]);
        float inverse = total[h] == 0.0f ? 0.0f : 1.0f / total[h];
        unsigned short *to = out + rf_plane(p.out, batch, head) + query * p.out.row + 2 * (lane % 4);
#pragma unroll
        for (u32 i = 0; i < D / 8; ++i)
            if (8 * i < p.width_v) *(u32 *)(to + 8 * i) = two<BF16>(sums[4 * i + 2 * h] * inverse, sums[4 * i + 2 * h + 1] * inverse);
    }
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
