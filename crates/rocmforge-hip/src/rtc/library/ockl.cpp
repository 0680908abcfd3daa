// What device code asks of its launch, its wave and the host, by the names of AMD's device library, for hiprtc where that library is not
// installed. Compiled for the card without a processor, and linked as that library is.
typedef unsigned int u32;
typedef unsigned long long u64;

#define RF_OCKL extern "C" __attribute__((convergent))
#define RF_LAUNCH __attribute__((address_space(4)))
#define RF_LDS __attribute__((address_space(3)))

// Work-items.

static inline RF_LAUNCH const char* arguments() { return (RF_LAUNCH const char*)__builtin_amdgcn_implicitarg_ptr(); }
static inline u32 short_at(u32 offset) { return *(RF_LAUNCH const unsigned short*)(arguments() + offset); }

RF_OCKL u64 __ockl_get_local_id(u32 axis) {
    return axis == 0 ? __builtin_amdgcn_workitem_id_x() : axis == 1 ? __builtin_amdgcn_workitem_id_y() : __builtin_amdgcn_workitem_id_z();
}
RF_OCKL u64 __ockl_get_group_id(u32 axis) {
    return axis == 0 ? __builtin_amdgcn_workgroup_id_x() : axis == 1 ? __builtin_amdgcn_workgroup_id_y() : __builtin_amdgcn_workgroup_id_z();
}
RF_OCKL u64 __ockl_get_num_groups(u32 axis) {
    u32 offset = 4 * (axis > 2 ? 2 : axis);
    return *(RF_LAUNCH const u32*)(arguments() + offset) + (short_at(18 + offset / 2) > 0);
}
RF_OCKL u64 __ockl_get_local_size(u32 axis) {
    u32 at = axis > 2 ? 2 : axis;
    bool whole = __ockl_get_group_id(at) < *(RF_LAUNCH const u32*)(arguments() + 4 * at);
    return short_at((whole ? 12 : 18) + 2 * at);
}
RF_OCKL u64 __ockl_get_enqueued_local_size(u32 axis) { return short_at(12 + 2 * (axis > 2 ? 2 : axis)); }
RF_OCKL u64 __ockl_get_global_id(u32 axis) {
    return __ockl_get_group_id(axis) * __ockl_get_enqueued_local_size(axis) + __ockl_get_local_id(axis);
}
RF_OCKL u64 __ockl_get_global_size(u32 axis) {
    u32 at = axis > 2 ? 2 : axis;
    return (u64) * (RF_LAUNCH const u32*)(arguments() + 4 * at) * short_at(12 + 2 * at) + short_at(18 + 2 * at);
}
RF_OCKL u64 __ockl_get_local_linear_id(void) {
    u32 x = __ockl_get_local_size(0), y = __ockl_get_local_size(1);
    return (__builtin_amdgcn_workitem_id_z() * y + __builtin_amdgcn_workitem_id_y()) * x + __builtin_amdgcn_workitem_id_x();
}

// Waves and workgroups.

RF_OCKL u32 __ockl_lane_u32(void) { return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0)); }
static inline u64 active() { return __builtin_amdgcn_ballot_w64(true); }
RF_OCKL u32 __ockl_activelane_u32(void) {
    u64 lanes = active();
    return __builtin_amdgcn_mbcnt_hi((u32)(lanes >> 32), __builtin_amdgcn_mbcnt_lo((u32)lanes, 0));
}
RF_OCKL bool __ockl_wfany_i32(int value) { return __builtin_amdgcn_ballot_w64(value != 0) != 0; }
RF_OCKL bool __ockl_wfall_i32(int value) { return __builtin_amdgcn_ballot_w64(value == 0) == 0; }

extern "C" __attribute__((convergent)) void __atomic_work_item_fence(u32 flags, u32 order, u32 scope) {
    (void)flags;
    (void)order;
    // The scopes of OpenCL: 1 a workgroup, 2 the card, above it the machine.
    if (scope <= 1) {
        __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup");
    } else if (scope == 2) {
        __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent");
    } else {
        __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "");
    }
}
static inline void barrier() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
// One word of LDS for the reductions of a workgroup, which all its threads take part in.
static RF_LDS int reduced __attribute__((loader_uninitialized));
#define RF_REDUCTION(name, first, operation)                                                                  \
    RF_OCKL int name(int value) {                                                                             \
        barrier();                                                                                            \
        if (__ockl_get_local_linear_id() == 0) __scoped_atomic_store_n(&reduced, first, __ATOMIC_RELAXED, __MEMORY_SCOPE_WRKGRP); \
        barrier();                                                                                            \
        operation(&reduced, value, __ATOMIC_RELAXED, __MEMORY_SCOPE_WRKGRP);                                  \
        barrier();                                                                                            \
        return __scoped_atomic_load_n(&reduced, __ATOMIC_RELAXED, __MEMORY_SCOPE_WRKGRP);                     \
    }
