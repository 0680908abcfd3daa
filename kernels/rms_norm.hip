// y = x / sqrt(mean(x^2) + eps) * weight, row by row. y may be x.
// Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019.
#include "include/grid.h"
#include "include/team.h"

template <class Team>
RF_DEVICE void rms_norm(const float *x, const float *weight, float *y, u32 rows, u32 cols, float eps) {
    rf_grid_begin();
    u32 row = Team::row();
    if (row >= rows) return;
    const float *in = x + (u64)row * cols;
    float *out = y + (u64)row * cols;
    typedef typename HeldBy<Team>::Row Row;
    float squares = 0.0f;
    if (Row::fits(x, y, cols) && rf_wide(weight, 0)) {
        Row held;
        Row::load(held, in, cols);
        Row::each(held, cols, [&](f4 &v, u32) { squares += rf_sum4(v * v); });
        float factor = rf_rsqrt(Team::sum(squares) * rf_rcp((float)cols) + eps);
        Row::each(
            held, cols, [&](u32 c) -> f4 { return *(const f4_wide *)(weight + c); },
            [&](f4 &v, f4 w, u32 c) { *(f4_wide *)(out + c) = v * factor * w; });
        return;
    }
    for (u32 c = Team::lane(); c < cols; c += Team::width) squares = rf_fma(in[c], in[c], squares);
    float factor = rf_rsqrt(Team::sum(squares) * rf_rcp((float)cols) + eps);
    for (u32 c = Team::lane(); c < cols; c += Team::width) out[c] = in[c] * factor * weight[c];
}

RF_KERNEL(RF_ROW_BLOCK) rms_norm_rows(const float *x, const float *weight, float *y, u32 rows, u32 cols, float eps) {
    rms_norm<Team32>(x, weight, y, rows, cols, eps);
}
RF_KERNEL(RF_ROW_BLOCK) rms_norm_block(const float *x, const float *weight, float *y, u32 rows, u32 cols, float eps) {
    rms_norm<Team256>(x, weight, y, rows, cols, eps);
}
