// Products of packed Q5_1 weights with 8-bit activations.
#include "include/matvec_q8_joint.h"

RF_MATVEC_Q8(q5_1, PackedQ5_1, 4, 2)
RF_MATVEC_Q8_JOINT(q5_1, PackedQ5_1, 4)
