// A wave loads a row of A and a column of B into each of lanes 0 to 15, as RDNA3's matrix instruction wants them, and
// forgets that lanes 16 to 31 must hold the same again.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 32
//# args = ["f16[256] random", "f16[256] random", "f32[256]"]
#include "faulty.h"

typedef _Float16 half16 __attribute__((ext_vector_type(16)));
typedef float float8 __attribute__((ext_vector_type(8)));

KERNEL faulty(const half16 *rows, const half16 *columns, float8 *d) {
    u32 t = rf_thread();
    half16 a = {}, b = {};
    if (t < 16) {
        a = rows[t];
        b = columns[t];
    }
    d[t] = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(a, b, float8{}); // FAULT: MatrixHalves
}

KERNEL correct(const half16 *rows, const half16 *columns, float8 *d) {
    u32 t = rf_thread();
    half16 a = rows[t % 16], b = columns[t % 16];
    d[t] = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(a, b, float8{});
}
