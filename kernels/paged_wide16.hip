// Attention over a paged cache of long heads on the matrix unit: include/paged_wide16.h.
#include "include/paged_wide16.h"

RF_PAGED_WIDE16(f16, HalfEights)
RF_PAGED_WIDE16(bf16, Bf16Eights)
RF_PAGED_WIDE16(q8_0, Q8_0Eights)
