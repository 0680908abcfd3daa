// Products of packed Q5_1 weights with many rows of 8-bit activations, on the matrix unit.
#include "include/matmul_q8.h"

RF_MATMUL_Q8(q5_1, TileQ5_1)
