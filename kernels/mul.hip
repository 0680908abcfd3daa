// Products: element by element, and of every row with a row vector. y may be one of the operands.
#include "include/team.h"

RF_KERNEL(RF_FLAT_BLOCK) mul(const float *a, const float *b, float *y, u64 n) {
    u64 i = rf_flat4();
    u32 count = rf_left4(i, n);
    rf_store4(y + i, rf_load4(a + i, count) * rf_load4(b + i, count), count);
}

// y[r, c] = x[r, c] * factor[c]
RF_KERNEL(RF_ROW_BLOCK) mul_row(const float *x, const float *factor, float *y, u32 rows, u32 cols) {
    RowTile t = RowTile::of(cols);
    if (t.row >= rows) return;
    u64 base = (u64)t.row * cols;
    for (u32 c = t.begin; c < t.end; c += 128) {
        u32 count = rf_left4(c, t.end);
        rf_store4(y + base + c, rf_load4(x + base + c, count) * rf_load4(factor + c, count), count);
    }
}
