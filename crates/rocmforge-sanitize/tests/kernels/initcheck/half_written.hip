// The first kernel writes every other element, the second reads them all.
//
//# [buffers]
//# data = "f32[64]"
//#
//# [[launch]]
//# kernel = "faulty"
//# block = 32
//# args = ["data"]
//#
//# [[launch]]
//# kernel = "faulty_sum"
//# block = 32
//# args = ["data", "f32[32]"]
#include "faulty.h"

KERNEL faulty(float *data) {
    data[2 * rf_thread()] = 1.0f;
}

KERNEL faulty_sum(const float *data, float *y) {
    u32 t = rf_thread();
    y[t] = data[t] + data[t + 32]; // FAULT: Uninitialised
}

KERNEL correct(float *data) {
    data[rf_thread()] = 1.0f;
    data[rf_thread() + 32] = 1.0f;
}

KERNEL correct_sum(const float *data, float *y) {
    u32 t = rf_thread();
    y[t] = data[t] + data[t + 32];
}
