// Products of packed Q3_K weights with many rows of 8-bit activations, on the matrix unit.
#include "include/matmul_q8.h"

RF_MATMUL_Q8(q3_k, TileQ3K)
