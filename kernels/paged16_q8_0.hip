// Attention of many tokens over a paged cache in q8_0 on the matrix unit, with and without a cap and sinks: include/paged16.h.
#include "include/paged16.h"

RF_PAGED16_CAPPED(q8_0, Q8_0Eights, 64, 4, 32)
RF_PAGED16_CAPPED(q8_0, Q8_0Eights, 128, 4, 32)
// There are too few registers on gfx1030, whose products are loops.
#if !defined(__gfx1030__)
RF_PAGED16_CAPPED(q8_0, Q8_0Eights, 256, 2, 16)
#endif
