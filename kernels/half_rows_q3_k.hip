// Rows of f16 with a power of two each, of Q3_K weights, packed or in ggml's order.
#include "include/half_rows.h"

RF_HALF_ROWS(q3_k, Q3K)
RF_HALF_ROWS_PACKED(q3_k, FoursQ3K)
