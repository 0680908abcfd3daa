// Products of the chosen experts' packed Q4_1 weights with 8-bit activations.
#include "include/experts_q8.h"

RF_EXPERTS_Q8(q4_1, PackedQ4_1, 4)
