// Products of the chosen experts' packed Q4_K weights with 8-bit activations.
#include "include/experts_q8.h"

RF_EXPERTS_Q8(q4_k, PackedQ4K, 4)
