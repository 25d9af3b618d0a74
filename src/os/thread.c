/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads and their exit hooks.
 *
 * The exit hooks of a thread are a list, last added first, stored in a weir_local: so they run when
 * any thread ends. local.c removes that variable after all others.
 */
#include "os/thread.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/local.h"
#include "base/memory.h"
#include "os/clock.h"
#include "os/system.h"
#include "os/virtual_os.h"

#define NAME_SIZE 16 /* limit of the kernel, including the NUL */

/* How much later the kernel may end a sleep to save wake-ups; the default is 50 us. */
#define TIMER_SLACK_NS 1000

/* The affinity of a thread before it was pinned. Threads that it starts do not inherit the pinning.
 */
struct cpus {
    bool pinned;
    cpu_set_t before;
};

static _Thread_local struct cpus own_cpus;

static weir__once barriers_once = WEIR__ONCE_INIT;
static bool has_barriers;

struct start {
    weir_thread_fn *fn;
    void *arg;
    char name[NAME_SIZE];
    struct cpus maker;
};

static void *thread_main(void *arg)
{
    struct start start = *(struct start *)arg;

    weir__free(arg);
    (void)pthread_setname_np(pthread_self(), start.name);
    (void)prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS, 0, 0, 0);
    if (start.maker.pinned)
        (void)sched_setaffinity(0, sizeof(start.maker.before), &start.maker.before);
    start.fn(start.arg);
    return NULL;
}

/* A thread inherits the signal mask of its creator, so its signals are blocked from the start. */
static int create_with_signals_blocked(pthread_t *ret_handle, struct start *start)
{
    sigset_t all, before;
    int err;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    err = pthread_create(ret_handle, NULL, thread_main, start);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -err;
}

int weir__thread_start(const char *name, weir_thread_fn *fn, void *arg, weir__thread *ret_thread)
{
    struct start *start;
    pthread_t handle;
    int err;

    if (weir__os_is_virtual())
        return weir__virtual_os_set->thread_start(name, fn, arg, &ret_thread->virtual_handle);
    start = weir__zalloc(sizeof(*start));
    if (start == NULL)
        return -ENOMEM;
    start->fn = fn;
    start->arg = arg;
    start->maker = own_cpus;
    memcpy(start->name, name, strnlen(name, NAME_SIZE - 1));

    err = create_with_signals_blocked(&handle, start);
    if (err < 0) {
        weir__free(start);
        return err;
    }
    ret_thread->handle = handle;
    ret_thread->virtual_handle = 0;
    return 0;
}

void weir__thread_join(weir__thread *thread)
{
    int err;

    if (thread->virtual_handle != 0) {
        if (weir__os_is_virtual())
            weir__virtual_os_set->thread_join(thread->virtual_handle);
        return;
    }
    err = pthread_join(thread->handle, NULL);
    assert(err == 0);
    (void)err;
}

void weir__thread_detach(weir__thread *thread)
{
    int err;

    if (thread->virtual_handle != 0) {
        if (weir__os_is_virtual())
            weir__virtual_os_set->thread_detach(thread->virtual_handle);
        return;
    }
    err = pthread_detach(thread->handle);
    assert(err == 0);
    (void)err;
}

bool weir__thread_is_current(const weir__thread *thread)
{
    if (weir__os_is_virtual())
        return thread->virtual_handle == weir__virtual_os_set->thread_current();
    return pthread_equal(thread->handle, pthread_self()) != 0;
}

pid_t weir__thread_id(void)
{
    return weir__os_is_virtual() ? (pid_t)weir__virtual_os_set->thread_current() : gettid();
}

clockid_t weir__thread_cpu_clock(void)
{
    clockid_t clock = CLOCK_THREAD_CPUTIME_ID;

    if (weir__os_is_virtual())
        return clock;
    (void)pthread_getcpuclockid(pthread_self(), &clock); /* cannot fail for the calling thread */
    return clock;
}

