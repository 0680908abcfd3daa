// Products with weights in ggml's Q3_K blocks, and rows of them.
#include "include/weights.h"

RF_WEIGHTS(q3_k, Q3K)
