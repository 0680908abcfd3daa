// Products of packed Q6_K weights with many rows of 8-bit activations, on the matrix unit.
#include "include/matmul_q8.h"

RF_MATMUL_Q8(q6_k, TileQ6K)
