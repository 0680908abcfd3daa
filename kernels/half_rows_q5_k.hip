// Rows of f16 with a power of two each, of Q5_K weights, packed or in ggml's order.
#include "include/half_rows.h"

RF_HALF_ROWS(q5_k, Q5K)
RF_HALF_ROWS_PACKED(q5_k, FoursQ5K)
