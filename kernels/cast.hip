// y = x in another float type.
#include "include/floats.h"
#include "include/quant.h"
#include "include/team.h"

template <class From, class To> RF_DEVICE void cast(const u8 *x, u8 *y, u64 n) {
    u64 i = rf_flat4();
    u32 count = rf_left4(i, n);
    typename To::Type *out = (typename To::Type *)y + i;
    const u8 *in = x + i * From::bytes;
    if (count == 4) {
        rf_store4_as<To>(out, From::four(in, 0), 4);
    } else {
        for (u32 e = 0; e < count; ++e) out[e] = To::of(From::one(in, e));
    }
}

RF_KERNEL(RF_FLAT_BLOCK) cast_f32_f16(const u8 *x, u8 *y, u64 n) { cast<F32, ToF16>(x, y, n); }
RF_KERNEL(RF_FLAT_BLOCK) cast_f32_bf16(const u8 *x, u8 *y, u64 n) { cast<F32, ToBf16>(x, y, n); }
RF_KERNEL(RF_FLAT_BLOCK) cast_f16_f32(const u8 *x, u8 *y, u64 n) { cast<F16, ToF32>(x, y, n); }
RF_KERNEL(RF_FLAT_BLOCK) cast_f16_bf16(const u8 *x, u8 *y, u64 n) { cast<F16, ToBf16>(x, y, n); }
RF_KERNEL(RF_FLAT_BLOCK) cast_bf16_f32(const u8 *x, u8 *y, u64 n) { cast<Bf16, ToF32>(x, y, n); }
RF_KERNEL(RF_FLAT_BLOCK) cast_bf16_f16(const u8 *x, u8 *y, u64 n) { cast<Bf16, ToF16>(x, y, n); }
