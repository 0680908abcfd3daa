// Products with weights in ggml's Q8_0 blocks, and rows of them.
#include "include/weights.h"

RF_WEIGHTS(q8_0, Q8_0)
