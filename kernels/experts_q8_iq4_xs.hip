// Products of the chosen experts' packed IQ4_XS weights with 8-bit activations.
#include "include/experts_q8.h"
#include "include/planes_table.h"

RF_EXPERTS_Q8(iq4_xs, PackedIq4Xs, 4)
