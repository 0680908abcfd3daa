// Products with weights in ggml's Q5_0 blocks, and rows of them.
#include "include/weights.h"

RF_WEIGHTS(q5_0, Q5_0)
