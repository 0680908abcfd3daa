// Products of packed Q4_K weights with 8-bit activations.
#include "include/matvec_q8.h"

RF_MATVEC_Q8(q4_k, PackedQ4K, 4, 2)
