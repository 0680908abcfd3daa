// Rows of f16 with a power of two each, of MXFP4 weights, packed or in ggml's order.
#include "include/half_rows.h"

RF_HALF_ROWS(mxfp4, Mxfp4)
RF_HALF_ROWS_PACKED(mxfp4, FoursMxfp4)
