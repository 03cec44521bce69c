/* Stands between a program and its disk (LD_PRELOAD): takes down every change below one folder, or lets the n-th fail.

   A record of the log is a header, two names and the bytes that were written; see disk_log.py, which reads it. What
   changes is done and taken down under one lock, so that the order of the log is the order on the disk. A sync is taken
   down twice, before and after, for what is written meanwhile may or may not be part of it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { MADE = 'c', FOLDER = 'd', WRITTEN = 'w', CUT = 't', SYNC = 's', SYNCED = 'e', ALL = 'a', RENAMED = 'r',
       EXCHANGED = 'x', LINKED = 'l', REMOVED = 'u' };
enum { NONE, EIO_ONCE, FULL_ONCE, FULL_FROM, EXIT_BEFORE, HALF_THEN_EXIT, READ_ONLY_FROM };

struct record {
  uint64_t at, number, node, folder, other, offset;
  uint32_t what, name, other_name, bytes;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char root[PATH_MAX];
static int log_fd = -1, kind = NONE;
static uint64_t count, fail_at;
static int active;

#define REAL(type, name, ...) \
  static type (*real)(__VA_ARGS__); \
  if (!real) real = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

/* Called by the program itself once it is where it wants to be watched, or at the start by what the environment says. */
void disk_watch(const char *folder, const char *log, int fault, uint64_t nth) {
  snprintf(root, sizeof root, "%s/", folder);
  log_fd = log && *log ? (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
  kind = fault;
  fail_at = nth;
  count = 0;
  active = 1;
}

uint64_t disk_count(void) { return count; }

__attribute__((constructor)) static void begin(void) {
  const char *folder = getenv("DISK_ROOT");
  const char *fault = getenv("DISK_FAULT"), *nth = getenv("DISK_NTH");
  if (folder) disk_watch(folder, getenv("DISK_LOG"), fault ? atoi(fault) : NONE, nth ? strtoull(nth, 0, 10) : 0);
}

static int below(const char *path) { return strncmp(path, root, strlen(root)) == 0 || strlen(root) == 1; }

static int place_of(int fd, char *path) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t n = syscall(SYS_readlinkat, AT_FDCWD, link, path, PATH_MAX - 1);
  if (n < 0) return 0;
  path[n] = 0;
  return 1;
}

static int is_ours(int fd, uint64_t *node) {
  char path[PATH_MAX];
  struct stat st;
  if (!active || fstat(fd, &st) != 0 || !(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))) return 0;
  if (!place_of(fd, path)) return 0;
  strncat(path, "/", PATH_MAX - strlen(path) - 1); /* the root itself counts */
  *node = st.st_ino;
  return below(path);
}

/* Which folder and which name in it a path means; whether that is ours. */
static int named(int at, const char *path, uint64_t *folder, const char **name, uint64_t *node) {
  char full[PATH_MAX], parent[PATH_MAX];
  struct stat st;
  if (!active) return 0;
  const char *slash = strrchr(path, '/');
  *name = slash ? slash + 1 : path;
  if (path[0] == '/') snprintf(full, sizeof full, "%s", path);
  else {
    if (at == AT_FDCWD) { if (!getcwd(full, sizeof full)) return 0; }
    else if (!place_of(at, full)) return 0;
    strncat(full, "/", sizeof full - strlen(full) - 1);
    strncat(full, path, sizeof full - strlen(full) - 1);
  }
  if (!below(full)) return 0;
  snprintf(parent, sizeof parent, "%.*s", (int)(strrchr(full, '/') - full), full);
  if (stat(parent, &st) != 0) return 0;
  *folder = st.st_ino;
  *node = fstatat(at, path, &st, AT_SYMLINK_NOFOLLOW) == 0 ? st.st_ino : 0;
  return 1;
}

static void take_down(struct record r, const char *name, const char *other, const void *bytes) {
  struct timespec now;
  if (log_fd < 0) return;
  clock_gettime(CLOCK_MONOTONIC, &now);
  r.at = (uint64_t)now.tv_sec * 1000000000u + now.tv_nsec;
  r.name = name ? strlen(name) : 0;
  r.other_name = other ? strlen(other) : 0;
  struct iovec parts[4] = {{&r, sizeof r}, {(void *)name, r.name}, {(void *)other, r.other_name},
                           {(void *)bytes, r.bytes}};
  syscall(SYS_writev, log_fd, parts, 4);
}

static int reason(void) { return kind == EIO_ONCE ? EIO : kind == READ_ONLY_FROM ? EROFS : ENOSPC; }

/* Whether this change fails; never returns when the program is to die here. */
static int fails(void) {
  count++;
  if (!kind || count < fail_at || (count > fail_at && kind != FULL_FROM && kind != READ_ONLY_FROM)) return 0;
  if (kind == EXIT_BEFORE) _exit(9);
  if (kind == HALF_THEN_EXIT) return -1;
  errno = reason();
  return 1;
}

