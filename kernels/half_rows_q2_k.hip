// Rows of f16 with a power of two each, of Q2_K weights, packed or in ggml's order.
#include "include/half_rows.h"

RF_HALF_ROWS(q2_k, Q2K)
RF_HALF_ROWS_PACKED(q2_k, FoursQ2K)
