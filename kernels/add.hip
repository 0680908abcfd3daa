// Sums: element by element, and of a row vector to every row (the bias of a linear layer). y may be one of the operands.
#include "include/team.h"

RF_KERNEL(RF_FLAT_BLOCK) add(const float *a, const float *b, float *y, u64 n) {
    u64 i = rf_flat4();
    u32 count = rf_left4(i, n);
    rf_store4(y + i, rf_load4(a + i, count) + rf_load4(b + i, count), count);
}

// y[r, c] = x[r, c] + bias[c]
RF_KERNEL(RF_ROW_BLOCK) add_row_bias(const float *x, const float *bias, float *y, u32 rows, u32 cols) {
    RowTile t = RowTile::of(cols);
    if (t.row >= rows) return;
    u64 base = (u64)t.row * cols;
    for (u32 c = t.begin; c < t.end; c += 128) {
        u32 count = rf_left4(c, t.end);
        rf_store4(y + base + c, rf_load4(x + base + c, count) + rf_load4(bias + c, count), count);
    }
}
