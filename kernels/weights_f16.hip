// Products with weights in f16, and rows of them.
#include "include/weights.h"

RF_WEIGHTS(f16, F16)
