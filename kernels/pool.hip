// From token vectors to sentence vectors.
#include "include/team.h"

// y[b, c] = sum_s x[b, s, c] * weight[b, s] / max(sum_s weight[b, s], 1e-9); the weight is the attention mask, 1 or 0.
// A padded token (weight 0) is not read, so it may hold anything.
RF_KERNEL(256) mean_pool(const float *__restrict__ x, const float *__restrict__ weight, float *__restrict__ y, u32 seq, u32 cols) {
    u32 c = rf_block_x() * 256 + rf_thread();
    if (c >= cols) return;
    u32 b = rf_block_y();
    const float *in = x + (u64)b * seq * cols + c;
    const float *w = weight + (u64)b * seq;
    float sum = 0.0f;
    float total = 0.0f;
    for (u32 s = 0; s < seq; ++s) {
        if (w[s] != 0.0f) sum = rf_fma(in[(u64)s * cols], w[s], sum);
        total += w[s];
    }
    // A sixteenth of both: the reciprocal of the largest weights is not a normal number, and 0 on AMD.
    y[(u64)b * cols + c] = sum * (1.0f / 16.0f) * rf_rcp(rf_max(total, 1e-9f) * (1.0f / 16.0f));
}

// y = x / max(|x|, eps), row by row. y may be x.
RF_KERNEL(RF_ROW_BLOCK) l2_normalize(const float *x, float *y, u32 rows, u32 cols, float eps) {
    u32 row = Team32::row();
    if (row >= rows) return;
    const float *in = x + (u64)row * cols;
    float *out = y + (u64)row * cols;
    float squares = 0.0f;
    if (Held32::fits(x, y, cols)) {
        Held32 held;
        Held32::load(held, in, cols);
        Held32::each(held, cols, [&](f4 &v, u32) { squares += rf_sum4(v * v); });
        float factor = rf_rsqrt(rf_max(Team32::sum(squares), eps * eps));
        Held32::each(held, cols, [&](f4 &v, u32 c) { *(f4_wide *)(out + c) = v * factor; });
        return;
    }
    for (u32 c = Team32::lane(); c < cols; c += Team32::width) squares = rf_fma(in[c], in[c], squares);
    float factor = rf_rsqrt(rf_max(Team32::sum(squares), eps * eps));
    for (u32 c = Team32::lane(); c < cols; c += Team32::width) out[c] = in[c] * factor;
}
