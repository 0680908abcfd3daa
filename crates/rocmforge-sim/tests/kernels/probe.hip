// Kernels for the simulator's own tests: correct ones, and one for each mistake a launch can make. No HIP header and no
// device library is needed. README.md has the command line.
#define KERNEL extern "C" __attribute__((global)) __attribute__((amdgpu_flat_work_group_size(1, 256)))
#define DEVICE __attribute__((device))
#define SHARED __attribute__((shared))

DEVICE static inline unsigned global_id() {
    return __builtin_amdgcn_workgroup_id_x() * __builtin_amdgcn_workgroup_size_x() + __builtin_amdgcn_workitem_id_x();
}

extern "C" DEVICE int table[4] = {10, 20, 30, 40};

extern "C" DEVICE __attribute__((noinline, used)) int helper(int x) { return x + 1; }

// out[i] = in[i] * factor
KERNEL void scale(const float* in, float* out, float factor, unsigned n) {
    unsigned i = global_id();
    if (i < n) out[i] = in[i] * factor;
}

// Writes n + 1 elements.
KERNEL void one_too_many(float* out, unsigned n) {
    unsigned i = global_id();
    if (i <= n) out[i] = 1.0f;
}

// What the launch looks like from inside: workgroups, workgroup size, dynamic LDS is not read.
KERNEL void geometry(unsigned* out) {
    if (global_id() == 0) {
        out[0] = __builtin_amdgcn_workgroup_size_x();
        out[1] = __builtin_amdgcn_workgroup_size_y();
        out[2] = __builtin_amdgcn_workgroup_size_z();
    }
}

// Integer division, by zero too.
KERNEL void divide(int* out, int a, int b) {
    if (global_id() == 0) out[0] = a / b;
}

// Each lane reads what the wave next door has written, without a barrier in between.
KERNEL void missing_barrier(float* out) {
    SHARED float parts[128];
    unsigned lane = __builtin_amdgcn_workitem_id_x();
    parts[lane] = (float)lane;
    out[lane] = parts[(lane + 32) & 127];
}

// The same with the barrier.
KERNEL void with_barrier(float* out) {
    SHARED float parts[128];
    unsigned lane = __builtin_amdgcn_workitem_id_x();
    parts[lane] = (float)lane;
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
    out[lane] = parts[(lane + 32) & 127];
}

// Waits for a flag that nobody sets.
KERNEL void endless(const volatile unsigned* flag) {
    while (*flag == 0) {
    }
}

// Reads a global variable of the module.
KERNEL void look_up(int* out, unsigned n) {
    unsigned i = global_id();
    if (i < n) out[i] = helper(table[i & 3]);
}

KERNEL void nothing() {}

// Two sums over a private array: written with constant indices, and with an index that only the run knows.
DEVICE static inline unsigned private_sum(const unsigned* table, unsigned i) {
    unsigned sum = 0;
#pragma clang loop unroll(disable)
    for (unsigned k = 0; k < 64; k++) sum = sum * 31 + table[(k * 7 + i) % 64];
    return sum;
}

KERNEL void private_constant_size(unsigned* out, unsigned n, unsigned seed) {
    unsigned i = global_id();
    unsigned table[64];
#pragma clang loop unroll(full)
    for (unsigned k = 0; k < 64; k++) table[k] = k * seed + i;
    if (i < n) out[i] = private_sum(table, i);
}

KERNEL void private_variable_index(unsigned* out, unsigned n, unsigned seed) {
    unsigned i = global_id();
    unsigned table[64];
#pragma clang loop unroll(disable)
    for (unsigned k = 0; k < 64; k++) table[(k * 5 + i) % 64] = ((k * 5 + i) % 64) * seed + i;
    if (i < n) out[i] = private_sum(table, i);
}
