// A transpose through LDS without the barrier between writing rows and reading columns.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 64
//# args = ["f32[64] iota", "f32[64]"]
#include "faulty.h"

KERNEL faulty(const float *x, float *y) {
    SHARED float tile[8][9];
    u32 row = rf_thread() / 8, column = rf_thread() % 8;
    tile[row][column] = x[row * 8 + column]; // FAULT: LdsRace
    float v = tile[column][row]; // FAULT: LdsRace ALSO: UninitialisedLds
    y[row * 8 + column] = v;
}

KERNEL correct(const float *x, float *y) {
    SHARED float tile[8][9];
    u32 row = rf_thread() / 8, column = rf_thread() % 8;
    tile[row][column] = x[row * 8 + column];
    rf_barrier();
    float v = tile[column][row];
    y[row * 8 + column] = v;
}
