// One byte past the end of a buffer of 63 bytes: allocations are larger, but not yours.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 64
//# args = ["u8[63]", 63]
#include "faulty.h"

KERNEL faulty(u8 *y, u32 n) {
    u32 i = rf_thread();
    y[i] = (u8)(i ^ n); // FAULT: OutOfBounds
}

KERNEL correct(u8 *y, u32 n) {
    u32 i = rf_thread();
    if (i < n) y[i] = (u8)(i ^ n);
}