RF_REDUCTION(__ockl_wgred_add_i32, 0, __scoped_atomic_fetch_add)
RF_REDUCTION(__ockl_wgred_and_i32, -1, __scoped_atomic_fetch_and)
RF_REDUCTION(__ockl_wgred_or_i32, 0, __scoped_atomic_fetch_or)

// Integers and clocks.

extern "C" unsigned char __ockl_clz_u8(unsigned char x) { return x ? __builtin_clz(x) - 24 : 8; }
extern "C" unsigned short __ockl_clz_u16(unsigned short x) { return x ? __builtin_clz(x) - 16 : 16; }
extern "C" u32 __ockl_clz_u32(u32 x) { return x ? __builtin_clz(x) : 32; }
extern "C" u64 __ockl_clz_u64(u64 x) { return x ? __builtin_clzll(x) : 64; }
extern "C" u32 __ockl_mul_hi_u32(u32 x, u32 y) { return (u64)x * y >> 32; }
extern "C" int __ockl_mul_hi_i32(int x, int y) { return (long long)x * y >> 32; }
extern "C" u64 __ockl_mul_hi_u64(u64 x, u64 y) { return (unsigned __int128)x * y >> 64; }
extern "C" long long __ockl_mul_hi_i64(long long x, long long y) { return (__int128)x * y >> 64; }
extern "C" u32 __ockl_mul24_u32(u32 x, u32 y) { return (x & 0xffffff) * (y & 0xffffff); }
extern "C" int __ockl_mul24_i32(int x, int y) { return (int)(((long long)(x << 8) >> 8) * ((long long)(y << 8) >> 8)); }
extern "C" u32 __ockl_sadd_u32(u32 x, u32 y) { return x + y < x ? ~0u : x + y; }
extern "C" u64 __ockl_steadyctr_u64(void) { return __builtin_readsteadycounter(); }
extern "C" u64 __ockl_cyclectr_u64(void) { return __builtin_readcyclecounter(); }
extern "C" u64 __ockl_memtime_u64(void) { return __builtin_readcyclecounter(); }

// Calls of the host: a wave takes a packet from the free stack, fills it, puts it on the ready stack and waits until it is answered.

struct Header {
    u64 next, lanes;
    u32 service, control;
};
struct Buffer {
    Header* headers;
    u64 (*payloads)[64][8];
    u64 doorbell, free, ready, mask;
};
struct Answer {
    u64 first, second;
};

// The value of the first lane that takes part.
static inline u64 of_first(u64 value) {
    u32 low = __builtin_amdgcn_readfirstlane((u32)value), high = __builtin_amdgcn_readfirstlane((u32)(value >> 32));
    return (u64)high << 32 | low;
}
static inline void push(Buffer* buffer, u64* stack, u64 packet) {
    u64 top = __scoped_atomic_load_n(stack, __ATOMIC_RELAXED, __MEMORY_SCOPE_SYSTEM);
    do {
        __scoped_atomic_store_n(&buffer->headers[packet & buffer->mask].next, top, __ATOMIC_RELAXED, __MEMORY_SCOPE_SYSTEM);
    } while (!__scoped_atomic_compare_exchange_n(stack, &top, packet, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED, __MEMORY_SCOPE_SYSTEM));
}
static inline u64 pop(Buffer* buffer) {
    u64 top = __scoped_atomic_load_n(&buffer->free, __ATOMIC_ACQUIRE, __MEMORY_SCOPE_SYSTEM);
    for (;;) {
        // An empty stack: other waves have all packets.
        if (top == 0) {
            __builtin_amdgcn_s_sleep(1);
            top = __scoped_atomic_load_n(&buffer->free, __ATOMIC_ACQUIRE, __MEMORY_SCOPE_SYSTEM);
            continue;
        }
        u64 next = __scoped_atomic_load_n(&buffer->headers[top & buffer->mask].next, __ATOMIC_RELAXED, __MEMORY_SCOPE_SYSTEM);
        if (__scoped_atomic_compare_exchange_n(&buffer->free, &top, next, false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE, __MEMORY_SCOPE_SYSTEM)) return top;
    }
}
RF_OCKL __attribute__((noinline)) Answer rocmforge_hostcall(u32 service, u64 a0, u64 a1, u64 a2, u64 a3, u64 a4, u64 a5, u64 a6, u64 a7) {
    Buffer* buffer = *(Buffer* RF_LAUNCH const*)(arguments() + 80);
    u32 lane = __ockl_lane_u32();
    bool leads = lane == __builtin_amdgcn_readfirstlane(lane);
    u64 lanes = active(), packet = 0;
    if (leads) packet = pop(buffer);
    packet = of_first(packet);
    Header* header = &buffer->headers[packet & buffer->mask];
    u64* slot = buffer->payloads[packet & buffer->mask][lane];
    u64 words[8] = {a0, a1, a2, a3, a4, a5, a6, a7};
#pragma unroll
    for (int i = 0; i < 8; i++) slot[i] = words[i];
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "");
    if (leads) {
        header->lanes = lanes;
        header->service = service;
        __scoped_atomic_store_n(&header->control, 1u, __ATOMIC_RELAXED, __MEMORY_SCOPE_SYSTEM);
        push(buffer, &buffer->ready, packet);
        while (__scoped_atomic_load_n(&header->control, __ATOMIC_ACQUIRE, __MEMORY_SCOPE_SYSTEM) & 1) __builtin_amdgcn_s_sleep(1);
    }
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "");
    Answer answer = {__scoped_atomic_load_n(&slot[0], __ATOMIC_RELAXED, __MEMORY_SCOPE_SYSTEM),
                     __scoped_atomic_load_n(&slot[1], __ATOMIC_RELAXED, __MEMORY_SCOPE_SYSTEM)};
    // The tag above the index changes, so that a packet that comes back is another one.
    if (leads) {
        u64 tagged = packet + buffer->mask + 1;
        push(buffer, &buffer->free, tagged ? tagged : buffer->mask + 1);
    }
    return answer;
}

