// An array in private memory of which only some elements are written.
//
//# [buffers]
//# index = "u32[64] 300"
//#
//# [[launch]]
//# kernel = "faulty"
//# block = 32
//# args = ["index", "f32[32]"]
#include "faulty.h"

KERNEL faulty(const u32 *index, float *y) {
    u32 t = rf_thread();
    float values[400];
    for (u32 k = 0; k < 3; k++) values[index[k] + k] = 1.0f;
    y[t] = values[index[t] + 3] + 1.0f; // FAULT: UninitialisedPrivate
}

KERNEL correct(const u32 *index, float *y) {
    u32 t = rf_thread();
    float values[400];
    for (u32 k = 0; k < 3; k++) values[index[k] + k] = 1.0f;
    y[t] = values[index[t] + 2] + 1.0f;
}
