// Products of the chosen experts' packed Q8_0 weights with 8-bit activations.
#include "include/experts_q8.h"

RF_EXPERTS_Q8(q8_0, PackedQ8_0, 2)
