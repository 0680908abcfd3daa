// Attention in f32 without the scores in memory, with a mask: include/flash_attention.h.
#include "include/flash_attention.h"

RF_FLASH_MASKED(32, 32, 32)
RF_FLASH_MASKED(64, 32, 32)
RF_FLASH_MASKED(128, 32, 32)
RF_FLASH_MASKED(256, 16, 16)
