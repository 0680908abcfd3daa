// A table whose codes begin with 8, and codes below: the compiler adds a code to an address before the table, which is in another one.
//
//# [buffers]
//# codes = { dtype = "u32", range = "4..36" }
//#
//# [[launch]]
//# kernel = "faulty"
//# block = 32
//# args = ["codes", "f32[32]"]
#include "faulty.h"

static __attribute__((constant)) const float levels[8] = {-1.0f, -0.7f, -0.4f, -0.1f, 0.1f, 0.4f, 0.7f, 1.0f};
static __attribute__((constant)) const float scales[32] = {0.5f, 0.25f, 1.5f, 2.0f};

KERNEL faulty(const u32 *codes, float *y) {
    u32 i = rf_thread(), code = codes[i];
    float level = levels[code & 7];
    y[i] = level * scales[code - 8]; // FAULT: OutOfBounds
}

KERNEL correct(const u32 *codes, float *y) {
    u32 i = rf_thread(), code = codes[i];
    float level = levels[code & 7];
    y[i] = level * scales[code < 8 ? 0 : code - 8];
}
