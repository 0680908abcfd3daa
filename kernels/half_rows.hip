// Rows of f16 with a power of two each, of floats and of weights of each type, packed or in ggml's order.
#include "include/half_rows.h"
#include "include/variant.h"

RF_CALL(RF_HALF_ROWS, RF_NAME, RF_TYPE)
#if RF_PACKABLE
RF_CALL(RF_HALF_ROWS_PACKED, RF_NAME, RF_JOIN(Fours, RF_TYPE))
#endif
