// Products with matrices of floats that have few rows, such as a router's: a block has a row of weights and a row of activations.
#include "include/grid.h"
#include "include/quant.h"
#include "include/team.h"

// A matrix [n, k], its bias [n] or null, and its result [m, n].
struct RowProduct {
    const u8 *RF_WRITTEN_BEFORE w;
    const float *bias;
    float *y;
    u32 n;
};

// y[j, row] = x[j, :] . w[row, :] (+ bias[row]) of one matrix or of two. grid = (rows of both, m).
template <class W> RF_DEVICE void matvec_block(const RowProduct &a, const RowProduct &b, const float *RF_WRITTEN_BEFORE x, u32 k) {
    rf_grid_begin(); // a matrix may be what the launch before has computed
    u32 row = rf_block_x(), thread = rf_thread(), fours = k / 4;
    bool second = row >= a.n;
    row -= second ? a.n : 0;
    const u8 *w = second ? b.w : a.w;
    const float *bias = second ? b.bias : a.bias;
    float *y = second ? b.y : a.y;
    u32 n = second ? b.n : a.n;
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

#define RF_MATVEC_BLOCK(name, Type)                                                                                                       \
    RF_KERNEL(RF_ROW_BLOCK)                                                                                                             \
    matvec_block_##name(const float *x, const u8 *w, const float *bias, float *y, const u8 *w2, const float *bias2, float *y2, u32 n, u32 n2,  \
                      u32 k) {                                                                                                          \
        matvec_block<Type>(RowProduct{w, bias, y, n}, RowProduct{w2, bias2, y2, n2}, x, k);                                                     \
    }
RF_MATVEC_BLOCK(f32, F32)
RF_MATVEC_BLOCK(f16, F16)
RF_MATVEC_BLOCK(bf16, Bf16)
