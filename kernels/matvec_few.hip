// Products with matrices of floats that have few rows, such as a router's: a block has a row of weights and a row of activations.
#include "include/grid.h"
#include "include/quant.h"
#include "include/team.h"

// y[j, row] = x[j, :] . w[row, :] (+ bias[row]). grid = (n, m).
template <class W>
RF_DEVICE void matvec_few(const u8 *RF_WRITTEN_BEFORE w, const float *RF_WRITTEN_BEFORE x, const float *__restrict__ bias, float *y, u32 n, u32 k) {
    rf_grid_begin(); // the matrix may be what the launch before has computed
    u32 row = rf_block_x(), thread = rf_thread(), fours = k / 4;
    const u8 *own = w + (u64)row * k * W::bytes;
    x += (u64)rf_block_y() * k;
    float sum = 0.0f;
#pragma unroll 4
    for (u32 i = thread; i < fours; i += RF_ROW_BLOCK) {
        f4 a = W::four(own, i), b = rf_get4(x + 4 * i);
#pragma unroll
        for (u32 e = 0; e < 4; ++e) sum = rf_fma(a[e], b[e], sum);
    }
    u32 at = 4 * fours + thread;
    if (at < k) sum = rf_fma(W::one(own, at), x[at], sum);
    sum = Team256::sum(sum);
    if (thread == 0) y[(u64)rf_block_y() * n + row] = bias ? sum + bias[row] : sum;
}

#define RF_MATVEC_FEW(name, Type)                                                                                                       \
    RF_KERNEL(RF_ROW_BLOCK)                                                                                                             \
    matvec_few_##name(const u8 *w, const float *x, const float *bias, float *y, u32 n, u32 k) { matvec_few<Type>(w, x, bias, y, n, k); }
RF_MATVEC_FEW(f32, F32)
RF_MATVEC_FEW(f16, F16)
RF_MATVEC_FEW(bf16, Bf16)
