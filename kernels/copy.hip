// y = x.
#include "include/team.h"

RF_KERNEL(RF_FLAT_BLOCK) copy(const float *x, float *y, u64 n) {
    u64 i = rf_flat4();
    u32 count = rf_left4(i, n);
    rf_store4(y + i, rf_load4(x + i, count), count);
}
