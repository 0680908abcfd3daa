// The correct kernels of random host programs. No HIP header and no device library is needed. README.md has the command
// line.
#define KERNEL extern "C" __attribute__((global)) __attribute__((amdgpu_flat_work_group_size(1, 256)))
#define DEVICE __attribute__((device))
#define SHARED __attribute__((shared))

DEVICE static inline unsigned global_id() {
    return __builtin_amdgcn_workgroup_id_x() * __builtin_amdgcn_workgroup_size_x() + __builtin_amdgcn_workitem_id_x();
}

DEVICE static inline void barrier() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

KERNEL void fill(unsigned* out, unsigned value, unsigned n) {
    unsigned i = global_id();
    if (i < n) out[i] = value + i;
}

KERNEL void add(const unsigned* a, const unsigned* b, unsigned* out, unsigned n) {
    unsigned i = global_id();
    if (i < n) out[i] = a[i] + b[i];
}

// Every element of `in` is counted in `total[0]`.
KERNEL void count(const unsigned* in, unsigned* total, unsigned n) {
    unsigned i = global_id();
    if (i < n) __scoped_atomic_fetch_add(total, in[i] & 1, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
}

// Each lane writes what the lane 32 further has put into LDS.
KERNEL void rotate(unsigned* out) {
    SHARED unsigned parts[64];
    unsigned lane = __builtin_amdgcn_workitem_id_x();
    parts[lane & 63] = lane;
    barrier();
    out[lane & 63] = parts[(lane + 32) & 63];
}
