// Rows of f16 with a power of two each, of Q5_1 weights, packed or in ggml's order.
#include "include/half_rows.h"

RF_HALF_ROWS(q5_1, Q5_1)
RF_HALF_ROWS_PACKED(q5_1, FoursQ5_1)
