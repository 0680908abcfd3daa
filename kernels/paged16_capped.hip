// Attention of many tokens over a paged cache in f16 on the matrix unit, with a cap: include/paged16.h.
#include "include/paged16.h"

RF_PAGED16(capped_d64, 64, 4, 32, true)
RF_PAGED16(capped_d128, 128, 4, 32, true)
// There are too few registers on gfx1030, whose products are loops.
#if !defined(__gfx1030__)
RF_PAGED16(capped_d256, 256, 2, 16, true)
#endif
