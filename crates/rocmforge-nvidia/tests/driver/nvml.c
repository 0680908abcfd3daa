// A stand-in for NVIDIA's management library: one card at 0000:03:00.0, without a display, and no processes on it.
#ifndef DEAD
#define DEAD 0 // what nvmlInit_v2 answers
#endif
#include <string.h>

typedef struct { unsigned long long total, free, used; } memory;

int nvmlInit_v2(void) { return DEAD; }
int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, void **device) {
    if (strcmp(pci, "0000:03:00.0")) return 6;
    *device = (void *)21;
    return 0;
}
int nvmlDeviceGetMemoryInfo(void *device, memory *m) {
    if (device != (void *)21) return 2;
    *m = (memory){24ull << 30, 23ull << 30, 1ull << 30};
    return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, void *room) { *count = 0; return 0; }
int nvmlDeviceGetDisplayActive(void *device, unsigned *on) { *on = 0; return 0; }
int nvmlDeviceGetDisplayMode(void *device, unsigned *on) { *on = 0; return 0; }
