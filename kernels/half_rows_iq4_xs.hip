// Rows of f16 with a power of two each, of IQ4_XS weights, packed or in ggml's order.
#include "include/half_rows.h"

RF_HALF_ROWS(iq4_xs, Iq4Xs)
RF_HALF_ROWS_PACKED(iq4_xs, FoursIq4Xs)
