// A team is the group of threads that works on one row: 32 lanes (shuffles only, eight rows to a block) or a whole block of 256
// threads (shuffles, then LDS). Row kernels are written once over either.
#pragma once
#include "rf.h"

#define RF_ROW_BLOCK 256
#define RF_ROWS_PER_BLOCK 8

RF_DEVICE float rf_max32(float v) {
    v = rf_max(v, rf_shuffle_xor<16>(v));
    v = rf_max(v, rf_shuffle_xor<8>(v));
    v = rf_max(v, rf_shuffle_xor<4>(v));
    v = rf_max(v, rf_shuffle_xor<2>(v));
    return rf_max(v, rf_shuffle_xor<1>(v));
}

RF_DEVICE float rf_sum32(float v) {
    v += rf_shuffle_xor<16>(v);
    v += rf_shuffle_xor<8>(v);
    v += rf_shuffle_xor<4>(v);
    v += rf_shuffle_xor<2>(v);
    return v + rf_shuffle_xor<1>(v);
}

// 32 lanes to a row. All 32 have the same row, so a row out of range leaves the kernel as a whole group.
struct Team32 {
    static constexpr u32 width = 32;
    RF_DEVICE u32 lane() { return rf_thread() % 32; }
    RF_DEVICE u32 row() { return row_of(rf_block_x()); }
    RF_DEVICE u32 row_of(u32 block) { return block * RF_ROWS_PER_BLOCK + rf_thread() / 32; }
    RF_DEVICE float max(float v) { return rf_max32(v); }
    RF_DEVICE float sum(float v) { return rf_sum32(v); }
};

// A block to a row.
struct Team256 {
    static constexpr u32 width = RF_ROW_BLOCK;
    RF_DEVICE u32 lane() { return rf_thread(); }
    RF_DEVICE u32 row() { return rf_block_x(); }
    RF_DEVICE u32 row_of(u32 block) { return block; }

    RF_DEVICE float *exchange(float v) {
        RF_SHARED float partial[RF_ROW_BLOCK / 32];
        rf_barrier(); // the previous exchange has been read
        if (rf_thread() % 32 == 0) partial[rf_thread() / 32] = v;
        rf_barrier();
        return partial;
    }
    RF_DEVICE float max(float v) {
        float *partial = exchange(rf_max32(v));
        v = partial[0];
        for (u32 i = 1; i < RF_ROW_BLOCK / 32; ++i) v = rf_max(v, partial[i]);
        return v;
    }
    RF_DEVICE float sum(float v) {
        float *partial = exchange(rf_sum32(v));
        v = partial[0];
        for (u32 i = 1; i < RF_ROW_BLOCK / 32; ++i) v += partial[i];
        return v;
    }
};

// A row of whole fours that the team holds in registers, read once however often it is used: up to STEPS fours to a thread.
// All of them are asked for before the first is used, so that they are in flight together.
template <class Team, u32 STEPS> struct HeldRow {
    f4 v[STEPS];

    // Whether rows of `cols` columns in x and y can be held.
    RF_DEVICE bool fits(const float *x, const float *y, u32 cols) {
        return cols <= Team::width * 4 * STEPS && cols % 4 == 0 && rf_wide(x, cols) && rf_wide(y, cols);
    }
    RF_DEVICE void load(HeldRow &row, const float *in, u32 end) {
#pragma unroll
        for (u32 s = 0; s < STEPS; ++s) {
            u32 c = (s * Team::width + Team::lane()) * 4;
            row.v[s] = rf_splat(0.0f);
            if (c < end) row.v[s] = *(const f4_wide *)(in + c);
        }
    }
    // Calls f(four values, first column) for each four that this thread has of `end` columns.
    template <class F> RF_DEVICE void each(HeldRow &row, u32 end, F f) {
#pragma unroll
        for (u32 s = 0; s < STEPS; ++s) {
            u32 c = (s * Team::width + Team::lane()) * 4;
            if (c < end) f(row.v[s], c);
        }
    }
    // Calls f(four values, what `beside` read for them, first column). Four steps read before the first of them is used.
    template <class Beside, class F> RF_DEVICE void each(HeldRow &row, u32 end, Beside beside, F f) {
#pragma unroll
        for (u32 batch = 0; batch < STEPS; batch += 4) {
            decltype(beside(0u)) read[4];
#pragma unroll
            for (u32 s = 0; s < 4; ++s) {
                u32 c = ((batch + s) * Team::width + Team::lane()) * 4;
                if (c < end) read[s] = beside(c);
            }
#pragma unroll
            for (u32 s = 0; s < 4; ++s) {
                u32 c = ((batch + s) * Team::width + Team::lane()) * 4;
                if (c < end) f(row.v[batch + s], read[s], c);
            }
        }
    }
};

// 32 lanes hold up to 1024 columns.
typedef HeldRow<Team32, 8> Held32;
// A block holds up to 4096: more registers would leave room for fewer blocks.
typedef HeldRow<Team256, 4> Held256;
template <class Team> struct HeldBy;
template <> struct HeldBy<Team32> { typedef Held32 Row; };
template <> struct HeldBy<Team256> { typedef Held256 Row; };

// Element-wise work on rows: a block covers 8 rows and 1024 columns, 32 lanes to a row, four columns to a lane and step.
// grid = (ceil(rows / 8), ceil(cols / 1024)).
#define RF_ROW_COLS 1024

struct RowTile {
    u32 row, begin, end;
    RF_DEVICE RowTile of(u32 cols) {
        u32 first = rf_block_y() * RF_ROW_COLS;
        return RowTile{rf_block_x() * RF_ROWS_PER_BLOCK + rf_thread() / 32, first + rf_thread() % 32 * 4,
                       cols - first > RF_ROW_COLS ? first + RF_ROW_COLS : cols};
    }
};

// Element-wise work on flat arrays: a block of 256 threads covers 1024 elements, four to a thread. grid = ceil(n / 1024).
#define RF_FLAT_BLOCK 256
#define RF_FLAT_TILE 1024

RF_DEVICE u64 rf_flat4() { return (u64)rf_block_x() * RF_FLAT_TILE + rf_thread() * 4; }
