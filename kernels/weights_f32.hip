// Products with weights in f32, and rows of them.
#include "include/weights.h"

RF_WEIGHTS(f32, F32)
