// Attention over f16 on the matrix unit: include/attention16_strided.h.
#include "include/attention16_strided.h"

RF_ATTENTION16(f16, RfHalf, ToF16, 64, 4, 32)
RF_ATTENTION16(f16, RfHalf, ToF16, 128, 4, 32)
RF_ATTENTION16(f16, RfHalf, ToF16, 256, 2, 16)