#define GUARDED \
  pthread_mutex_lock(&lock); \
  int failing = fails(); \
  if (failing < 0 && kind == HALF_THEN_EXIT) _exit(9); \
  if (failing) { pthread_mutex_unlock(&lock); return -1; }
#define DONE(result) int kept = errno; pthread_mutex_unlock(&lock); errno = kept; return result

/* Bytes */

static ssize_t put(int fd, const void *bytes, size_t size, off_t offset, int positioned) {
  REAL(ssize_t, "pwrite64", int, const void *, size_t, off_t);
  uint64_t node;
  if (!is_ours(fd, &node))
    return positioned ? real(fd, bytes, size, offset) : syscall(SYS_write, fd, bytes, size);
  pthread_mutex_lock(&lock);
  int failing = fails();
  if (failing > 0) { pthread_mutex_unlock(&lock); return -1; }
  if (failing < 0) size = (size + 1) / 2;
  ssize_t n = positioned ? real(fd, bytes, size, offset) : syscall(SYS_write, fd, bytes, size);
  if (failing < 0) _exit(9);
  if (n > 0) {
    int kept = errno;
    if (!positioned) offset = lseek(fd, 0, SEEK_CUR) - n;
    take_down((struct record){.what = WRITTEN, .number = count, .node = node, .offset = offset, .bytes = n}, 0, 0, bytes);
    errno = kept;
  }
  DONE(n);
}

ssize_t write(int fd, const void *b, size_t n) { return put(fd, b, n, 0, 0); }
ssize_t pwrite(int fd, const void *b, size_t n, off_t o) { return put(fd, b, n, o, 1); }
ssize_t pwrite64(int fd, const void *b, size_t n, off_t o) { return put(fd, b, n, o, 1); }
ssize_t writev(int fd, const struct iovec *parts, int n) {
  uint64_t node;
  if (!is_ours(fd, &node)) return syscall(SYS_writev, fd, parts, n);
  return n ? put(fd, parts[0].iov_base, parts[0].iov_len, 0, 0) : 0; /* a short write, which is allowed */
}

/* Whoever copies within the kernel shows us no bytes: let them do it by hand. */
ssize_t sendfile(int out, int in, off_t *o, size_t n) {
  uint64_t node;
  if (is_ours(out, &node)) { errno = EINVAL; return -1; }
  return syscall(SYS_sendfile, out, in, o, n);
}
ssize_t sendfile64(int out, int in, off_t *o, size_t n) { return sendfile(out, in, o, n); }
ssize_t copy_file_range(int in, off_t *io, int out, off_t *oo, size_t n, unsigned f) {
  uint64_t node;
  if (is_ours(out, &node)) { errno = EXDEV; return -1; }
  return syscall(SYS_copy_file_range, in, io, out, oo, n, f);
}
int ioctl(int fd, unsigned long request, ...) {
  va_list rest;
  va_start(rest, request);
  void *argument = va_arg(rest, void *);
  va_end(rest);
  if (active && request == 0x40049409ul) { errno = EOPNOTSUPP; return -1; } /* FICLONE */
  return syscall(SYS_ioctl, fd, request, argument);
}

static int cut(int fd, off_t size) {
  uint64_t node;
  if (!is_ours(fd, &node)) return syscall(SYS_ftruncate, fd, size);
  GUARDED
  int done = syscall(SYS_ftruncate, fd, size);
  if (done == 0) take_down((struct record){.what = CUT, .number = count, .node = node, .offset = size}, 0, 0, 0);
  DONE(done);
}
int ftruncate(int fd, off_t size) { return cut(fd, size); }
int ftruncate64(int fd, off_t size) { return cut(fd, size); }

/* Syncs */

static int sync_by(int fd, long call, uint32_t what) {
  uint64_t node;
  if (!is_ours(fd, &node)) return syscall(call, fd);
  pthread_mutex_lock(&lock);
  int failing = fails();
  if (failing < 0) _exit(9);
  uint64_t mine = count;
  if (!failing) take_down((struct record){.what = what, .number = mine, .node = node}, 0, 0, 0);
  pthread_mutex_unlock(&lock);
  if (failing) { errno = reason(); return -1; }
  int done = syscall(call, fd);
  int kept = errno;
  pthread_mutex_lock(&lock);
  if (done == 0) take_down((struct record){.what = SYNCED, .number = mine, .node = node}, 0, 0, 0);
  pthread_mutex_unlock(&lock);
  errno = kept;
  return done;
}
int fsync(int fd) { return sync_by(fd, SYS_fsync, SYNC); }
int fdatasync(int fd) { return sync_by(fd, SYS_fdatasync, SYNC); }
int syncfs(int fd) { return sync_by(fd, SYS_syncfs, ALL); }

