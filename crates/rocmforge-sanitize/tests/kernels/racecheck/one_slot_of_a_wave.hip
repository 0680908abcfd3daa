// Every thread of a wave says that it is the winner.
//
//# [buffers]
//# winner = "u32[1] zeros"
//#
//# [[launch]]
//# kernel = "faulty"
//# block = 32
//# args = ["f32[32] iota", "winner"]
#include "faulty.h"

KERNEL faulty(const float *x, u32 *winner) {
    u32 t = rf_thread();
    if (x[t] > 20.0f) *winner = t; // FAULT: GlobalRace
}

KERNEL correct(const float *x, u32 *winner) {
    u32 t = rf_thread();
    if (x[t] > 30.0f) *winner = t;
}
