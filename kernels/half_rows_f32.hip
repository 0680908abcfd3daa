// Rows of f16 with a power of two each, of values in f32.
#include "include/half_rows.h"

RF_HALF_ROWS(f32, F32)