// Messages of `printf`: words that are collected by the number in their descriptor, until the last one.

enum : u64 { BEGIN = 1, END = 2 };
static inline u64 words(u64 descriptor, u64 count, u64 flags, const u64* a) {
    descriptor = (descriptor & ~0xffull) | flags | count << 5;
    return rocmforge_hostcall(2, descriptor, a[0], a[1], a[2], a[3], a[4], a[5], a[6]).first;
}
static inline u64 begin(u64 control) {
    u64 first[7] = {control};
    return words(0, 1, BEGIN, first);
}
static inline u64 arguments_of(u64 descriptor, u32 count, u64 v0, u64 v1, u64 v2, u64 v3, u64 v4, u64 v5, u64 v6, u32 last) {
    u64 values[7] = {v0, v1, v2, v3, v4, v5, v6};
    return words(descriptor, count, last ? END : 0, values);
}
static inline u64 text(u64 descriptor, const char* at, u64 length, u32 last) {
    u64 empty[7] = {};
    if (at == nullptr || length == 0) return words(descriptor, 1, last ? END : 0, empty);
    u64 answer = descriptor;
    while (length > 0) {
        u64 part = length > 56 ? 56 : length, packed[7] = {};
#pragma unroll
        for (int word = 0; word < 7; word++) {
            u64 value = 0;
            for (u32 byte = 0; byte < 8; byte++) {
                if (8 * word + byte < part) value |= (u64)(unsigned char)at[8 * word + byte] << 8 * byte;
            }
            packed[word] = value;
        }
        at += part;
        length -= part;
        answer = words(descriptor, (part + 7) / 8, last && length == 0 ? END : 0, packed);
    }
    return answer;
}
RF_OCKL u64 __ockl_printf_begin(u64) { return begin(0); }
RF_OCKL u64 __ockl_fprintf_stdout_begin(void) { return begin(0); }
RF_OCKL u64 __ockl_fprintf_stderr_begin(void) { return begin(1); }
RF_OCKL u64 __ockl_printf_append_args(u64 d, u32 n, u64 a, u64 b, u64 c, u64 e, u64 f, u64 g, u64 h, u32 last) {
    return arguments_of(d, n, a, b, c, e, f, g, h, last);
}
RF_OCKL u64 __ockl_fprintf_append_args(u64 d, u32 n, u64 a, u64 b, u64 c, u64 e, u64 f, u64 g, u64 h, u32 last) {
    return arguments_of(d, n, a, b, c, e, f, g, h, last);
}
RF_OCKL u64 __ockl_printf_append_string_n(u64 d, const char* at, u64 length, u32 last) { return text(d, at, length, last); }
RF_OCKL u64 __ockl_fprintf_append_string_n(u64 d, const char* at, u64 length, u32 last) { return text(d, at, length, last); }

// Memory of kernels, from the host.
RF_OCKL u64 __ockl_dm_alloc(u64 size) { return size ? rocmforge_hostcall(3, 0, size, 0, 0, 0, 0, 0, 0).first : 0; }
RF_OCKL void __ockl_dm_dealloc(u64 at) {
    if (at) rocmforge_hostcall(3, at, 0, 0, 0, 0, 0, 0, 0);
}
