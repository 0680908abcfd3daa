// Products of packed Q4_K weights with 8-bit activations.
#include "include/matvec_q8_joint.h"

RF_MATVEC_Q8(q4_k, PackedQ4K, 4, 2)
RF_MATVEC_Q8_JOINT(q4_k, PackedQ4K, 4)
