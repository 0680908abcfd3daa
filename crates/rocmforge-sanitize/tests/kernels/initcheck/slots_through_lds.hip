// Three floats in a slot of four, which go through LDS: moving a whole slot is no use of the fourth, adding it is.
//
//# [buffers]
//# slots = "f32[256]"
//# moved = "f32[256]"
//#
//# [[launch]]
//# kernel = "fill"
//# block = 64
//# args = ["slots"]
//#
//# [[launch]]
//# kernel = "faulty"
//# block = 64
//# args = ["slots", "moved", "f32[64]"]
#include "faulty.h"

typedef float Slot __attribute__((ext_vector_type(4)));

SHARED Slot tile[64];

KERNEL fill(float *slots) {
    u32 t = rf_thread();
    slots[4 * t] = 1.0f;
    slots[4 * t + 1] = 2.0f;
    slots[4 * t + 2] = 3.0f;
}

KERNEL faulty(const Slot *slots, Slot *moved, float *y) {
    u32 t = rf_thread();
    tile[t] = slots[t]; // FAULT: Uninitialised
    rf_barrier();
    Slot v = tile[63 - t];
    moved[t] = v;
    y[t] = v.x + v.y + v.z + v.w;
}

KERNEL correct(const Slot *slots, Slot *moved, float *y) {
    u32 t = rf_thread();
    tile[t] = slots[t];
    rf_barrier();
    Slot v = tile[63 - t];
    moved[t] = v;
    y[t] = v.x + v.y + v.z;
}
