// Products with weights in ggml's Q4_1 blocks, and rows of them.
#include "include/weights.h"

RF_WEIGHTS(q4_1, Q4_1)
