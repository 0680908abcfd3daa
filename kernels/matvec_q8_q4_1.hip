// Products of packed Q4_1 weights with 8-bit activations.
#include "include/matvec_q8_joint.h"

RF_MATVEC_Q8(q4_1, PackedQ4_1, 4, 4)
RF_MATVEC_Q8_JOINT(q4_1, PackedQ4_1, 4)
