// The running state of a softmax has three fields; two are set.
//
//# [buffers]
//# states = "f32[96]"
//#
//# [[launch]]
//# kernel = "faulty"
//# block = 32
//# args = ["states"]
//#
//# [[launch]]
//# kernel = "faulty_finish"
//# block = 32
//# args = ["states", "f32[32]"]
#include "faulty.h"

struct State {
    float maximum, sum, output;
};

KERNEL faulty(State *states) {
    State *s = states + rf_thread();
    s->maximum = 0.0f;
    s->output = 1.0f;
}

KERNEL faulty_finish(const State *states, float *y) {
    const State *s = states + rf_thread();
    y[rf_thread()] = s->output / s->sum; // FAULT: Uninitialised
}

KERNEL correct(State *states) {
    State *s = states + rf_thread();
    s->maximum = 0.0f;
    s->sum = 1.0f;
    s->output = 1.0f;
}

KERNEL correct_finish(const State *states, float *y) {
    const State *s = states + rf_thread();
    y[rf_thread()] = s->output / s->sum;
}
