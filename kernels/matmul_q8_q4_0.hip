// Products of packed Q4_0 weights with many rows of 8-bit activations, on the matrix unit.
#include "include/matmul_q8.h"

RF_MATMUL_Q8(q4_0, TileQ4_0)
