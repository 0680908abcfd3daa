// Parts of an attention of a few tokens over a paged cache in f16, heads of 256 elements: include/paged_split.h.
#include "include/paged_split.h"

RF_PAGED_SPLITS(f16, HalfEights, 256)
