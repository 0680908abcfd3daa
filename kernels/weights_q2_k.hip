// Products with weights in ggml's Q2_K blocks, and rows of them.
#include "include/weights.h"

RF_WEIGHTS(q2_k, Q2K)
