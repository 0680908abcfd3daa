// Products of packed Q6_K weights with 8-bit activations.
#include "include/matvec_q8_joint.h"

RF_MATVEC_Q8(q6_k, PackedQ6K, 4, 2)
RF_MATVEC_Q8_JOINT(q6_k, PackedQ6K, 4)
