// The second launch reads what the first writes. They are in two streams, and no event orders them.
//
//# [buffers]
//# data = "f32[32] zeros"
//#
//# [[launch]]
//# kernel = "faulty"
//# stream = "a"
//# block = 32
//# args = ["data"]
//#
//# [[launch]]
//# kernel = "faulty_read"
//# stream = "b"
//#+ after = ["correct"]
//# block = 32
//# args = ["data", "f32[32]"]
#include "faulty.h"

KERNEL faulty(float *data) {
    data[rf_thread()] = 1.0f; // FAULT: Race
}

KERNEL faulty_read(const float *data, float *y) {
    y[rf_thread()] = data[rf_thread()]; // FAULT: Race
}

KERNEL correct(float *data) {
    data[rf_thread()] = 1.0f;
}

KERNEL correct_read(const float *data, float *y) {
    y[rf_thread()] = data[rf_thread()];
}
