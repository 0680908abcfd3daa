// Products of packed Q4_0 weights with 8-bit activations.
#include "include/matvec_q8_joint.h"

RF_MATVEC_Q8(q4_0, PackedQ4_0, 4, 4)
RF_MATVEC_Q8_JOINT(q4_0, PackedQ4_0, 4)
