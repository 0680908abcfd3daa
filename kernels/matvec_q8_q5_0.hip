// Products of packed Q5_0 weights with 8-bit activations.
#include "include/matvec_q8_joint.h"

RF_MATVEC_Q8(q5_0, PackedQ5_0, 4, 4)
RF_MATVEC_Q8_JOINT(q5_0, PackedQ5_0, 4)
