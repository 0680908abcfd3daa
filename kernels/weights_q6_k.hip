// Products with weights in ggml's Q6_K blocks, and rows of them.
#include "include/weights.h"

RF_WEIGHTS(q6_k, Q6K)
