// Products of packed Q8_0 weights with 8-bit activations.
#include "include/matvec_q8_joint.h"

RF_MATVEC_Q8(q8_0, PackedQ8_0, 2, 2)
RF_MATVEC_Q8_JOINT(q8_0, PackedQ8_0, 2)
