// Rows of f16 with a power of two each, of Q4_0 weights, packed or in ggml's order.
#include "include/half_rows.h"

RF_HALF_ROWS(q4_0, Q4_0)
RF_HALF_ROWS_PACKED(q4_0, FoursQ4_0)
