// Rows of f16 with a power of two each, of Q8_0 weights, packed or in ggml's order.
#include "include/half_rows.h"

RF_HALF_ROWS(q8_0, Q8_0)
RF_HALF_ROWS_PACKED(q8_0, FoursQ8_0)
