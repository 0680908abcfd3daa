// Products with weights in ggml's IQ4_NL blocks, and rows of them.
#include "include/weights.h"

RF_WEIGHTS(iq4_nl, Iq4Nl)
