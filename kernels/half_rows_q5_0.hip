// Rows of f16 with a power of two each, of Q5_0 weights, packed or in ggml's order.
#include "include/half_rows.h"

RF_HALF_ROWS(q5_0, Q5_0)
RF_HALF_ROWS_PACKED(q5_0, FoursQ5_0)
