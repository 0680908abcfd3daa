// The transpose of a 4 x 16 matrix has rows of 4, not of 16.
//
//# [[launch]]
//# kernel = "faulty"
//# block = [16, 4]
//# args = ["f32[64] iota", "f32[64]", 4, 16]
#include "faulty.h"

RF_DEVICE u32 row_of_thread() { return __builtin_amdgcn_workitem_id_y(); }

KERNEL faulty(const float *x, float *y, u32 rows, u32 columns) {
    u32 r = row_of_thread(), c = rf_thread();
    if (r < rows) y[c * columns + r] = x[r * columns + c]; // FAULT: OutOfBounds
}

KERNEL correct(const float *x, float *y, u32 rows, u32 columns) {
    u32 r = row_of_thread(), c = rf_thread();
    if (r < rows) y[c * rows + r] = x[r * columns + c];
}
