// Products with weights in ggml's Q5_1 blocks, and rows of them.
#include "include/weights.h"

RF_WEIGHTS(q5_1, Q5_1)
