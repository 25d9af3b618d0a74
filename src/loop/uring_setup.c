/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets up a ring, with fewer features if the kernel refuses some, and with a useful message if it
 * refuses altogether.
 *
 * The ring is created disabled: any thread can create it, so a refusal is known before a thread is
 * started. Only the thread that enables it may submit to it.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include <weir/error.h>

#include "loop/uring.h"

#define SUBMISSIONS 256
#define COMPLETIONS_PER_SUBMISSION 16

#define KERNEL_MAJOR 6
#define KERNEL_MINOR 1

#define DISABLED_FILE "/proc/sys/kernel/io_uring_disabled"

/* ---- calls that tests can replace ---- */

/* liburing 2.3 declares io_uring_enable_rings, but its shared library does not contain it. */
static int enable(struct io_uring *ring)
{
    return io_uring_register((unsigned)ring->ring_fd, IORING_REGISTER_ENABLE_RINGS, NULL, 0);
}

/* Reads the administrator's setting; 0 if there is none. */
static int disabled(void)
{
    FILE *file = fopen(DISABLED_FILE, "re");
    int level = 0;

    if (file == NULL)
        return 0;
    if (fscanf(file, "%d", &level) != 1)
        level = 0;
    (void)fclose(file);
    return level;
}

weir__uring_calls weir__uring_system = {
    .setup = io_uring_queue_init_params,
    .exit = io_uring_queue_exit,
    .enable = enable,
    .enter = io_uring_enter2,
    .register_buffers = io_uring_register_buf_ring,
    .limit_workers = io_uring_register_iowq_max_workers,
    .cancel_sync = io_uring_register_sync_cancel,
    .uname = uname,
    .disabled = disabled,
};

/* ---- flags ---- */

/*
 * How the kernel runs completion work, best first. Deferred work runs only when the loop enters the
 * kernel to get events; other work interrupts the loop.
 *
 * Deferred work is visible to a poll of the ring's descriptor, but does not wake a thread that
 * already sleeps on it (measured on 6.18). So a loop embedded in another main loop does not defer.
 */
#define DEFERRING 2 /* number of entries that defer */

static const unsigned task_work[] = {
    IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG,
    IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
    IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG,
    IORING_SETUP_COOP_TASKRUN,
    0,
};

static int setup_with_less(weir__uring *self, unsigned submissions)
{
    size_t first = self->io.options.is_embedded ? DEFERRING : 0;
    int err = -EINVAL;

    for (size_t i = first; i < sizeof(task_work) / sizeof(task_work[0]) && err == -EINVAL; i++) {
        struct io_uring_params params = {
            .flags = IORING_SETUP_R_DISABLED | IORING_SETUP_CLAMP | IORING_SETUP_SUBMIT_ALL |
                     IORING_SETUP_CQSIZE | task_work[i],
            .cq_entries = submissions * COMPLETIONS_PER_SUBMISSION,
        };

        memset(&self->ring, 0, sizeof(self->ring));
        err = weir__uring_system.setup(submissions, &self->ring, &params);
    }
    return err;
}

/* ---- refusals ---- */

static void explain_not_permitted(const char *call, char *reason, size_t size)
{
    switch (weir__uring_system.disabled()) {
    case 2:
        snprintf(reason, size,
                 "io_uring is disabled for all users: " DISABLED_FILE " is 2 (0 allows it)");
        break;
    case 1:
        snprintf(reason, size,
                 "io_uring is disabled for this user: " DISABLED_FILE
                 " is 1 (0 allows it, or membership of kernel.io_uring_group)");
        break;
    default:
        snprintf(reason, size,
                 "%s is not permitted: a seccomp filter, as containers have, or a "
                 "security module refuses it (allow the io_uring_* system calls)",
                 call);
    }
}

static void explain_no_memory(char *reason, size_t size)
{
    struct rlimit limit;
    const char *advice = "raise it (ulimit -l) or free memory";

    if (getrlimit(RLIMIT_MEMLOCK, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
        snprintf(reason, size, "no memory for io_uring");
    else
        snprintf(reason, size, "no memory for io_uring: the limit of locked memory is %llu KiB; %s",
                 (unsigned long long)limit.rlim_cur / 1024, advice);
}

void weir__uring_explain(const char *call, int err, char *reason, size_t size)
{
    switch (err) {
    case -ENOSYS:
        snprintf(reason, size, "this kernel has no %s, or a sandbox hides it (CONFIG_IO_URING)",
                 call);
        break;
    case -EPERM:
    case -EACCES:
        explain_not_permitted(call, reason, size);
        break;
    case -ENOMEM:
        explain_no_memory(reason, size);
        break;
    case -EMFILE:
    case -ENFILE:
        snprintf(reason, size,
                 "no descriptor for io_uring: %s (raise the limit: "
                 "ulimit -n, or fs.file-max)",
                 weir_error_text(err));
        break;
    default:
        snprintf(reason, size, "%s failed: %s", call, weir_error_text(err));
    }
}

/* Older kernels have rings without these features, or with early bugs. */
static int check_kernel(char *reason, size_t size)
{
    struct utsname kernel;
    unsigned major;
    unsigned minor;

    if (weir__uring_system.uname(&kernel) < 0 ||
        sscanf(kernel.release, "%u.%u", &major, &minor) != 2)
        return 0; /* let the setup decide */
    if (major > KERNEL_MAJOR || (major == KERNEL_MAJOR && minor >= KERNEL_MINOR))
        return 0;
    snprintf(reason, size, "io_uring needs Linux %d.%d or newer, this is %s", KERNEL_MAJOR,
             KERNEL_MINOR, kernel.release);
    return -ENOTSUP;
}

/* ---- the ring ---- */

static int setup(weir__uring *self, unsigned submissions, char *reason, size_t size)
{
    int err = check_kernel(reason, size);

    if (err < 0)
        return err;
    err = setup_with_less(self, submissions);
    if (err < 0) {
        weir__uring_explain("io_uring_setup", err, reason, size);
        return err;
    }
    self->is_open = true;
    self->counted = 0;
    self->enter_flags =
        (self->ring.features & IORING_FEAT_NO_IOWAIT) != 0 ? IORING_ENTER_NO_IOWAIT : 0;
    return 0;
}

int weir__uring_setup(weir__uring *self, char *reason, size_t size)
{
    return setup(self, SUBMISSIONS, reason, size);
}

int weir__uring_setup_small(weir__uring *self, char *reason, size_t size)
{
    return setup(self, 1, reason, size);
}

void weir__uring_features(const weir__uring *self, char *text, size_t size)
{
    static const struct {
        const char *name;
        unsigned flag;
    } flags[] = {
        {"single-issuer", IORING_SETUP_SINGLE_ISSUER},
        {"defer-taskrun", IORING_SETUP_DEFER_TASKRUN},
        {"coop-taskrun", IORING_SETUP_COOP_TASKRUN},
        {"taskrun-flag", IORING_SETUP_TASKRUN_FLAG},
    };
    size_t length = (size_t)snprintf(text, size, "sq %u cq %u", self->ring.sq.ring_entries,
                                     self->ring.cq.ring_entries);

    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]) && length < size; i++) {
        if ((self->ring.flags & flags[i].flag) != 0)
            length += (size_t)snprintf(text + length, size - length, " %s", flags[i].name);
    }
    if ((self->ring.features & IORING_FEAT_NO_IOWAIT) != 0 && length < size)
        snprintf(text + length, size - length, " no-iowait");
}
