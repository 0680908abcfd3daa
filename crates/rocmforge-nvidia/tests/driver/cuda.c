// A stand-in for NVIDIA's driver: two devices whose memory is the host's, enough to see what it is called with.
#include <stdlib.h>
#include <string.h>

typedef unsigned status;
typedef void *handle;
typedef unsigned long long address;

// What the next call answers, or one of those after it, once; and what was last seen. Read and written by the tests through these functions.
static status next_status;
static int calls_before;
static __thread handle current;
static int contexts;
static unsigned long long seen[16];
void fake_answer(status s) { next_status = s; calls_before = 0; }
void fake_answer_after(int calls, status s) { next_status = s; calls_before = calls; }
int fake_has_answered(void) { return !next_status; }
unsigned long long fake_seen(int i) { return seen[i]; }
int fake_contexts(void) { return contexts; }
#define ANSWER                                                                                                         \
    if (next_status && calls_before-- == 0) {                                                                          \
        status s = next_status;                                                                                        \
        next_status = 0;                                                                                               \
        return s;                                                                                                      \
    }
#define NEEDS_CONTEXT                                                                                                  \
    ANSWER if (!current) return 201;

status cuInit(unsigned flags) { ANSWER return flags ? 1 : 0; }
status cuDriverGetVersion(int *version) { ANSWER *version = 12080; return 0; }
status cuDeviceGetCount(int *count) { ANSWER *count = 2; return 0; }
status cuDeviceGet(int *device, int ordinal) {
    ANSWER
    if (ordinal < 0 || ordinal > 1) return 101;
    *device = ordinal;
    return 0;
}
status cuDeviceGetName(char *name, int len, int device) { ANSWER strncpy(name, device ? "second" : "first", len); return 0; }
status cuDeviceGetAttribute(int *value, int attribute, int device) {
    ANSWER
    *value = attribute == 75 ? 9 + device : attribute == 76 ? 0 : attribute == 97 ? 232448 : attribute;
    return 0;
}
status cuDeviceTotalMem_v2(size_t *bytes, int device) { ANSWER *bytes = 1ull << 30; return 0; }
status cuDeviceGetPCIBusId(char *id, int len, int device) { ANSWER strncpy(id, "0000:01:00.0", len); return 0; }
status cuDevicePrimaryCtxRetain(handle *context, int device) {
    ANSWER
    contexts++;
    *context = (handle)(size_t)(100 + device);
    return 0;
}
status cuCtxSetCurrent(handle context) { ANSWER current = context; return 0; }
status cuCtxGetStreamPriorityRange(int *least, int *greatest) { NEEDS_CONTEXT *least = 0; *greatest = -5; return 0; }
// The context in which memory was asked for is its size.
status cuMemGetInfo_v2(size_t *free, size_t *total) { NEEDS_CONTEXT *free = (size_t)current; *total = 1ull << 30; return 0; }
status cuMemAlloc_v2(address *at, size_t size) {
    NEEDS_CONTEXT
    if (!size) return 1;
    if (size > 1 << 20) return 2;
    *at = (address)malloc(size);
    return 0;
}
status cuMemFree_v2(address at) { NEEDS_CONTEXT if (!at) return 1; free((void *)at); return 0; }
status cuMemHostAlloc(void **at, size_t size, unsigned flags) { NEEDS_CONTEXT seen[0] = flags; *at = malloc(size); return 0; }
status cuMemFreeHost(void *at) { NEEDS_CONTEXT if (!at) return 1; free(at); return 0; }
status cuMemHostRegister_v2(void *at, size_t size, unsigned flags) { NEEDS_CONTEXT return 712; }
status cuMemHostUnregister(void *at) { NEEDS_CONTEXT return 713; }
status cuMemHostGetDevicePointer_v2(address *device, void *host, unsigned flags) { NEEDS_CONTEXT *device = (address)host; return 0; }
status cuMemHostGetFlags(unsigned *flags, void *host) { NEEDS_CONTEXT *flags = 3; return 0; }
// Addresses from 4096 to 8191 are device memory of device 1; nothing else is known.
status cuPointerGetAttribute(void *answer, int attribute, address at) {
    NEEDS_CONTEXT
    if (at < 4096 || at > 8191) return 1;
    switch (attribute) {
    case 2: *(unsigned *)answer = 2; return 0;
    case 3: *(address *)answer = at; return 0;
    case 8: *(unsigned *)answer = 0; return 0;
    case 9: *(int *)answer = 1; return 0;
    }
    return 1;
}
static status copy(int kind, address to, address from, size_t size) {
    NEEDS_CONTEXT
    seen[0] = kind;
    memcpy((void *)to, (void *)from, size);
    return 0;
}
status cuMemcpyAsync(address to, address from, size_t size, handle stream) { return copy(4, to, from, size); }
status cuMemcpyHtoDAsync_v2(address to, const void *from, size_t size, handle stream) { return copy(1, to, (address)from, size); }
status cuMemcpyDtoHAsync_v2(void *to, address from, size_t size, handle stream) { return copy(2, (address)to, from, size); }
status cuMemcpyDtoDAsync_v2(address to, address from, size_t size, handle stream) { return copy(3, to, from, size); }
status cuMemsetD8Async(address at, unsigned char value, size_t size, handle stream) { NEEDS_CONTEXT memset((void *)at, value, size); return 0; }
status cuMemsetD32Async(address at, unsigned value, size_t count, handle stream) {
    NEEDS_CONTEXT
    for (size_t i = 0; i < count; i++) ((unsigned *)at)[i] = value;
    return 0;
}
status cuStreamCreateWithPriority(handle *stream, unsigned flags, int priority) {
    NEEDS_CONTEXT
    seen[0] = flags;
    seen[1] = priority;
    *stream = (handle)7;
    return 0;
}
status cuStreamDestroy_v2(handle stream) { NEEDS_CONTEXT return stream == (handle)7 ? 0 : 400; }
status cuStreamQuery(handle stream) { NEEDS_CONTEXT return 600; }
status cuStreamSynchronize(handle stream) { NEEDS_CONTEXT return 0; }
status cuStreamWaitEvent(handle stream, handle event, unsigned flags) { NEEDS_CONTEXT return 0; }
status cuStreamGetFlags(handle stream, unsigned *flags) { NEEDS_CONTEXT *flags = 1; return 0; }
// Stream 7 is of the current context, stream 17 of one that nobody here made.
status cuStreamGetCtx(handle stream, handle *context) { NEEDS_CONTEXT *context = stream == (handle)17 ? (handle)17 : current; return 0; }
status cuStreamGetPriority(handle stream, int *priority) { NEEDS_CONTEXT *priority = -1; return 0; }
status cuLaunchHostFunc(handle stream, void (*function)(void *), void *user) { NEEDS_CONTEXT function(user); return 0; }
status cuEventCreate(handle *event, unsigned flags) { NEEDS_CONTEXT seen[0] = flags; *event = (handle)8; return 0; }
status cuEventDestroy_v2(handle event) { NEEDS_CONTEXT return 0; }
status cuEventRecord(handle event, handle stream) { NEEDS_CONTEXT return 0; }
status cuEventQuery(handle event) { NEEDS_CONTEXT return 0; }
status cuEventSynchronize(handle event) { NEEDS_CONTEXT return 0; }
status cuEventElapsedTime(float *ms, handle start, handle stop) { NEEDS_CONTEXT *ms = 1.5f; return 0; }
status cuModuleLoadData(handle *module, const void *image) { NEEDS_CONTEXT seen[0] = strlen(image); *module = (handle)9; return 0; }
status cuModuleUnload(handle module) { NEEDS_CONTEXT return 0; }
status cuModuleGetFunction(handle *function, handle module, const char *name) {
    NEEDS_CONTEXT
    if (strcmp(name, "known")) return 500;
    *function = (handle)10;
    return 0;
}
status cuModuleGetGlobal_v2(address *at, size_t *bytes, handle module, const char *name) { NEEDS_CONTEXT *at = 4096; *bytes = 4; return 0; }
status cuFuncGetAttribute(int *value, int attribute, handle function) { NEEDS_CONTEXT *value = attribute; return 0; }
status cuFuncSetAttribute(handle function, int attribute, int value) {
    NEEDS_CONTEXT
    seen[12] = (size_t)function;
    seen[13] = attribute;
    seen[14] = value;
    return 0;
}
status cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, handle function, int threads, size_t bytes) { NEEDS_CONTEXT *blocks = 4; return 0; }
status cuLaunchKernel(handle function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                      unsigned bytes, handle stream, void **params, void **extra) {
    NEEDS_CONTEXT
    unsigned long long all[] = {(size_t)function, gx, gy, gz, bx, by, bz, bytes, (size_t)stream, (size_t)params, (size_t)extra, 0};
    memcpy(seen, all, sizeof all);
    return 0;
}
struct attribute { unsigned id; char padding[4]; int value[16]; };
struct config { unsigned grid[3], block[3], bytes; handle stream; struct attribute *attributes; unsigned count; };
status cuLaunchKernelEx(const struct config *c, handle function, void **params, void **extra) {
    status launched = cuLaunchKernel(function, c->grid[0], c->grid[1], c->grid[2], c->block[0], c->block[1], c->block[2], c->bytes, c->stream, params, extra);
    seen[11] = c->count == 1 ? c->attributes->id * 100 + c->attributes->value[0] : 0;
    return launched;
}
// Streams but 40 are captured.
status cuStreamBeginCapture_v2(handle stream, unsigned mode) { NEEDS_CONTEXT seen[0] = mode; return 0; }
status cuStreamEndCapture(handle stream, handle *graph) { NEEDS_CONTEXT *graph = (handle)11; return 0; }
status cuStreamIsCapturing(handle stream, unsigned *answer) { NEEDS_CONTEXT *answer = stream != (handle)40; return 0; }
status cuGraphDestroy(handle graph) { NEEDS_CONTEXT return 0; }
status cuGraphInstantiateWithFlags(handle *exec, handle graph, unsigned long long flags) { NEEDS_CONTEXT *exec = (handle)12; return 0; }
status cuGraphLaunch(handle exec, handle stream) { NEEDS_CONTEXT return 0; }
// Graph 11 fits; another one differs at node 33, in the way of its own number.
status cuGraphExecUpdate_v2(handle exec, handle graph, struct { unsigned result; handle node, from; } *info) {
    NEEDS_CONTEXT
    seen[0] = (size_t)exec;
    seen[1] = (size_t)graph;
    info->result = graph == (handle)11 ? 0 : (size_t)graph;
    info->node = graph == (handle)11 ? 0 : (handle)33;
    info->from = 0;
    return graph == (handle)11 ? 0 : 910;
}
status cuGraphExecDestroy(handle exec) { NEEDS_CONTEXT return 0; }
