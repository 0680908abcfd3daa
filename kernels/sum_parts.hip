// y = (the sum of a product's parts over k) 2^(exponents) + bias, in the order of the parts: what matmul16 and packed16 leave when they split k.
// A block has 1024 columns of a row, for there may be few rows: grid = (m, ceil(n / 1024)).
#include "include/gemm16.h"
#include "include/grid.h"
#include "include/team.h"

RF_KERNEL(RF_ROW_BLOCK)
sum_parts(const float *parts, const i32 *a_exponents, const i32 *b_exponents, const float *bias, float *y, u32 count, u32 m, u32 n, u64 y_row) {
    rf_grid_begin();
    constexpr u32 AHEAD = 2; // parts whose loads are in flight
    u32 row = rf_block_x(), c = rf_block_y() * RF_ROW_COLS + rf_thread() * 4, here = rf_left4(c, n);
    if (here == 0) return;
    const float *from = parts + (u64)row * n + c;
    f4 sum = rf_splat(0.0f);
#pragma unroll 1
    for (u32 i = 0; i < count; i += AHEAD) {
        f4 part[AHEAD];
#pragma unroll
        for (u32 e = 0; e < AHEAD; ++e) part[e] = i + e < count ? rf_load4(from + (u64)(i + e) * m * n, here) : rf_splat(0.0f);
#pragma unroll
        for (u32 e = 0; e < AHEAD; ++e) sum += part[e];
    }
#pragma unroll
    for (u32 e = 0; e < 4; ++e)
        if (e < here) {
            if (a_exponents) sum[e] = gemm16_scaled(sum[e], a_exponents[row], b_exponents ? b_exponents[c + e] : 0);
            if (bias) sum[e] += bias[c + e];
        }
    rf_store4(y + row * y_row + c, sum, here);
}
