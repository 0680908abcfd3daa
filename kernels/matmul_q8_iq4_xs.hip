// Products of packed IQ4_XS weights with many rows of 8-bit activations, on the matrix unit.
#include "include/matmul_q8.h"

RF_MATMUL_Q8(iq4_xs, TileIq4Xs)
