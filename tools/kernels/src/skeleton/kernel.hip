// y = factor * x. Say here what it computes, and where the formula comes from. y may be x.
#include "include/team.h"

RF_KERNEL(RF_FLAT_BLOCK) NAME(const float *x, float *y, u64 n, float factor) {
    u64 i = rf_flat4();
    u32 count = rf_left4(i, n);
    rf_store4(y + i, rf_load4(x + i, count) * factor, count);
}
