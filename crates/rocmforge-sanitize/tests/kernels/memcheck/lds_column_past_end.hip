// Right neighbours in a tile of 8 x 8: in the last row, the last column has none. (In the other rows it silently reads the
// next row: one array, no fault to see.)
//
//# [[launch]]
//# kernel = "faulty"
//# block = 64
//# args = ["f32[64] iota", "f32[64]"]
#include "faulty.h"

KERNEL faulty(const float *x, float *y) {
    SHARED float tile[8][8];
    u32 t = rf_thread(), row = t / 8, column = t % 8;
    tile[row][column] = x[t];
    rf_barrier();
    y[t] = tile[row][column] - (&tile[0][0])[row * 8 + column + 1]; // FAULT: LdsOutOfBounds
}

KERNEL correct(const float *x, float *y) {
    SHARED float tile[8][8];
    u32 t = rf_thread(), row = t / 8, column = t % 8;
    tile[row][column] = x[t];
    rf_barrier();
    y[t] = tile[row][column] - (column < 7 ? tile[row][column + 1] : 0.0f);
}
