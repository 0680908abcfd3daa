// Activations in f32 to 8-bit integers with a scale for 32: include/q8.h.
#include "include/grid.h"
#include "include/quantize.h"
#include "include/team.h"

// Eight lanes to a block, four values to a lane.
RF_KERNEL(RF_FLAT_BLOCK) quantize_q8(const float *x, u8 *y, u64 n) {
    rf_grid_begin();
    u64 at = rf_flat4();
    f4 v = rf_splat(0.0f);
    if (at < n) v = rf_get4(x + at);
    rf_quantize4(v, y, n, at, at < n);
}
// The same of rows of `cols` elements, `step` from one to the next: a part of longer rows. n = rows * cols.
RF_KERNEL(RF_FLAT_BLOCK) quantize_q8_rows(const float *x, u8 *y, u64 n, u32 cols, u64 step) {
    rf_grid_begin();
    u64 at = rf_flat4();
    f4 v = rf_splat(0.0f);
    if (at < n) {
        u32 row = (u32)(at / 4) / (cols / 4);
        v = rf_get4(x + row * step + (at - (u64)row * cols));
    }
    rf_quantize4(v, y, n, at, at < n);
}
