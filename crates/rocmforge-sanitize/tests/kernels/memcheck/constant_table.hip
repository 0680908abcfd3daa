// A table in constant memory, and a code that is no entry of it.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 32
//# args = ["u32[32] 0x20000", "f32[32]"]
#include "faulty.h"

static __attribute__((constant)) const float levels[8] = {-1.0f, -0.7f, -0.4f, -0.1f, 0.1f, 0.4f, 0.7f, 1.0f};

KERNEL faulty(const u32 *codes, float *y) {
    u32 i = rf_thread();
    y[i] = levels[codes[i]]; // FAULT: OutOfBounds
}

KERNEL correct(const u32 *codes, float *y) {
    u32 i = rf_thread();
    y[i] = levels[codes[i] & 7];
}
