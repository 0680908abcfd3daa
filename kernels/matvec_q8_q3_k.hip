// Products of packed Q3_K weights with 8-bit activations.
#include "include/matvec_q8_joint.h"
#include "include/planes_bits.h"

RF_MATVEC_Q8(q3_k, PackedQ3K, 4, 2)
RF_MATVEC_Q8_JOINT(q3_k, PackedQ3K, 4)
