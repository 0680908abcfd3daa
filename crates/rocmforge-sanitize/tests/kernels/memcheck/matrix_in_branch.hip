// Half of a wave goes into a branch with a matrix instruction of RDNA3. The instruction reads the other lanes all the same,
// and what they hold there is whatever their registers were last used for.
//
//# [[launch]]
//# kernel = "faulty"
//# block = 32
//# args = ["i32[64] random", "i32[64] random", "i32[256] zeros", 16]
#include "faulty.h"

typedef int int4 __attribute__((ext_vector_type(4)));
typedef int int8 __attribute__((ext_vector_type(8)));

KERNEL faulty(const int4 *rows, const int4 *columns, int8 *d, u32 lanes) {
    u32 t = rf_thread();
    if (t < lanes) {
        int4 a = rows[t], b = columns[t];
        d[t] = __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32(true, a, true, b, int8{}, false); // FAULT: MatrixHalves
    }
}

KERNEL correct(const int4 *rows, const int4 *columns, int8 *d, u32 lanes) {
    u32 t = rf_thread();
    int4 a = rows[t % 16], b = columns[t % 16];
    int8 c = __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32(true, a, true, b, int8{}, false);
    if (t < lanes) d[t] = c;
}
