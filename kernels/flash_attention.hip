// Attention in f32 without the scores in memory, all keys, or causal: include/flash_attention.h.
#include "include/flash_attention.h"

RF_FLASH(32, 32, 32)
RF_FLASH(64, 32, 32)
RF_FLASH(128, 32, 32)
RF_FLASH(256, 16, 16)
