// Sends a signal to the process right before its n-th call that concerns a file: one whose path has SHIM_FILE in it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static int ours[4096];

static void step(const char *call) {
  static int count;
  const char *only = getenv("SHIM_CALL"), *at = getenv("SHIM_STEP"), *with = getenv("SHIM_SIGNAL");
  if (!at || !with || (only && strcmp(only, call))) return;
  if (++count == atoi(at)) raise(atoi(with));
}

static int is_wanted(const char *path) {
  const char *wanted = getenv("SHIM_FILE");
  return path && wanted && strstr(path, wanted) != NULL;
}
static int is_ours(int fd) { return fd >= 0 && fd < 4096 && ours[fd]; }

#define NEXT(name) ((typeof(&name))dlsym(RTLD_NEXT, #name))

static int opened(const char *path, int fd) {
  if (fd >= 0 && fd < 4096) ours[fd] = is_wanted(path);
  return fd;
}

int open64(const char *path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  if (is_wanted(path)) step("open");
  return opened(path, NEXT(open64)(path, flags, mode));
}

int open(const char *path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  if (is_wanted(path)) step("open");
  return opened(path, NEXT(open)(path, flags, mode));
}

int flock(int fd, int operation) {
  if (is_ours(fd)) step("flock");
  return NEXT(flock)(fd, operation);
}

ssize_t pread64(int fd, void *to, size_t count, off64_t at) {
  if (is_ours(fd)) step("pread");
  return NEXT(pread64)(fd, to, count, at);
}

ssize_t pwrite64(int fd, const void *from, size_t count, off64_t at) {
  if (is_ours(fd)) step("pwrite");
  return NEXT(pwrite64)(fd, from, count, at);
}

ssize_t write(int fd, const void *from, size_t count) {
  if (is_ours(fd)) step("write");
  return NEXT(write)(fd, from, count);
}

int ftruncate64(int fd, off64_t length) {
  if (is_ours(fd)) step("ftruncate");
  return NEXT(ftruncate64)(fd, length);
}

int link(const char *from, const char *to) {
  if (is_wanted(from)) step("link");
  return NEXT(link)(from, to);
}

int linkat(int a, const char *from, int b, const char *to, int flags) {
  if (is_wanted(from)) step("link");
  return NEXT(linkat)(a, from, b, to, flags);
}

int unlink(const char *path) {
  if (is_wanted(path)) step("unlink");
  return NEXT(unlink)(path);
}

int close(int fd) {
  if (is_ours(fd)) {
    step("close");
    ours[fd] = 0;
  }
  return NEXT(close)(fd);
}
