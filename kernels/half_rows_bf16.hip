// Rows of f16 with a power of two each, of weights in bf16.
#include "include/half_rows.h"

RF_HALF_ROWS(bf16, Bf16)
