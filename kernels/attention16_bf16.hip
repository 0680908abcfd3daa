// Attention over bf16 on the matrix unit: include/attention16_strided.h.
#include "include/attention16_strided.h"

RF_ATTENTION16(bf16, RfBfloat, ToBf16, 64, 4, 32)
RF_ATTENTION16(bf16, RfBfloat, ToBf16, 128, 4, 32)
// There are too few registers on gfx1030, which converts bf16 to f32 first.
#if !defined(__gfx1030__)
RF_ATTENTION16(bf16, RfBfloat, ToBf16, 256, 2, 16)
#endif
