// Rows of 12 in a buffer with rows of 16: the maximum of a row is taken over all 16.
//
//# [buffers]
//# matrix = "f32[64]"
//#
//# [[launch]]
//# kernel = "faulty"
//# grid = 4
//# block = 12
//# args = ["matrix"]
//#
//# [[launch]]
//# kernel = "faulty_maximum"
//# block = 4
//# args = ["matrix", "f32[4]", 12]
#include "faulty.h"

KERNEL faulty(float *matrix) {
    matrix[rf_block_x() * 16 + rf_thread()] = (float)rf_thread();
}

KERNEL faulty_maximum(const float *matrix, float *y, u32 columns) {
    const float *row = matrix + rf_thread() * 16;
    float m = -RF_INF;
    for (u32 k = 0; k < columns + 4; ++k)
        m = rf_max(m, row[k]); // FAULT: Uninitialised
    y[rf_thread()] = m;
}

KERNEL correct(float *matrix) {
    matrix[rf_block_x() * 16 + rf_thread()] = (float)rf_thread();
}

KERNEL correct_maximum(const float *matrix, float *y, u32 columns) {
    const float *row = matrix + rf_thread() * 16;
    float m = -RF_INF;
    for (u32 k = 0; k < columns; ++k)
        m = rf_max(m, row[k]);
    y[rf_thread()] = m;
}
