// Attention over f16 on the matrix unit, with masks, caps, slopes and sinks: include/attention16_strided.h.
#include "include/attention16_strided.h"

RF_ATTENTION16_EXTRA(f16, RfHalf, ToF16, 64, 4, 32)
RF_ATTENTION16_EXTRA(f16, RfHalf, ToF16, 128, 4, 32)
RF_ATTENTION16_EXTRA(f16, RfHalf, ToF16, 256, 2, 16)
