// Products of packed IQ4_XS weights with 8-bit activations.
#include "include/matvec_q8_joint.h"
#include "include/planes_table.h"

RF_MATVEC_Q8(iq4_xs, PackedIq4Xs, 4, 2)
RF_MATVEC_Q8_JOINT(iq4_xs, PackedIq4Xs, 4)
