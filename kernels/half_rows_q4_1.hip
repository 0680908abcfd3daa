// Rows of f16 with a power of two each, of Q4_1 weights, packed or in ggml's order.
#include "include/half_rows.h"

RF_HALF_ROWS(q4_1, Q4_1)
RF_HALF_ROWS_PACKED(q4_1, FoursQ4_1)
