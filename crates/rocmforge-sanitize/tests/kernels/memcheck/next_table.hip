// Three tables in constant memory, one behind the other, and codes beyond the end of the one in the middle.
//
//# [buffers]
//# codes = { dtype = "u32", range = "8..40" }
//#
//# [[launch]]
//# kernel = "faulty"
//# block = 32
//# args = ["codes", "f32[32]"]
#include "faulty.h"

static __attribute__((constant)) const float scales[32] = {0.5f, 0.25f, 1.5f, 2.0f};
static __attribute__((constant)) const float levels[32] = {-1.0f, -0.7f, -0.4f, -0.1f, 0.1f, 0.4f, 0.7f, 1.0f};
static __attribute__((constant)) const float shifts[32] = {0.125f, 0.5f, 0.75f, 1.25f};

KERNEL faulty(const u32 *codes, float *y) {
    u32 i = rf_thread(), code = codes[i], own = code & 31;
    float scale = scales[own];
    float level = levels[code]; // FAULT: OutOfBounds
    y[i] = scale * level + shifts[own];
}

KERNEL correct(const u32 *codes, float *y) {
    u32 i = rf_thread(), code = codes[i], own = code & 31;
    float scale = scales[own];
    float level = levels[own];
    y[i] = scale * level + shifts[own];
}
