// Rows of f16 with a power of two each, of IQ4_NL weights, packed or in ggml's order.
#include "include/half_rows.h"

RF_HALF_ROWS(iq4_nl, Iq4Nl)
RF_HALF_ROWS_PACKED(iq4_nl, FoursIq4Nl)
