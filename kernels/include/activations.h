// Activations on their way to a block's LDS as 8-bit integers (q8.h): rows that are rounded already, or one row of f32.
#pragma once
#include "grid.h"
#include "quantize.h"
#include "team.h"

// N blocks in LDS. The second half of a block lies 16 banks further than the first, so that the lanes that write both meet in no bank.
template <u32 N> struct Q8Held {
    static constexpr u32 HIGH = N + 4;
    u4 quants[HIGH + N]; // low halves, a gap, high halves
    u2 rest[N];
    __attribute__((device, always_inline)) Q8Block block(u32 i) const { return Q8Block::of(quants[i], quants[HIGH + i], rest[i]); }
};

// m rows as quantize_q8 makes them, brought by a block of THREADS.
template <u32 THREADS = RF_ROW_BLOCK> struct RoundedRows {
    const u8 *RF_WRITTEN_BEFORE x;
    u32 m, row_blocks;
    static constexpr bool PARTS = true; // CAP blocks of each row at a time
    struct Weights {};
    __attribute__((device, always_inline)) Weights weights(u32) const { return {}; }

    // `count` blocks of each row, from block `part` on, by all threads of the block.
    template <u32 M, u32 CAP> __attribute__((device, always_inline)) void fill(Q8Held<M * CAP> &held, const Weights &, u32 part, u32 count) const {
        constexpr u32 AHEAD = 2; // blocks that a thread has in flight
        static_assert(M * CAP % (AHEAD * THREADS) == 0);
        u64 blocks = (u64)m * row_blocks;
#pragma unroll 1
        for (u32 f = rf_thread(); f < M * CAP; f += AHEAD * THREADS) {
            u4 low[AHEAD], high[AHEAD];
            u2 rest[AHEAD];
#pragma unroll
            for (u32 e = 0; e < AHEAD; ++e) {
                u32 to = f + e * THREADS, i = to % CAP;
                u32 at = rf_min(to / CAP, m - 1) * row_blocks + part + i;
                if (i < count) {
                    low[e] = *((const u4 *)x + at);
                    high[e] = *((const u4 *)(x + 16 * blocks) + at);
                    rest[e] = *((const u2 *)(x + 32 * blocks) + at);
                }
            }
#pragma unroll
            for (u32 e = 0; e < AHEAD; ++e) {
                u32 to = f + e * THREADS;
                if (to % CAP < count) held.quants[to] = low[e], held.quants[held.HIGH + to] = high[e], held.rest[to] = rest[e];
            }
        }
    }
};

// v summed over the block's THREADS threads.
template <u32 THREADS> RF_DEVICE float rf_block_sum(float v) {
    RF_SHARED float partial[THREADS / 32];
    v = rf_sum32(v);
    if (rf_thread() % 32 == 0) partial[rf_thread() / 32] = v;
    rf_barrier();
    v = partial[0];
    for (u32 i = 1; i < THREADS / 32; ++i) v += partial[i];
    return v;
}

// One row of f32, all of it at once, by a block of THREADS. With weights of a norm it is normed first, x / sqrt(mean(x^2) + eps) * norm, and block 0 of
// the grid writes that to `normed`.
template <u32 THREADS = RF_ROW_BLOCK> struct FloatRow {
    const float *x, *norm;
    float *normed;
    float eps;
    static constexpr bool PARTS = false;
    static constexpr u32 AHEAD = 4; // fours that a thread has in flight
    static constexpr u32 SPAN = THREADS * 4;

    // Weights of the norm; the first of them are loaded before the launch before has ended, if it need not have.
    struct Weights {
        f4 v[AHEAD];
    };
    __attribute__((device, always_inline)) Weights weights(u32 count) const {
        Weights of;
        if (RF_OVERLAP && norm) load(of.v, norm, 0, count * RF_Q8_BLOCK);
        return of;
    }

    // Fours of [from, end), SPAN apart; zeros beyond the end, which is a multiple of 32.
    __attribute__((device, always_inline)) static void load(f4 (&v)[AHEAD], const float *x, u32 from, u32 end) {
#pragma unroll
        for (u32 e = 0; e < AHEAD; ++e) {
            u32 c = from + e * SPAN + rf_thread() * 4;
            v[e] = rf_splat(0.0f);
            if (c < end) v[e] = rf_get4(x + c);
        }
    }

    template <u32 M, u32 CAP> __attribute__((device, always_inline)) void fill(Q8Held<M * CAP> &held, Weights of, u32, u32 count) const {
        static_assert(M == 1);
        u32 cols = count * RF_Q8_BLOCK;
        f4 v[AHEAD];
        load(v, x, 0, cols);
        float factor = 1.0f;
        if (norm) {
            float squares = 0.0f;
#pragma unroll
            for (u32 e = 0; e < AHEAD; ++e) squares += rf_sum4(v[e] * v[e]);
#pragma unroll 1
            for (u32 c = AHEAD * SPAN + rf_thread() * 4; c < cols; c += SPAN) {
                f4 more = rf_get4(x + c);
                squares += rf_sum4(more * more);
            }
            factor = rf_rsqrt(rf_block_sum<THREADS>(squares) * rf_rcp((float)cols) + eps);
        }
#pragma unroll 1
        for (u32 from = 0;;) {
            if (norm && !(RF_OVERLAP && from == 0)) load(of.v, norm, from, cols);
            u32 c = rf_opaque(from + rf_thread() * 4); // anew: the comparisons of the loads would be kept in scalar registers
#pragma unroll
            for (u32 e = 0; e < AHEAD; ++e, c += SPAN) {
                if (from + e * SPAN >= cols) break; // for the whole block
                if (norm) {
                    v[e] = v[e] * factor * of.v[e];
                    if (rf_block_x() == 0 && c < cols) rf_put4(normed + c, v[e]);
                }
                Q8Four q = rf_q8_four(v[e]);
                u32 i = c / RF_Q8_BLOCK, word = c / 4 % 8;
                if (c < cols) {
                    ((u32 *)held.quants)[(word < 4 ? i : held.HIGH + i) * 4 + word % 4] = q.word;
                    if (word == 0) held.rest[i] = rf_q8_rest(q);
                }
            }
            from += AHEAD * SPAN;
            if (from >= cols) break;
            load(v, x, from, cols);
        }
    }
};