int64_t weir__thread_cpu_time(clockid_t clock)
{
    struct timespec time = {0};

    (void)clock_gettime(clock, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* Reads the beginning of a file of a thread in /proc; "" = there is none. */
static void read_thread_file(pid_t id, const char *name, char *text, size_t size)
{
    char path[64];
    ssize_t length;
    int file;

    text[0] = '\0';
    (void)snprintf(path, sizeof(path), "/proc/self/task/%d/%s", (int)id, name);
    file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return;
    length = pread(file, text, size - 1, 0);
    text[length > 0 ? length : 0] = '\0';
    (void)weir__sys.close(file);
}

/* The second of three numbers: time on the CPU, time waiting for it, timeslices. */
int64_t weir__thread_run_delay(pid_t id)
{
    unsigned long long delay_ns = 0;
    char text[96];

    read_thread_file(id, "schedstat", text, sizeof(text));
    return sscanf(text, "%*u %llu", &delay_ns) == 1 ? (int64_t)delay_ns : 0;
}

/* "id (name) state ...": the name may contain parentheses, and is short. */
bool weir__thread_is_runnable(pid_t id)
{
    char text[96];
    const char *end;

    read_thread_file(id, "stat", text, sizeof(text));
    end = strrchr(text, ')');
    return end != NULL && strncmp(end, ") R", 3) == 0;
}

int weir__thread_signal(pid_t id, int signal)
{
    return syscall(SYS_tgkill, getpid(), id, signal) < 0 ? -errno : 0;
}

void weir__thread_block_signal(int signal, bool blocked)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, signal);
    (void)pthread_sigmask(blocked ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

static unsigned allowed_cpus(cpu_set_t *ret_set)
{
    if (own_cpus.pinned) {
        *ret_set = own_cpus.before;
    } else if (sched_getaffinity(0, sizeof(*ret_set), ret_set) < 0) {
        CPU_ZERO(ret_set);
        CPU_SET(0, ret_set);
    }
    return (unsigned)CPU_COUNT(ret_set);
}

void weir__thread_name(char *ret_name, size_t size)
{
    char name[NAME_SIZE] = "";

    if (weir__os_is_virtual()) {
        (void)snprintf(ret_name, size, "%s", weir__virtual_os_set->thread_name());
        return;
    }
    (void)pthread_getname_np(pthread_self(), name,
                             sizeof(name)); /* cannot fail for the calling thread */
    (void)snprintf(ret_name, size, "%s", name);
}

int weir__thread_set_affinity(int cpu)
{
    struct cpus cpus = {.pinned = true};
    cpu_set_t set;

    if (cpu < 0 || cpu >= CPU_SETSIZE)
        return -EINVAL;
    if (weir__os_is_virtual())
        return 0;
    (void)allowed_cpus(&cpus.before);
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof(set), &set) < 0)
        return -errno;
    own_cpus = cpus;
    return 0;
}

static void register_barriers(void)
{
    has_barriers = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

bool weir__thread_barrier_others(void)
{
    if (weir__os_is_virtual())
        return true; /* all of them are one thread */
    weir__once_run(&barriers_once, register_barriers);
    return has_barriers && syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

void weir__thread_yield(void)
{
    if (weir__os_is_virtual())
        weir__virtual_os_set->thread_yield();
    else
        (void)sched_yield();
}

void weir__thread_sleep(int64_t duration_ns)
{
    int64_t now_ns = weir__monotonic_now();
    int64_t end_ns = duration_ns > WEIR_NEVER - now_ns ? WEIR_NEVER : now_ns + duration_ns;
    struct timespec end = {
        .tv_sec = (time_t)(end_ns / 1000000000),
        .tv_nsec = (long)(end_ns % 1000000000),
    };

    if (duration_ns <= 0)
        return;
    if (weir__os_is_virtual()) {
        weir__virtual_os_set->thread_sleep(duration_ns);
        return;
    }
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) == EINTR)
        continue;
}

/* The number of CPUs that the calling thread may use; 1 if the kernel does not report them. */
unsigned weir__cpu_count(void)
{
    cpu_set_t set;

    return weir__os_is_virtual() ? 2 : allowed_cpus(&set);
}

int weir__cpu_nth(unsigned index)
{
    cpu_set_t set;
    unsigned left = index % allowed_cpus(&set);
    int cpu = 0;

    if (weir__os_is_virtual())
        return 0;
    while (!CPU_ISSET(cpu, &set) || left-- > 0)
        cpu++;
    return cpu;
}

int weir__cpu_current(void)
{
    return weir__os_is_virtual() ? -1 : sched_getcpu();
}

void weir__once_run(weir__once *once, void (*fn)(void))
{
    (void)pthread_once(&once->handle, fn);
}

struct exit_hook {
    weir_thread_fn *fn;
    void *arg;
    struct exit_hook *next;
};

static void run_exit_hooks(void *value)
{
    struct exit_hook *hook = value;

    while (hook != NULL) {
        struct exit_hook *next = hook->next;

        hook->fn(hook->arg);
        weir__free(hook);
        hook = next;
    }
}

static const weir_local exit_hooks = {
    .index = WEIR__LOCAL_EXIT_HOOKS,
    .on_remove = run_exit_hooks,
};

int weir_thread_on_exit(weir_thread_fn *fn, void *arg)
{
    struct exit_hook *hook;
    int err;

    if (fn == NULL)
        return -EINVAL;
    hook = weir__alloc(sizeof(*hook));
    if (hook == NULL)
        return -ENOMEM;
    *hook = (struct exit_hook){.fn = fn, .arg = arg, .next = weir_local_get(&exit_hooks)};

    err = weir_local_set(&exit_hooks, hook);
    if (err < 0)
        weir__free(hook);
    return err;
}
