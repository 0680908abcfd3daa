// Products of the chosen experts' packed weights with 8-bit activations, of each type.
#include "include/experts_q8.h"
#include "include/planes_bits.h"
#include "include/planes_table.h"
#include "include/variant.h"

RF_CALL(RF_EXPERTS_Q8, RF_NAME, RF_JOIN(Packed, RF_TYPE))
