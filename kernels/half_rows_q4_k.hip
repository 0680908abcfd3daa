// Rows of f16 with a power of two each, of Q4_K weights, packed or in ggml's order.
#include "include/half_rows.h"

RF_HALF_ROWS(q4_k, Q4K)
RF_HALF_ROWS_PACKED(q4_k, FoursQ4K)
