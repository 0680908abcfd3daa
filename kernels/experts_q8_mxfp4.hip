// Products of the chosen experts' packed MXFP4 weights with 8-bit activations.
#include "include/experts_q8.h"
#include "include/planes_table.h"

RF_EXPERTS_Q8(mxfp4, PackedMxfp4, 4)
