// Rows of f16 with a power of two each, of weights in f16.
#include "include/half_rows.h"

RF_HALF_ROWS(f16, F16)
