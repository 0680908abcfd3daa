// y = (x - mean) / sqrt(variance + eps) * weight + bias, row by row; the variance is that of the row (divided by its length),
// taken in a second pass over the differences, so that a large mean costs no digits. y may be x.
#include "include/team.h"

struct Affine {
    f4 weight, bias;
};

template <class Team>
RF_DEVICE void layer_norm(const float *x, const float *weight, const float *bias, float *y, u32 rows, u32 cols, float eps) {
    u32 row = Team::row();
    if (row >= rows) return;
    const float *in = x + (u64)row * cols;
    float *out = y + (u64)row * cols;
    typedef typename HeldBy<Team>::Row Row;
    float sum = 0.0f;
    if (Row::fits(x, y, cols) && rf_wide(weight, 0) && rf_wide(bias, 0)) {
        Row held;
        Row::load(held, in, cols);
        Row::each(held, cols, [&](f4 &v, u32) { sum += rf_sum4(v); });
        float mean = Team::sum(sum) * rf_rcp((float)cols);
        float squares = 0.0f;
        Row::each(held, cols, [&](f4 &v, u32) {
            v -= mean;
            squares += rf_sum4(v * v);
        });
        float factor = rf_rsqrt(Team::sum(squares) * rf_rcp((float)cols) + eps);
        Row::each(
            held, cols, [&](u32 c) { return Affine{*(const f4_wide *)(weight + c), *(const f4_wide *)(bias + c)}; },
            [&](f4 &v, Affine a, u32 c) { *(f4_wide *)(out + c) = v * factor * a.weight + a.bias; });
        return;
    }
    for (u32 c = Team::lane(); c < cols; c += Team::width) sum += in[c];
    float mean = Team::sum(sum) * rf_rcp((float)cols);
    float squares = 0.0f;
    for (u32 c = Team::lane(); c < cols; c += Team::width) {
        float d = in[c] - mean;
        squares = rf_fma(d, d, squares);
    }
    float factor = rf_rsqrt(Team::sum(squares) * rf_rcp((float)cols) + eps);
    for (u32 c = Team::lane(); c < cols; c += Team::width) out[c] = rf_fma((in[c] - mean) * factor, weight[c], bias[c]);
}

RF_KERNEL(RF_ROW_BLOCK)
layer_norm_rows(const float *x, const float *weight, const float *bias, float *y, u32 rows, u32 cols, float eps) {
    layer_norm<Team32>(x, weight, bias, y, rows, cols, eps);
}
RF_KERNEL(RF_ROW_BLOCK)
layer_norm_block(const float *x, const float *weight, const float *bias, float *y, u32 rows, u32 cols, float eps) {
    layer_norm<Team256>(x, weight, bias, y, rows, cols, eps);
}
