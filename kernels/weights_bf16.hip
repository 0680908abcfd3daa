// Products with weights in bf16, and rows of them.
#include "include/weights.h"

RF_WEIGHTS(bf16, Bf16)
