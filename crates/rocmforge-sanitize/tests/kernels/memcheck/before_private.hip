// An index below a private array, farther than all that the lane has in private memory.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 32
//# args = ["f32[32]", 10000]
#include "faulty.h"

KERNEL faulty(float *y, int distance) {
    volatile float own[16];
    int t = rf_thread();
    for (int k = 0; k < 16; ++k) own[k] = (float)(t + k);
    y[t] = own[(t & 15) - distance]; // FAULT: ScratchOutOfBounds
}

KERNEL correct(float *y, int distance) {
    volatile float own[16];
    int t = rf_thread();
    for (int k = 0; k < 16; ++k) own[k] = (float)(t + k);
    y[t] = own[(t + distance) & 15];
}
