// Parts of an attention of a few tokens over a paged cache in bf16, heads of 128 elements: include/paged_split.h.
#include "include/paged_split.h"

RF_PAGED_SPLITS(bf16, Bf16Eights, 128)
