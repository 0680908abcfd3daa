// Products of packed IQ4_NL weights with 8-bit activations.
#include "include/matvec_q8_joint.h"
#include "include/planes_table.h"

RF_MATVEC_Q8(iq4_nl, PackedIq4Nl, 4, 2)
RF_MATVEC_Q8_JOINT(iq4_nl, PackedIq4Nl, 4)
