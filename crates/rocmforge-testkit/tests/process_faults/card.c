// A HIP library with two cards, in host memory; the tests use the second. FAKE_FAULT names a function and what it does instead: `hang:hipMalloc`.
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Says to the test that it has come so far.
static void say(const char *what) {
  const char *directory = getenv("FAKE_DIRECTORY");
  char path[4096];
  if (!directory) return;
  snprintf(path, sizeof path, "%s/%s", directory, what);
  FILE *file = fopen(path, "w");
  if (file) fclose(file);
}

__attribute__((constructor)) static void loaded(void) { say("loaded"); }

static void fault(const char *function) {
  const char *wanted = getenv("FAKE_FAULT");
  const char *name = wanted ? strchr(wanted, ':') : NULL;
  if (!name || strcmp(name + 1, function)) return;
  say("entered");
  if (!strncmp(wanted, "hang", 4))
    for (;;) pause();
  if (!strncmp(wanted, "segv", 4)) *(volatile int *)16 = 1; // not raise: the handler of Rust would return
  if (!strncmp(wanted, "abort", 5)) abort();
  if (!strncmp(wanted, "exit", 4)) exit(3);
}

unsigned hipInit(unsigned flags) {
  fault("hipInit");
  return 0;
}
unsigned hipGetDeviceCount(int *count) {
  *count = 2;
  return 0;
}
static __thread int current;
unsigned hipSetDevice(int device) {
  current = device;
  return 0;
}
unsigned hipGetDevice(int *device) {
  *device = current;
  return 0;
}
unsigned hipDeviceGet(int *device, int ordinal) {
  *device = ordinal;
  return 0;
}
unsigned hipDeviceGetName(char *name, int length, int device) {
  snprintf(name, length, "Fake Radeon");
  return 0;
}
unsigned hipDeviceGetPCIBusId(char *name, int length, int device) {
  snprintf(name, length, device ? "0000:03:00.0" : "0000:09:00.0");
  return 0;
}
unsigned hipDeviceTotalMem(size_t *total, int device) {
  *total = (size_t)4 << 30;
  return 0;
}
unsigned hipMemGetInfo(size_t *free, size_t *total) {
  *free = (size_t)3 << 30;
  *total = (size_t)4 << 30;
  return 0;
}
unsigned hipRuntimeGetVersion(int *version) {
  *version = 60200000;
  return 0;
}
unsigned hipDeviceGetAttribute(int *value, int attribute, int device) {
  switch (attribute) {
  case 16: *value = 0; break;  // integrated
  case 87: *value = 32; break; // wave size
  case 74: *value = 65536; break;
  default: *value = 1024;
  }
  return 0;
}
unsigned hipGetDevicePropertiesR0600(void *properties, int device) {
  strcpy((char *)properties + ARCH_NAME, "gfx1100");
  return 0;
}
unsigned hipStreamCreateWithFlags(void **stream, unsigned flags) {
  *stream = malloc(1);
  return 0;
}
unsigned hipEventCreateWithFlags(void **event, unsigned flags) {
  *event = malloc(1);
  return 0;
}
unsigned hipMalloc(void **memory, size_t bytes) {
  fault("hipMalloc");
  *memory = calloc(1, bytes);
  return *memory ? 0 : 2;
}
unsigned hipFree(void *memory) {
  fault("hipFree");
  free(memory);
  return 0;
}
unsigned hipMemsetAsync(void *memory, int value, size_t bytes, void *stream) {
  memset(memory, value, bytes);
  return 0;
}
