// Products of the chosen experts' packed Q4_0 weights with 8-bit activations.
#include "include/experts_q8.h"

RF_EXPERTS_Q8(q4_0, PackedQ4_0, 4)
