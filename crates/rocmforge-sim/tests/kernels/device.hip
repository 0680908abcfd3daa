// Kernels that need more of a device than its own memory: host memory, the clock, calls to the host, the whole grid. No HIP header and
// no device library is needed. README.md has the command line.
#define KERNEL extern "C" __attribute__((global)) __attribute__((amdgpu_flat_work_group_size(1, 256)))
#define DEVICE __attribute__((device))
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

DEVICE static inline u32 tid() { return __builtin_amdgcn_workitem_id_x(); }
DEVICE static inline u32 global_id() {
    return __builtin_amdgcn_workgroup_id_x() * __builtin_amdgcn_workgroup_size_x() + tid();
}

// Words, one after the other.
KERNEL void copy_words(const u32* in, u32* out, u32 n) {
    u32 i = global_id();
    if (i < n) out[i] = in[i] + 1;
}

// Words from the back, so that no two neighbours are one access.
KERNEL void reverse_words(const u32* in, u32* out, u32 n) {
    u32 i = global_id();
    if (i < n) out[n - 1 - i] = in[(i * 7) % n];
}

KERNEL void copy_bytes(const u8* in, u8* out, u32 n) {
    u32 i = global_id();
    if (i < n) out[i] = in[i] ^ 0x55;
}

// 16 bytes for each work-item.
struct alignas(16) Four { u32 x, y, z, w; };
KERNEL void copy_fours(const Four* in, Four* out, u32 n) {
    u32 i = global_id();
    if (i < n) out[i] = Four{in[i].w, in[i].z, in[i].y, in[i].x};
}

// The sum of eight words that all work-items read: scalar loads.
KERNEL void sum_uniform(const u32* __restrict in, u32* __restrict out) {
    u32 sum = 0;
    for (u32 k = 0; k < 8; k++) sum += in[k];
    out[tid()] = sum;
}

// Counts on a counter of each size, and keeps the largest number.
KERNEL void count(u32* small, u64* large, u32* most) {
    __atomic_fetch_add(small, 1u, __ATOMIC_RELAXED);
    __atomic_fetch_add(large, 3ull, __ATOMIC_RELAXED);
    __atomic_fetch_max(most, global_id(), __ATOMIC_RELAXED);
}

// Writes a value, and then a flag for the host.
KERNEL void publish(u32* value, u32* flag, u32 number) {
    if (global_id() != 0) return;
    *value = number;
    __atomic_store_n(flag, 1u, __ATOMIC_RELEASE);
}

// Waits for a flag in memory.
KERNEL void await_flag(const volatile u32* flag, u32* out) {
    while (*flag == 0) __builtin_amdgcn_s_sleep(1);
    out[tid()] = *flag;
}

// Waits so many ticks of the shader clock, and writes how many it were.
KERNEL void wait_cycles(u64* out, u64 ticks) {
    u64 start = __builtin_readcyclecounter(), now = start;
    u64 passed = 0;
    while (passed < ticks) {
        u64 then = now;
        now = __builtin_readcyclecounter();
        // The shader clock of gfx1100 has 20 bits.
        passed += (now - then) & 0xFFFFF;
    }
    if (tid() == 0) out[__builtin_amdgcn_workgroup_id_x()] = passed;
}

// The same of the wall clock.
KERNEL void wait_wall(u64* out, u64 ticks) {
    u64 start = __builtin_readsteadycounter();
    u64 now = start;
    while (now - start < ticks) now = __builtin_readsteadycounter();
    if (tid() == 0) {
        out[2 * __builtin_amdgcn_workgroup_id_x()] = start;
        out[2 * __builtin_amdgcn_workgroup_id_x() + 1] = now;
    }
}

// The wall clock before and after `n` rounds of arithmetic.
KERNEL void measure(u64* out, u32* sink, u32 n) {
    u64 before = __builtin_readsteadycounter();
    u32 x = tid();
#pragma clang loop unroll(disable)
    for (u32 k = 0; k < n; k++) x = x * 1664525u + 1013904223u;
    sink[tid()] = x;
    u64 after = __builtin_readsteadycounter();
    if (tid() == 0) {
        out[0] = before;
        out[1] = after;
    }
}

// Waits until every workgroup of a cooperative launch is here, as the device library does on processors without a global barrier.
DEVICE static inline void grid_barrier() {
    typedef __attribute__((address_space(4))) u8* Implicit;
    u8* sync = *(u8* __attribute__((address_space(4)))*)((Implicit)__builtin_amdgcn_implicitarg_ptr() + 88);
    u32* arrived = (u32*)(sync + 32);
    u32 groups = *(u32*)(sync + 40);
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "agent");
    __builtin_amdgcn_s_barrier();
    if (tid() == 0) {
        u32 before = __atomic_fetch_add(arrived, 1u, __ATOMIC_ACQ_REL);
        if ((before & 0xFFFF) == groups - 1) {
            __atomic_fetch_add(arrived, 0x10000u - groups, __ATOMIC_ACQ_REL);
        } else {
            while ((__atomic_load_n(arrived, __ATOMIC_ACQUIRE) & 0xFFFF0000u) == (before & 0xFFFF0000u))
                __builtin_amdgcn_s_sleep(1);
        }
    }
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "agent");
}

