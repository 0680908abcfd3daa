// A generic pointer to LDS outlives the group: the next kernel, which has no LDS, follows it.
//
//# [buffers]
//# kept = "u64[1]"
//#
//# [[launch]]
//# kernel = "faulty"
//# block = 32
//# args = ["kept"]
//#
//# [[launch]]
//# kernel = "faulty_reader"
//# block = 32
//# args = ["kept", "f32[32]"]
#include "faulty.h"

KERNEL faulty(const float **kept) {
    SHARED float tile[32];
    tile[rf_thread()] = 1.0f;
    rf_barrier();
    if (rf_thread() == 0) *kept = tile;
}

KERNEL faulty_reader(const float *volatile *kept, float *y) {
    const float *tile = *kept;
    y[rf_thread()] = tile[rf_thread()]; // FAULT: LdsOutOfBounds
}

KERNEL correct(float *kept) {
    SHARED float tile[32];
    tile[rf_thread()] = 1.0f;
    rf_barrier();
    if (rf_thread() == 0) *kept = tile[0];
}

KERNEL correct_reader(const float *kept, float *y) {
    y[rf_thread()] = *kept;
}
