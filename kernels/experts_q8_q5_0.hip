// Products of the chosen experts' packed Q5_0 weights with 8-bit activations.
#include "include/experts_q8.h"

RF_EXPERTS_Q8(q5_0, PackedQ5_0, 4)
