// Products with weights in ggml's IQ4_XS blocks, and rows of them.
#include "include/weights.h"

RF_WEIGHTS(iq4_xs, Iq4Xs)
