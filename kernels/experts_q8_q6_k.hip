// Products of the chosen experts' packed Q6_K weights with 8-bit activations.
#include "include/experts_q8.h"

RF_EXPERTS_Q8(q6_k, PackedQ6K, 4)
