// Products with weights in ggml's Q5_K blocks, and rows of them.
#include "include/weights.h"

RF_WEIGHTS(q5_k, Q5K)
