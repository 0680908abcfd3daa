// y = (the sum of a product's parts over k) 2^(exponents) + bias: what matmul16 leaves when it splits k, in the order of the parts.
// grid = (ceil(m / 8), ceil(n / 1024)).
#include "include/gemm16.h"
#include "include/team.h"

RF_KERNEL(RF_ROW_BLOCK)
sum_parts(const float *parts, const i32 *a_exponents, const i32 *b_exponents, const float *bias, float *y, u32 count, u32 m, u32 n, u64 y_row) {
    RowTile t = RowTile::of(n);
    if (t.row >= m) return;
    const float *from = parts + (u64)t.row * n;
    for (u32 c = t.begin; c < t.end; c += 128) {
        u32 here = rf_left4(c, t.end);
        f4 sum = rf_load4(from + c, here);
        for (u32 i = 1; i < count; ++i) sum += rf_load4(from + (u64)i * m * n + c, here);
#pragma unroll
        for (u32 e = 0; e < 4; ++e)
            if (e < here) {
                if (a_exponents) sum[e] = gemm16_scaled(sum[e], a_exponents[t.row], b_exponents ? b_exponents[c + e] : 0);
                if (bias) sum[e] += bias[c + e];
            }
        rf_store4(y + t.row * y_row + c, sum, here);
    }
}
