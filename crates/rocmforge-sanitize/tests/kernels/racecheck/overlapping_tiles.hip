// Each group writes its 32 elements and one of the next group.
//
//# [[launch]]
//# kernel = "faulty"
//# grid = 2
//# block = 33
//# args = ["f32[65]"]
#include "faulty.h"

KERNEL faulty(float *y) {
    y[rf_block_x() * 32 + rf_thread()] = (float)rf_thread(); // FAULT: GlobalRace
}

KERNEL correct(float *y) {
    if (rf_thread() < 32) y[rf_block_x() * 32 + rf_thread()] = (float)rf_thread();
}
