// Products of the chosen experts' packed IQ4_NL weights with 8-bit activations.
#include "include/experts_q8.h"
#include "include/planes_table.h"

RF_EXPERTS_Q8(iq4_nl, PackedIq4Nl, 4)
