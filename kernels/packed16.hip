// Products of packed weights with many rows of activations in f16, on the matrix unit, of each type.
#include "include/packed16.h"
#include "include/variant.h"

RF_CALL(RF_PACKED16, RF_NAME, RF_JOIN(Tile, RF_TYPE))
