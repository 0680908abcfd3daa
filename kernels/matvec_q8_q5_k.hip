// Products of packed Q5_K weights with 8-bit activations.
#include "include/matvec_q8_joint.h"

RF_MATVEC_Q8(q5_k, PackedQ5K, 4, 2)
RF_MATVEC_Q8_JOINT(q5_k, PackedQ5K, 4)
