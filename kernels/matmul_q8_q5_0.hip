// Products of packed Q5_0 weights with many rows of 8-bit activations, on the matrix unit.
#include "include/matmul_q8.h"

RF_MATMUL_Q8(q5_0, TileQ5_0)
