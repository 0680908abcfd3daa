// Kernels whose symbols tell the types of their parameters, for the tests of launch files (tests/launch_files). They need no HIP
// header. README.md has the command line.
#define KERNEL __attribute__((global)) __attribute__((amdgpu_flat_work_group_size(1, 64)))

// y[i] = x[i] * by + add, for a `times` that fits a byte
KERNEL void scale(const float *x, float *y, float by, int add, unsigned char times) {
    unsigned i = __builtin_amdgcn_workitem_id_x();
    y[i] = x[i] * by * times + add;
}

// y[i] = rows[i][0], with rows that may be null
KERNEL void heads(const float *const *rows, float *y) {
    unsigned i = __builtin_amdgcn_workitem_id_x();
    y[i] = rows[i] ? rows[i][0] : -1.0f;
}

// 80 reads, each an instruction of its own.
KERNEL void many(const volatile float *x, float *y) {
    float sum = 0;
#pragma clang loop unroll(full)
    for (int i = 0; i < 80; i++)
        sum += x[i * 7 + __builtin_amdgcn_workitem_id_x()];
    y[__builtin_amdgcn_workitem_id_x()] = sum;
}

// Each group writes its number where its ticket says: the order in which groups run.
KERNEL void tickets(unsigned *next, unsigned *order) {
    if (__builtin_amdgcn_workitem_id_x() == 0) {
        unsigned ticket = __scoped_atomic_fetch_add(next, 1u, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
        order[ticket] = __builtin_amdgcn_workgroup_id_x();
    }
}
