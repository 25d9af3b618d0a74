/* SPDX-License-Identifier: Apache-2.0 */
#include "support/protocol/http/disk_faults.h"

#include <errno.h>
#include <stdatomic.h>

#include "protocol/http/disk.h"
#include "support/test.h"

static weir__http_disk_calls real;
static _Atomic unsigned calls[DISK_CALL_COUNT];
static _Atomic int open_files;
static _Atomic unsigned injected, countdown;
static _Atomic int faulty_call, fault_errno, refusal;

/* Counts a call. True if it is to fail; then errno is set. */
static bool fails(enum disk_call call)
{
    atomic_fetch_add(&calls[call], 1);
    if (atomic_load(&faulty_call) == (int)call && atomic_load(&countdown) > 0 &&
        atomic_fetch_sub(&countdown, 1) == 1) {
        atomic_fetch_add(&injected, 1);
        errno = atomic_load(&fault_errno);
        return true;
    }
    return false;
}

static int opened(int file)
{
    if (file >= 0)
        atomic_fetch_add(&open_files, 1);
    return file;
}

static int on_openat2(int folder, const char *path, const struct weir__http_open_how *how)
{
    if (fails(DISK_OPENAT2))
        return -1;
    if (atomic_load(&refusal) != 0) {
        errno = atomic_load(&refusal);
        return -1;
    }
    return opened(real.openat2(folder, path, how));
}

static int on_openat(int folder, const char *path, int flags, mode_t mode)
{
    return fails(DISK_OPENAT) ? -1 : opened(real.openat(folder, path, flags, mode));
}

static int on_fstat(int file, struct stat *ret_status)
{
    return fails(DISK_FSTAT) ? -1 : real.fstat(file, ret_status);
}

static int on_fstatat(int folder, const char *path, struct stat *ret_status, int flags)
{
    return fails(DISK_FSTATAT) ? -1 : real.fstatat(folder, path, ret_status, flags);
}

static ssize_t on_readlinkat(int folder, const char *path, char *target, size_t size)
{
    return fails(DISK_READLINKAT) ? -1 : real.readlinkat(folder, path, target, size);
}

static ssize_t on_getdents64(int folder, void *entries, size_t size)
{
    return fails(DISK_GETDENTS64) ? -1 : real.getdents64(folder, entries, size);
}

static ssize_t on_pread(int file, void *memory, size_t size, off_t offset)
{
    if (fails(DISK_PREAD))
        return errno == DISK_END_OF_FILE ? 0 : -1;
    return real.pread(file, memory, size, offset);
}

static ssize_t on_pwrite(int file, const void *memory, size_t size, off_t offset)
{
    return fails(DISK_PWRITE) ? -1 : real.pwrite(file, memory, size, offset);
}

static int on_unlinkat(int folder, const char *path, int flags)
{
    return fails(DISK_UNLINKAT) ? -1 : real.unlinkat(folder, path, flags);
}

static int on_close(int file)
{
    atomic_fetch_sub(&open_files, 1);
    return real.close(file);
}

void disk_faults_install(void)
{
    for (int i = 0; i < DISK_CALL_COUNT; i++)
        atomic_store(&calls[i], 0);
    atomic_store(&open_files, 0);
    atomic_store(&countdown, 0);
    atomic_store(&refusal, 0);
    real = weir__http_disk;
    weir__http_disk = (weir__http_disk_calls){
        .openat2 = on_openat2,
        .openat = on_openat,
        .fstat = on_fstat,
        .fstatat = on_fstatat,
        .readlinkat = on_readlinkat,
        .getdents64 = on_getdents64,
        .pread = on_pread,
        .pwrite = on_pwrite,
        .unlinkat = on_unlinkat,
        .close = on_close,
    };
}

void disk_faults_remove(void)
{
    weir__http_disk = real;
}

void disk_faults_inject(enum disk_call call, unsigned n, int err)
{
    atomic_store(&countdown, 0);
    atomic_store(&faulty_call, (int)call);
    atomic_store(&fault_errno, err);
    atomic_store(&injected, 0);
    atomic_store(&countdown, n);
}

void disk_faults_refuse_openat2(int err)
{
    atomic_store(&refusal, err);
}

unsigned disk_faults_injected(void)
{
    return atomic_load(&injected);
}

unsigned disk_faults_calls(enum disk_call call)
{
    return atomic_load(&calls[call]);
}

int disk_faults_open_files(void)
{
    return atomic_load(&open_files);
}

const char *disk_faults_name(enum disk_call call)
{
    static const char *const names[] = {"openat2",    "openat", "fstat",  "fstatat", "readlinkat",
                                        "getdents64", "pread",  "pwrite", "unlinkat"};

    return names[call];
}
