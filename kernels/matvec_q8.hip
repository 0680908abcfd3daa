// Products of packed weights with 8-bit activations, of each type.
#include "include/matvec_q8_joint.h"
#include "include/planes_bits.h"
#include "include/planes_table.h"
#include "include/variant.h"

RF_CALL(RF_MATVEC_Q8, RF_NAME, RF_JOIN(Packed, RF_TYPE))
RF_CALL(RF_MATVEC_Q8_JOINT, RF_NAME, RF_JOIN(Packed, RF_TYPE))
