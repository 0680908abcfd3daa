// Products of the chosen experts' packed Q2_K weights with 8-bit activations.
#include "include/experts_q8.h"
#include "include/planes_bits.h"

RF_EXPERTS_Q8(q2_k, PackedQ2K, 4)
