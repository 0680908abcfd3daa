// Products of packed weights with a few rows of activations of 8 bits: RF_MATVEC_Q8(name, Type) makes the kernels of a type of planes.h. Two to
// eight rows come as 8-bit integers (quantize_q8). One row comes in f32, and every block of the grid rounds it by itself, and norms it before if
// that is wanted: a launch more would take longer.
//
// R neighbouring rows of weights are a group; a step is 32 blocks of each of them, one to a lane. The groups are shared out evenly to the
// blocks of the grid, and the steps of these groups evenly to the block's teams of 32 lanes: a team's steps are one stretch of the matrix,
// which may begin and end within a row. The loads of the next step are in flight while a step is used, across the ends of rows too. The
// sums of a group that several teams share go through LDS.
//
// The activations are in LDS. Of several rows these are CAP blocks of each at a time if they are many: the sums of later parts are added to y. One
// row has at most CAP blocks.
#pragma once
#include "activations.h"
#include "planes.h"

// Threads of a block, and blocks of a multiprocessor. The registers of one of NVIDIA's are those of 512 threads: as one block they bring the
// activations to shared memory once, where two blocks do it twice (12.7 in place of 14.5 us for a row, 4096 x 14336 in Q4_0 on an H200).
#if defined(__CUDA_ARCH__)
#define RF_MATVEC_BLOCK 512
#define RF_MATVEC_RESIDENT 1
#else
#define RF_MATVEC_BLOCK RF_ROW_BLOCK
#define RF_MATVEC_RESIDENT 2
#endif

// v[0 .. V] summed over 32 lanes: lane l gets the sum of v[l / (32 / V)]. V is a power of two, at most 32.
template <u32 V, u32 MASK = 16> RF_DEVICE float rf_sum_each(const float (&v)[V]) {
    if constexpr (V > 1) {
        constexpr u32 H = V / 2;
        bool upper = rf_thread() & MASK;
        float half[H];
#pragma unroll
        for (u32 i = 0; i < H; ++i) {
            float a = v[i], b = v[i + H]; // numbers to choose from, not places in memory
            half[i] = (upper ? b : a) + rf_shuffle_xor<MASK>(upper ? a : b);
        }
        return rf_sum_each<H, MASK / 2>(half);
    } else if constexpr (MASK > 0) {
        float sum[1] = {v[0] + rf_shuffle_xor<MASK>(v[0])};
        return rf_sum_each<1, MASK / 2>(sum);
    } else {
        return v[0];
    }
}

// How the groups are shared out.
struct GroupShare {
    u32 m, row_blocks;
    u32 each, more; // groups of each block of the grid; the first `more` blocks have another one
};

// A part of the columns: the first one begins the sums, the last one ends them.
struct PartOf {
    bool first, last;
};

// One matrix [n, k], a group being R neighbouring rows: y = x w^T (+ bias), and total = y + residual, which may be either of both.
template <class W, u32 R> struct OneMatrix {
    const u8 *__restrict__ w;
    const float *bias, *residual;
    float *y, *total;
    u32 m, n, row_blocks;
    // Block i of row r of a group.
    __attribute__((device, always_inline)) typename W::Raw load(u32 group, u32 r, u32 i) const {
        u32 row = rf_min(group * R + r, n - 1);
        return W::load(w, (u64)n * row_blocks, row * row_blocks + i);
    }
    // Sum `own` of a group, which all lanes call with; one lane of each `leads`. Element i of the sums is row i % R, activations i / R.
    __attribute__((device, always_inline)) void put(u32 group, u32 own, bool leads, PartOf part, float sum) const {
        u32 row = group * R + own % R, j = own / R;
        if (leads && row < n && j < m) {
            u64 at = (u64)j * n + row;
            if (!part.first) sum += y[at];
            else if (bias) sum += bias[row];
            float before = part.last && total ? residual[at] : 0.0f; // total may be y
            y[at] = sum;
            if (part.last && total) total[at] = sum + before;
        }
    }
};

