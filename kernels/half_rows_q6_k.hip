// Rows of f16 with a power of two each, of Q6_K weights, packed or in ggml's order.
#include "include/half_rows.h"

RF_HALF_ROWS(q6_k, Q6K)
RF_HALF_ROWS_PACKED(q6_k, FoursQ6K)
