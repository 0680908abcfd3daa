// y = a * b, element by element. y may be one of the operands.
#include "include/team.h"

RF_KERNEL(RF_FLAT_BLOCK) mul(const float *a, const float *b, float *y, u64 n) {
    u64 i = rf_flat4();
    u32 count = rf_left4(i, n);
    rf_store4(y + i, rf_load4(a + i, count) * rf_load4(b + i, count), count);
}
