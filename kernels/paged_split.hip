// Parts of an attention of a few tokens over a paged cache, for each type of cache and length of heads: include/paged_split.h.
#include "include/paged_split.h"
#include "include/variant.h"

RF_CALL(RF_PAGED_SPLITS, RF_NAME, RF_JOIN(RF_TYPE, Eights), RF_HEAD)
