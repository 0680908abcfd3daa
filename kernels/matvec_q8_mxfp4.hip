// Products of packed MXFP4 weights with 8-bit activations.
#include "include/matvec_q8_joint.h"
#include "include/planes_table.h"

RF_MATVEC_Q8(mxfp4, PackedMxfp4, 4, 2)
RF_MATVEC_Q8_JOINT(mxfp4, PackedMxfp4, 4)
