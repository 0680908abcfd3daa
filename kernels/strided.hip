// Copies between tensors of up to four dimensions with any strides, of one type or from one float type to another. The source repeats
// where its dimensions are smaller than the destination's.
//
// A thread has four elements, 256 apart in the row-major order of the destination's dimensions. grid = ceil(n / 1024).
#include "include/floats.h"
#include "include/quant.h"
#include "include/team.h"

// Dimensions, outermost first: elements of the destination, of the source (they divide those), and the distances of neighbours in
// each, in elements.
struct Strided {
    u32 n[4], wrap[4];
    u64 from[4], to[4];
};

template <class Move> RF_DEVICE void strided(u32 total, const Strided &s, Move move) {
#pragma unroll
    for (u32 i = 0; i < 4; ++i) {
        u64 at = (u64)rf_block_x() * RF_FLAT_TILE + i * RF_FLAT_BLOCK + rf_thread();
        if (at >= total) return;
        u32 rest = (u32)at;
        u64 from = 0, to = 0;
#pragma unroll
        for (u32 d = 3; d > 0; --d) {
            u32 index = rest % s.n[d];
            rest /= s.n[d];
            from += (index % s.wrap[d]) * s.from[d];
            to += index * s.to[d];
        }
        move(from + (rest % s.wrap[0]) * s.from[0], to + rest * s.to[0]);
    }
}

#define RF_STRIDED_MOVE(name, Type)                                                                                                \
    RF_KERNEL(RF_FLAT_BLOCK) strided_##name(const u8 *x, u8 *y, u32 total, Strided s) {                                            \
        strided(total, s, [=](u64 from, u64 to) { ((Type *)y)[to] = ((const Type *)x)[from]; });                                   \
    }
#define RF_STRIDED_CAST(name, From, To)                                                                                            \
    RF_KERNEL(RF_FLAT_BLOCK) strided_##name(const u8 *x, u8 *y, u32 total, Strided s) {                                            \
        strided(total, s, [=](u64 from, u64 to) { ((To::Type *)y)[to] = To::of(From::one(x + from * From::bytes, 0)); });          \
    }

RF_STRIDED_MOVE(b1, u8)
RF_STRIDED_MOVE(b2, u16)
RF_STRIDED_MOVE(b4, u32)
RF_STRIDED_MOVE(b8, u64)
RF_STRIDED_CAST(f32_f16, F32, ToF16)
RF_STRIDED_CAST(f32_bf16, F32, ToBf16)
RF_STRIDED_CAST(f16_f32, F16, ToF32)
RF_STRIDED_CAST(f16_bf16, F16, ToBf16)
RF_STRIDED_CAST(bf16_f32, Bf16, ToF32)
RF_STRIDED_CAST(bf16_f16, Bf16, ToF16)
