// y = x * factor. y may be x.
#include "include/team.h"

RF_KERNEL(RF_FLAT_BLOCK) scale(const float *x, float *y, u64 n, float factor) {
    u64 i = rf_flat4();
    u32 count = rf_left4(i, n);
    rf_store4(y + i, rf_load4(x + i, count) * factor, count);
}