// Each round, every workgroup adds up what all workgroups have written in the round before.
KERNEL void grid_rounds(u32* values, u32 groups, u32 rounds) {
    u32 group = __builtin_amdgcn_workgroup_id_x();
    for (u32 round = 0; round < rounds; round++) {
        const u32* from = values + (round & 1) * groups;
        u32* to = values + (1 - (round & 1)) * groups;
        u32 sum = group;
        for (u32 k = 0; k < groups; k++) sum += from[k];
        grid_barrier();
        if (tid() == 0) to[group] = sum;
        grid_barrier();
    }
}

// Calls to the host: the packets that the device library sends, sent by hand.
struct Header { u64 next, active; u32 service, control; };
struct Slots { u64 lane[64][8]; };
struct Buffer { Header* headers; Slots* slots; u64 doorbell, free_stack, ready_stack, mask; };

DEVICE static inline u64 pop(Buffer* buffer) {
    u64 top = __atomic_load_n(&buffer->free_stack, __ATOMIC_ACQUIRE);
    for (;;) {
        u64 next = buffer->headers[top & buffer->mask].next;
        if (__atomic_compare_exchange_n(&buffer->free_stack, &top, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) return top;
    }
}

DEVICE static inline void push(Buffer* buffer, u64* top, u64 packet) {
    u64 old = __atomic_load_n(top, __ATOMIC_RELAXED);
    do {
        buffer->headers[packet & buffer->mask].next = old;
    } while (!__atomic_compare_exchange_n(top, &old, packet, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

// One call of one work-item: `data` is what its slot holds; the answer is the first word.
DEVICE static u64 call_host(u32 service, const u64* data) {
    typedef __attribute__((address_space(4))) u8* Implicit;
    Buffer* buffer = *(Buffer* __attribute__((address_space(4)))*)((Implicit)__builtin_amdgcn_implicitarg_ptr() + 80);
    u64 packet = pop(buffer);
    Header* header = &buffer->headers[packet & buffer->mask];
    u32 lane = tid() % 32;
    u64* slot = buffer->slots[packet & buffer->mask].lane[lane];
    header->active = 1ull << lane;
    header->service = service;
    header->control = 1;
    for (u32 k = 0; k < 8; k++) slot[k] = data[k];
    push(buffer, &buffer->ready_stack, packet);
    __atomic_fetch_add((u64*)(buffer->doorbell + 8), 1ull, __ATOMIC_RELEASE);
    while (__atomic_load_n(&header->control, __ATOMIC_ACQUIRE) & 1) __builtin_amdgcn_s_sleep(1);
    u64 answer = slot[0];
    u64 next = packet + buffer->mask + 1;
    push(buffer, &buffer->free_stack, next ? next : buffer->mask + 1);
    return answer;
}

// "group %d\n" of each workgroup, in two packets; writes what the host answers.
KERNEL void say_group(u64* answers) {
    if (tid() != 0) return;
    u32 group = __builtin_amdgcn_workgroup_id_x();
    // Begin, two words: control, and the first eight characters of the format.
    u64 first[8] = {1 | 2 << 5, 0, 0x64252070756f7267ull, 0, 0, 0, 0, 0};
    u64 message = call_host(2, first);
    // End, two words: the rest of the format, the argument.
    u64 last[8] = {(message & ~0xFFull) | 2 | 2 << 5, 0x0Aull, group, 0, 0, 0, 0, 0};
    answers[group] = call_host(2, last);
}

// A service that does not exist.
KERNEL void ask_nonsense(u64* answers) {
    if (tid() != 0) return;
    u64 data[8] = {7, 7, 7, 7, 7, 7, 7, 7};
    answers[0] = call_host(77, data);
}

// Memory from the host, used and given back; a second time it is not.
KERNEL void borrow(u64* answers, u64 bytes) {
    if (tid() != 0) return;
    u64 ask[8] = {0, bytes, 0, 0, 0, 0, 0, 0};
    u64 got = call_host(3, ask);
    answers[0] = got;
    if (got == 0) return;
    *(u32*)got = 7;
    *(u32*)(got + bytes - 4) = 8;
    answers[1] = *(u32*)got + *(u32*)(got + bytes - 4);
    u64 back[8] = {got, 0, 0, 0, 0, 0, 0, 0};
    call_host(3, back);
}

// Gives up with a message on the host's standard error output.
KERNEL void complain(u32 n) {
    if (n != 0) return;
    // Begin and end, two words: control, and "n == 0\n".
    u64 message[8] = {3 | 2 << 5, 1, 0x000A30203d3d206eull, 0, 0, 0, 0, 0};
    call_host(2, message);
    __builtin_trap();
}