/* Names */

static int opened(int at, const char *path, int flags, mode_t mode) {
  uint64_t folder, before;
  const char *name;
  if (!(flags & (O_CREAT | O_TRUNC)) || !named(at, path, &folder, &name, &before))
    return syscall(SYS_openat, at, path, flags, mode);
  if (before && !(flags & O_TRUNC)) return syscall(SYS_openat, at, path, flags, mode);
  GUARDED
  int fd = syscall(SYS_openat, at, path, flags, mode);
  struct stat st;
  if (fd >= 0 && fstat(fd, &st) == 0) {
    if (!before)
      take_down((struct record){.what = MADE, .number = count, .node = st.st_ino, .folder = folder}, name, 0, 0);
    else take_down((struct record){.what = CUT, .number = count, .node = st.st_ino}, 0, 0, 0);
  }
  DONE(fd);
}
#define OPEN(at, path) \
  va_list rest; \
  va_start(rest, flags); \
  mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
  va_end(rest); \
  return opened(at, path, flags, mode)
int open(const char *path, int flags, ...) { OPEN(AT_FDCWD, path); }
int open64(const char *path, int flags, ...) { OPEN(AT_FDCWD, path); }
int openat(int at, const char *path, int flags, ...) { OPEN(at, path); }
int openat64(int at, const char *path, int flags, ...) { OPEN(at, path); }

static int made_folder(int at, const char *path, mode_t mode) {
  uint64_t folder, node;
  const char *name;
  if (!named(at, path, &folder, &name, &node) || node) return syscall(SYS_mkdirat, at, path, mode);
  GUARDED
  int done = syscall(SYS_mkdirat, at, path, mode);
  struct stat st;
  if (done == 0 && fstatat(at, path, &st, AT_SYMLINK_NOFOLLOW) == 0)
    take_down((struct record){.what = FOLDER, .number = count, .node = st.st_ino, .folder = folder}, name, 0, 0);
  DONE(done);
}
int mkdir(const char *path, mode_t mode) { return made_folder(AT_FDCWD, path, mode); }
int mkdirat(int at, const char *path, mode_t mode) { return made_folder(at, path, mode); }

static int removed(int at, const char *path, int flags) {
  uint64_t folder, node;
  const char *name;
  if (!named(at, path, &folder, &name, &node) || !node) return syscall(SYS_unlinkat, at, path, flags);
  GUARDED
  int done = syscall(SYS_unlinkat, at, path, flags);
  if (done == 0) take_down((struct record){.what = REMOVED, .number = count, .node = node, .folder = folder}, name, 0, 0);
  DONE(done);
}
int unlink(const char *path) { return removed(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return removed(AT_FDCWD, path, AT_REMOVEDIR); }
int unlinkat(int at, const char *path, int flags) { return removed(at, path, flags); }

static int moved(int at, const char *path, int other_at, const char *other, unsigned flags) {
  uint64_t folder, other_folder, node, standing;
  const char *name, *other_name;
  if (!named(at, path, &folder, &name, &node) || !named(other_at, other, &other_folder, &other_name, &standing))
    return syscall(SYS_renameat2, at, path, other_at, other, flags);
  GUARDED
  int done = syscall(SYS_renameat2, at, path, other_at, other, flags);
  if (done == 0)
    take_down((struct record){.what = flags & RENAME_EXCHANGE ? EXCHANGED : RENAMED, .number = count, .node = node,
                              .folder = folder, .other = other_folder, .offset = standing}, name, other_name, 0);
  DONE(done);
}
int rename(const char *a, const char *b) { return moved(AT_FDCWD, a, AT_FDCWD, b, 0); }
int renameat(int at, const char *a, int other, const char *b) { return moved(at, a, other, b, 0); }
int renameat2(int at, const char *a, int other, const char *b, unsigned flags) { return moved(at, a, other, b, flags); }

static int linked(int at, const char *path, int other_at, const char *other, int flags) {
  uint64_t folder, other_folder, node, standing;
  const char *name, *other_name;
  if (!named(at, path, &folder, &name, &node) || !named(other_at, other, &other_folder, &other_name, &standing))
    return syscall(SYS_linkat, at, path, other_at, other, flags);
  GUARDED
  int done = syscall(SYS_linkat, at, path, other_at, other, flags);
  if (done == 0)
    take_down((struct record){.what = LINKED, .number = count, .node = node, .folder = other_folder}, other_name, 0, 0);
  DONE(done);
}
int link(const char *a, const char *b) { return linked(AT_FDCWD, a, AT_FDCWD, b, 0); }
int linkat(int at, const char *a, int other, const char *b, int flags) { return linked(at, a, other, b, flags); }
