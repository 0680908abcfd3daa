// Products with weights in ggml's blocks and in floats, and rows of them, of each type.
#include "include/variant.h"
#include "include/weights.h"

RF_CALL(RF_WEIGHTS, RF_NAME, RF_TYPE)
