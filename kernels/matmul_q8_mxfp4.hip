// Products of packed MXFP4 weights with many rows of 8-bit activations, on the matrix unit.
#include "include/matmul_q8.h"

RF_MATMUL_Q8(mxfp4, TileMxfp4)
