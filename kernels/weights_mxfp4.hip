// Products with weights in ggml's MXFP4 blocks, and rows of them.
#include "include/weights.h"

RF_WEIGHTS(mxfp4, Mxfp4)
