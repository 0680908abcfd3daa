// Fours of a row that becomes f16 with a power of two (half_rows.h).
#pragma once
#include "half_rows.h"

// The largest magnitude.
RF_DEVICE float largest_of(f4 v) { return rf_max4(f4{rf_abs(v.x), rf_abs(v.y), rf_abs(v.z), rf_abs(v.w)}); }

// Four neighbours of a row times the factor, in f16.
RF_DEVICE void put_halves(_Float16 *to, f4 v, float factor) {
    typedef _Float16 h4 __attribute__((ext_vector_type(4)));
    v *= factor;
    *(h4 *)to = h4{(_Float16)v.x, (_Float16)v.y, (_Float16)v.z, (_Float16)v.w};
}
