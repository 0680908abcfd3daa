// A resource descriptor that is longer than its buffer: what lies behind the buffer is in range, and no zero.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 64
//# args = ["u32[60] iota", "u32[64]"]
#include "faulty.h"

KERNEL faulty(const u32 *x, u32 *y) {
    Buffer b = buffer_of(x, 64 * 4);
    u32 t = rf_thread();
    y[t] = buffer_load(b, 4 * t); // FAULT: OutOfBounds
}

KERNEL correct(const u32 *x, u32 *y) {
    Buffer b = buffer_of(x, 60 * 4);
    u32 t = rf_thread();
    y[t] = buffer_load(b, 4 * t);
}
