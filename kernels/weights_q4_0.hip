// Products with weights in ggml's Q4_0 blocks, and rows of them.
#include "include/weights.h"

RF_WEIGHTS(q4_0, Q4_0)
