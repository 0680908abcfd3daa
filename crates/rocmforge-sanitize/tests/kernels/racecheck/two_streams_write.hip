// Two launches in two streams write halves of one buffer, which overlap by one element.
//
//# [buffers]
//# data = "f32[64]"
//#
//# [[launch]]
//# kernel = "faulty"
//# stream = "a"
//# block = 32
//# args = ["data", 0, 32]
//#
//# [[launch]]
//# kernel = "faulty"
//# stream = "b"
//# block = 32
//#- args = ["data", 31, 32]
//#+ args = ["data", 32, 32]
#include "faulty.h"

KERNEL faulty(float *data, u32 begin, u32 n) {
    if (rf_thread() < n) data[begin + rf_thread()] = 1.0f; // FAULT: Race
}

KERNEL correct(float *data, u32 begin, u32 n) {
    if (rf_thread() < n) data[begin + rf_thread()] = 1.0f;
}
