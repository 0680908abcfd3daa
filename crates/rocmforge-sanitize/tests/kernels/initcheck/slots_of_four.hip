// Three floats in a slot of four: moving a whole slot is no use of the fourth, adding it is.
//
//# [buffers]
//# slots = "f32[128]"
//# moved = "f32[128]"
//#
//# [[launch]]
//# kernel = "fill"
//# block = 32
//# args = ["slots"]
//#
//# [[launch]]
//# kernel = "faulty"
//# block = 32
//# args = ["slots", "moved", "f32[32]"]
#include "faulty.h"

typedef float Slot __attribute__((ext_vector_type(4)));

KERNEL fill(float *slots) {
    u32 t = rf_thread();
    slots[4 * t] = 1.0f;
    slots[4 * t + 1] = 2.0f;
    slots[4 * t + 2] = 3.0f;
}

KERNEL faulty(const Slot *slots, Slot *moved, float *y) {
    u32 t = rf_thread();
    Slot v = slots[t]; // FAULT: Uninitialised
    moved[t] = v;
    y[t] = v.x + v.y + v.z + v.w;
}

KERNEL correct(const Slot *slots, Slot *moved, float *y) {
    u32 t = rf_thread();
    Slot v = slots[t];
    moved[t] = v;
    y[t] = v.x + v.y + v.z;
}