// In is a struct of activations.h: M rows. A block has THREADS.
template <class W, u32 M, u32 R, u32 CAP, u32 THREADS = RF_ROW_BLOCK, class In, class Rows>
RF_DEVICE void matvec_q8(const In &in, const Rows &rows, GroupShare a) {
    constexpr u32 TEAMS = THREADS / 32;
    constexpr u32 V = M * R;
    static_assert(CAP % 32 == 0 && 32 % V == 0);
    RF_SHARED Q8Held<M * CAP> held;
    RF_SHARED float begun[TEAMS][V];   // sums of groups that a team began and did not end
    RF_SHARED float carried[TEAMS][V]; // and of those that another team began
    u32 thread = rf_thread(), team = rf_common(thread / 32), lane = thread % 32;
    u32 group0 = rf_block_x() * a.each + rf_min(rf_block_x(), a.more);
    u32 groups = a.each + (rf_block_x() < a.more ? 1 : 0);

    u32 own = lane / (32 / V);
    bool leads = lane % (32 / V) == 0;

#pragma unroll 1
    for (u32 part = 0; part < a.row_blocks; part += CAP) {
        u32 count = rf_min(CAP, a.row_blocks - part), steps = (count + 31) / 32;
        PartOf this_part = {part == 0, !In::PARTS || part + CAP >= a.row_blocks};
        u32 all = groups * steps;
        u32 first = all * team / TEAMS, last = all * (team + 1) / TEAMS;
        u32 group = group0 + first / steps, step = first % steps;

        typename W::Raw next[R];
        auto fetch = [&](u32 group, u32 step) {
            u32 i = step * 32 + lane;
            if (i < count) {
#pragma unroll
                for (u32 r = 0; r < R; ++r) next[r] = rows.load(group, r, part + i);
            }
        };
        if (first < last) fetch(group, step);

        typename In::Weights weights = in.weights(count);
        if (part != 0) rf_barrier(); // the previous part has been used
        else rf_grid_begin();        // the first weights are on their way
        in.template fill<M, CAP>(held, weights, part, count);
        rf_barrier();

        float acc[V] = {};
        bool whole = step == 0; // this team began the group
#pragma unroll 1
        for (u32 s = first; s < last; ++s) {
            u32 i = step * 32 + lane;
            decltype(W::of(next[0], i)) block[R];
#pragma unroll
            for (u32 r = 0; r < R; ++r) block[r] = W::of(next[r], i);
            bool ends = step + 1 == steps;
            u32 this_group = group;
            step = ends ? 0 : step + 1;
            group = ends ? group + 1 : group;
            if (s + 1 < last) fetch(group, step);
            if (i < count) {
#pragma unroll
                for (u32 j = 0; j < M; ++j) {
                    Q8Block x = held.block(j * CAP + i);
#pragma unroll
                    for (u32 r = 0; r < R; ++r) acc[j * R + r] = W::add(block[r], x, acc[j * R + r]);
                }
            }
            if (ends || s + 1 == last) {
                float sum = rf_sum_each<V>(acc);
                if (ends && whole) rows.put(this_group, own, leads, this_part, sum);
                else if (leads) (whole ? begun : carried)[team][own] = sum;
                if (ends) whole = true;
#pragma unroll
                for (u32 v = 0; v < V; ++v) acc[v] = 0.0f;
            }
        }
        rf_barrier();
        if (step != 0 && first < last && whole) {
            float sum = begun[team][own];
            u32 end = (group + 1 - group0) * steps;
#pragma unroll 1
            for (u32 t = team + 1; t < TEAMS; ++t) {
                u32 from = all * t / TEAMS;
                if (from < end && from < all * (t + 1) / TEAMS) sum += carried[t][own];
            }
            rows.put(group, own, leads, this_part, sum);
        }
        if constexpr (!In::PARTS) break;
    }
}

#define RF_MATVEC_Q8_M(name, Type, M, R, CAP)                                                                                  \
    RF_KERNEL_RESIDENT(RF_MATVEC_BLOCK, RF_MATVEC_RESIDENT)                                                                    \
    matvec_q8_##name##_m##M(const u8 *__restrict__ w, const u8 *RF_WRITTEN_BEFORE x, const float *bias, const float *residual, \
                            float *y, float *total, u32 m, u32 n, u32 row_blocks, u32 each, u32 more) {                        \
        OneMatrix<Type, R> rows = {w, bias, residual, y, total, m, n, row_blocks};                                             \
        matvec_q8<Type, M, R, CAP, RF_MATVEC_BLOCK>(RoundedRows<RF_MATVEC_BLOCK>{x, m, row_blocks}, rows,                      \
                                                    GroupShare{m, row_blocks, each, more});                                    \
    }

#define RF_MATVEC_Q8_ROW(name, Type, R)                                                                                       \
    RF_KERNEL_RESIDENT(RF_MATVEC_BLOCK, RF_MATVEC_RESIDENT)                                                                   \
    matvec_q8_##name##_row(const u8 *__restrict__ w, const float *x, const float *norm, float *normed, float eps,             \
                           const float *bias, const float *residual, float *y, float *total, u32 n, u32 row_blocks, u32 each, \
                           u32 more) {                                                                                        \
        OneMatrix<Type, R> rows = {w, bias, residual, y, total, 1, n, row_blocks};                                            \
        matvec_q8<Type, 1, R, 512, RF_MATVEC_BLOCK>(FloatRow<RF_MATVEC_BLOCK>{x, norm, normed, eps}, rows,                    \
                                                     GroupShare{1, row_blocks, each, more});                                  \
    }

// Rows of weights to a group, for one row of activations and for two to four; of eight it has 2: what 128 registers hold without spills.
template <class W> struct GroupOf { static constexpr u32 one = 4, few = 2; };
template <> struct GroupOf<PackedQ4_0> { static constexpr u32 one = 4, few = 4; };
template <> struct GroupOf<PackedQ4_1> { static constexpr u32 one = 4, few = 4; };
template <> struct GroupOf<PackedQ5_0> { static constexpr u32 one = 4, few = 4; };
template <> struct GroupOf<PackedQ8_0> { static constexpr u32 one = 2, few = 2; };

#define RF_MATVEC_Q8(name, Type)                           \
    RF_MATVEC_Q8_ROW(name, Type, GroupOf<Type>::one)       \
    RF_MATVEC_Q8_M(name, Type, 2, GroupOf<Type>::few, 512) \
    RF_MATVEC_Q8_M(name, Type, 4, GroupOf<Type>::few, 256) \
    RF_MATVEC_Q8_M(name, Type, 8, 2, 128)
