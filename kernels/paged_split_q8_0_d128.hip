// Parts of an attention of a few tokens over a paged cache in Q8_0, heads of 128 elements: include/paged_split.h.
#include "include/paged_split.h"

RF_PAGED_SPLITS(q8_0, Q8_0Eights, 128)
