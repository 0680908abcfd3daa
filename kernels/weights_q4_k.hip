// Products with weights in ggml's Q4_K blocks, and rows of them.
#include "include/weights.h"

RF_WEIGHTS(q4_k, Q4K)
