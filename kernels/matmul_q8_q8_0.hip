// Products of packed Q8_0 weights with many rows of 8-bit activations, on the matrix unit.
#include "include/matmul_q8.h"

RF_MATMUL_Q8(q8_0, TileQ8_0)
