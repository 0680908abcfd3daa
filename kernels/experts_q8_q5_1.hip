// Products of the chosen experts' packed Q5_1 weights with 8-bit activations.
#include "include/experts_q8.h"

RF_EXPERTS_Q8(q5_1, PackedQ5_1, 4)
