/* Stands between a program and the clock on the wall (LD_PRELOAD): `CLOCK_FILE` holds by how many seconds it is wrong,
   as eight bytes, and may change at any moment. Clocks that only measure go on as they are, as they do when somebody
   sets the time. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *wrong;

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("CLOCK_FILE");
  int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (fd < 0) return;
  void *mapped = mmap(0, sizeof *wrong, PROT_READ, MAP_SHARED, fd, 0);
  close(fd);
  if (mapped != MAP_FAILED) wrong = mapped;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  int done = syscall(SYS_clock_gettime, clock, now);
  if (done == 0 && wrong && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += *wrong;
  return done;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  struct timespec t;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &t);
  now->tv_sec = t.tv_sec;
  now->tv_usec = t.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *told) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  if (told) *told = t.tv_sec;
  return t.tv_sec;
}
