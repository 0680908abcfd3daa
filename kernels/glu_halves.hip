// Gated linear units whose result a product takes as rows of f16 (include/half_rows.h): y = f(gate) * up in f32, and as such rows. A block has a row. Only the
// functions that models have most: each is there once for every four of a thread.
#include "include/elementwise.h"
#include "include/grid.h"
#include "include/half_fours.h"

#define RF_GLU_BLOCK 512u
// Fours of a row that a thread holds in registers: 16,384 columns of a block. It reads those beyond a second time, from y.
#define RF_GLU_HELD 8u

// The largest of all threads.
RF_DEVICE float largest_of_block(float v) {
    RF_SHARED float partial[RF_GLU_BLOCK / 32];
    v = rf_max32(v);
    if (rf_thread() % 32 == 0) partial[rf_thread() / 32] = v;
    rf_barrier();
    v = partial[0];
    for (u32 i = 1; i < RF_GLU_BLOCK / 32; ++i) v = rf_max(v, partial[i]);
    return v;
}

// y may be an operand. cols is a multiple of 32. grid = rows.
template <class F> RF_DEVICE void glu_halves(const float *gate, const float *up, float *y, _Float16 *halves, i32 *exponents, u32 cols, F f) {
    rf_grid_begin();
    constexpr u32 STEP = RF_GLU_BLOCK * 4, HELD = RF_GLU_HELD * STEP;
    u64 row = (u64)rf_block_x() * cols;
    gate += row, up += row, y += row, halves += row;
    u32 first = rf_thread() * 4;
    f4 held[RF_GLU_HELD], other[RF_GLU_HELD];
#pragma unroll
    for (u32 s = 0; s < RF_GLU_HELD; ++s) {
        held[s] = other[s] = rf_splat(0.0f);
        u32 c = s * STEP + first;
        if (c < cols) held[s] = rf_get4(gate + c), other[s] = rf_get4(up + c);
    }
    float largest = 0.0f;
#pragma unroll
    for (u32 s = 0; s < RF_GLU_HELD; ++s) {
        u32 c = s * STEP + first;
        if (c < cols) {
            held[s] = f(held[s], other[s]);
            rf_put4(y + c, held[s]);
            largest = rf_max(largest, largest_of(held[s]));
        }
    }
#pragma unroll 1
    for (u32 c = HELD + first; c < cols; c += STEP) {
        f4 v = f(rf_get4(gate + c), rf_get4(up + c));
        rf_put4(y + c, v);
        largest = rf_max(largest, largest_of(v));
    }
    i32 power = rf_half_exponent(largest_of_block(largest));
    if (rf_thread() == 0) exponents[rf_block_x()] = power;
    float factor = rf_power_of_two(-power);
#pragma unroll
    for (u32 s = 0; s < RF_GLU_HELD; ++s) {
        u32 c = s * STEP + first;
        if (c < cols) put_halves(halves + c, held[s], factor);
    }
#pragma unroll 1
    for (u32 c = HELD + first; c < cols; c += STEP) put_halves(halves + c, rf_get4(y + c), factor); // what this thread has written
}

#define RF_GLU_HALVES(name)                                                                                                            \
    RF_KERNEL(RF_GLU_BLOCK)                                                                                                            \
    name##_halves(const float *gate, const float *up, float *y, _Float16 *halves, i32 *exponents, u32 cols) {                          \
        glu_halves(gate, up, y, halves, exponents, cols, [](f4 v, f4 w) __attribute__((always_inline)) { return rf_##name##_4(v, w); }); \
    }
RF_GLU_HALVES(swiglu)
RF_GLU_HALVES(geglu)
