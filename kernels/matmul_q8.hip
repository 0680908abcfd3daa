// Products of packed weights with many rows of 8-bit activations, on the matrix unit, of each type.
#include "include/matmul_q8.h"
#include "include/variant.h"

RF_CALL(RF_MATMUL_Q8, RF_NAME, RF_JOIN(Tile, RF_TYPE))
