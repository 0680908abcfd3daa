// sum = a + b, y = sum / sqrt(mean(sum^2) + eps) * weight, and y as 8-bit activations (include/q8.h) or as rows of f16 (include/half_rows.h), row by row. Without b
// the sum is a, and is not written. sum and y may each be a or b, but not the same one.
#include "include/grid.h"
#include "include/half_fours.h"
#include "include/quantize.h"
#include "include/team.h"

struct AddNorm {
    const float *a, *b, *weight;
    float *sum, *y;
    u8 *q8;           // or null
    _Float16 *halves; // or null, with the exponents
    i32 *exponents;
    u32 rows, cols;
    float eps;
};

template <class Team> RF_DEVICE void add_rms_norm(const AddNorm &p) {
    rf_grid_begin();
    u32 row = Team::row(), cols = p.cols;
    if (row >= p.rows) return;
    u64 first = (u64)row * cols, all = (u64)p.rows * cols;
    const float *a = p.a + first, *b = p.b ? p.b + first : nullptr;
    float *sum = p.sum + first, *y = p.y + first;
    typedef typename HeldBy<Team>::Row Row;
    constexpr u32 STEPS = sizeof(Row) / sizeof(f4);
    float squares = 0.0f;
    if (Row::fits(p.a, p.y, cols) && rf_wide(p.weight, 0) && (!b || (rf_wide(p.b, cols) && rf_wide(p.sum, cols)))) {
        Row held;
        Row::load(held, a, cols);
        if (b) {
            Row other;
            Row::load(other, b, cols);
#pragma unroll
            for (u32 s = 0; s < STEPS; ++s) {
                u32 c = (s * Team::width + Team::lane()) * 4;
                held.v[s] += other.v[s];
                if (c < cols) *(f4_wide *)(sum + c) = held.v[s];
            }
        }
        Row::each(held, cols, [&](f4 &v, u32) { squares += rf_sum4(v * v); });
        float factor = rf_rsqrt(Team::sum(squares) * rf_rcp((float)cols) + p.eps);
        Row::each(
            held, cols, [&](u32 c) -> f4 { return *(const f4_wide *)(p.weight + c); },
            [&](f4 &v, f4 w, u32 c) {
                v = v * factor * w;
                *(f4_wide *)(y + c) = v;
            });
        if (p.halves) {
            float largest = 0.0f;
            Row::each(held, cols, [&](f4 &v, u32) { largest = rf_max(largest, largest_of(v)); });
            i32 power = rf_half_exponent(Team::max(largest));
            if (Team::lane() == 0) p.exponents[row] = power;
            Row::each(held, cols, [&](f4 &v, u32 c) { put_halves(p.halves + first + c, v, rf_power_of_two(-power)); });
        }
        if (!p.q8) return;
#pragma unroll
        for (u32 s = 0; s < STEPS; ++s) {
            u32 c = (s * Team::width + Team::lane()) * 4;
            if (s * Team::width * 4 < cols) rf_quantize4(held.v[s], p.q8, all, first + c, c < cols);
        }
        return;
    }
    for (u32 c = Team::lane(); c < cols; c += Team::width) {
        float v = b ? a[c] + b[c] : a[c];
        squares = rf_fma(v, v, squares);
    }
    float factor = rf_rsqrt(Team::sum(squares) * rf_rcp((float)cols) + p.eps);
    float largest = 0.0f;
    // Fours of 32 lanes, so that eight of them have a block; all reads above are done.
    for (u32 from = 0; from < cols; from += Team::width * 4) {
        u32 c = from + Team::lane() * 4, count = c < cols ? rf_left4(c, cols) : 0;
        f4 v = rf_splat(0.0f);
        if (count != 0) {
            v = rf_load4(a + c, count);
            if (b) {
                v += rf_load4(b + c, count);
                rf_store4(sum + c, v, count);
            }
            v = v * factor * rf_load4(p.weight + c, count);
            rf_store4(y + c, v, count);
        }
        if (p.q8) rf_quantize4(v, p.q8, all, first + c, count != 0);
        largest = rf_max(largest, largest_of(v));
    }
    if (!p.halves) return;
    i32 power = rf_half_exponent(Team::max(largest));
    if (Team::lane() == 0) p.exponents[row] = power;
    // Each thread reads what it has written.
    for (u32 c = Team::lane() * 4; c < cols; c += Team::width * 4) put_halves(p.halves + first + c, rf_load4(y + c, 4), rf_power_of_two(-power));
}

RF_KERNEL(RF_ROW_BLOCK)
add_rms_norm_rows(const float *a, const float *b, const float *weight, float *sum, float *y, u8 *q8, _Float16 *halves, i32 *exponents, u32 rows, u32 cols,
                  float eps) {
    add_rms_norm<Team32>(AddNorm{a, b, weight, sum, y, q8, halves, exponents, rows, cols, eps});
}
RF_KERNEL(RF_ROW_BLOCK)
add_rms_norm_block(const float *a, const float *b, const float *weight, float *sum, float *y, u8 *q8, _Float16 *halves, i32 *exponents, u32 rows, u32 cols,
                   float eps) {
    add_rms_norm<Team256>(AddNorm{a, b, weight, sum, y, q8, halves, exponents, rows, cols, eps});
}
