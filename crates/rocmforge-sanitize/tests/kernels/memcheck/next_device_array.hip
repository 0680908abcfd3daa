// Two arrays of the device, and one workgroup more than the first has elements.
//
//# [[launch]]
//# kernel = "faulty"
//# grid = 5
//# block = 32
//# args = ["u32[5] iota", "u32[5]"]
#include "faulty.h"

__attribute__((device)) u32 totals[4];
__attribute__((device)) u32 limits[4];

KERNEL faulty(const u32 *x, u32 *y) {
    u32 group = rf_block_x();
    if (rf_thread() == 0) {
        y[group] = limits[group & 3]; // ALSO: GlobalRace
        totals[group] = x[group]; // FAULT: OutOfBounds ALSO: GlobalRace
    }
}

KERNEL correct(const u32 *x, u32 *y) {
    u32 group = rf_block_x();
    if (rf_thread() == 0) {
        y[group] = limits[group & 3];
        if (group < 4) totals[group] = x[group];
    }
}
