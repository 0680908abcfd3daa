// A flag for the whole grid that nobody has written chooses between two constants, by a comparison of scalars.
//
//# [buffers]
//#- flag = "i32[1]"
//#+ flag = "i32[1] zeros"
//#
//# [[launch]]
//# kernel = "faulty"
//# block = 32
//# args = ["flag", "i32[32]"]
#include "faulty.h"

KERNEL faulty(const int *flag, int *y) {
    y[rf_thread()] = *flag > 5 ? 1 : 2; // FAULT: Uninitialised
}

KERNEL correct(const int *flag, int *y) {
    y[rf_thread()] = *flag > 5 ? 1 : 2;
}
