/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process on a loop: watches its pidfd, which becomes readable when the process exits. The watch
 * is closed then, and its `closed` callback calls `exited`: so that is called once, however the
 * watch ends.
 */
#include <weir/watch.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include <weir/error.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/refcount.h"
#include "executor/executor.h"
#include "loop/loop.h"
#include "os/descriptor.h"
#include "os/environment.h"
#include "os/process.h"
#include "os/system.h"

#define STDIO_COUNT 3
#define DESCRIPTORS_MAX 1024

struct weir_child {
    weir__process process;
    weir_child_exited_fn *exited;
    void *user_data;
    bool has_ended; /* this and the next: used by the loop's thread */
    weir_child_exit exit;
    weir__refs refs; /* of the user and of the watch */
};

static void release(weir_child *child)
{
    if (!weir__refs_release(&child->refs))
        return;
    if (child->process.descriptor >= 0)
        (void)weir__descriptor_close(child->process.descriptor);
    weir__free(child);
}

/* ---- on the loop ---- */

static void record_exit(weir_child *child, const siginfo_t *info)
{
    bool by_itself = info->si_code == CLD_EXITED;

    child->exit.status = by_itself ? info->si_status : -1;
    child->exit.signal = by_itself ? 0 : info->si_status;
    child->exit.dumped_core = info->si_code == CLD_DUMPED;
}

/* waitid fails for a process that is not our child: only its exit is known. */
static void on_ready(weir_fd_watch *watch, uint32_t events, void *user_data)
{
    weir_child *child = user_data;
    siginfo_t info = {0};
    id_t id = (id_t)child->process.descriptor;

    (void)events;
    if (weir__sys.waitid(WEIR__P_PIDFD, id, &info, WEXITED | WNOHANG) < 0) {
        if (errno == EINTR)
            return; /* reported again */
        child->exit.err = -errno;
    } else if (info.si_pid == 0) {
        return;
    } else {
        record_exit(child, &info);
    }
    child->has_ended = true;
    weir_fd_watch_close(watch);
}

static void on_closed(weir_fd_watch *watch, int err, void *user_data)
{
    weir_child *child = user_data;

    (void)watch;
    if (!child->has_ended)
        child->exit.err = err;
    if (child->exited != NULL)
        child->exited(child, &child->exit, child->user_data);
    release(child);
}

/* ---- watching ---- */

static int check_loop(const weir_executor *loop)
{
    if (loop == NULL || weir__loop_io(loop) == NULL)
        return weir__options_reject("child", NULL, "the executor is not an event loop");
    return weir__executor_state(loop) >= WEIR_EXECUTOR_SHUTTING_DOWN ? WEIR_EREJECTED : 0;
}

static weir_child *create(weir_child_exited_fn *exited, void *user_data)
{
    weir_child *child = weir__zalloc(sizeof(*child));

    if (child == NULL)
        return NULL;
    weir__refs_init(&child->refs);
    child->process.descriptor = -1;
    child->exited = exited;
    child->user_data = user_data;
    child->exit.status = -1;
    return child;
}

static int watch_process(weir_executor *loop, weir_child *child)
{
    int err;

    weir__refs_retain(&child->refs); /* of the watch */
    err = weir_fd_watch_create(loop, child->process.descriptor,
                               WEIR_FD_WATCH_OPTIONS(.events = WEIR_FD_READABLE, .ready = on_ready,
                                                     .closed = on_closed, .user_data = child),
                               NULL);
    if (err < 0)
        release(child);
    return err;
}

static void return_child(weir_child *child, weir_child **ret_child)
{
    if (ret_child != NULL)
        *ret_child = child;
    else
        release(child);
}

int weir_child_watch(weir_executor *loop, int pid, weir_child_exited_fn *exited, void *user_data,
                     weir_child **ret_child)
{
    weir_child *child;
    int err = check_loop(loop);

    if (err < 0)
        return err;
    child = create(exited, user_data);
    if (child == NULL)
        return -ENOMEM;
    child->process.pid = pid;
    err = weir__process_open(pid, &child->process.descriptor);
    if (err == 0)
        err = watch_process(loop, child);
    if (err < 0)
        release(child);
    else
        return_child(child, ret_child);
    return err;
}

/* ---- starting ---- */

/* Arguments derived from the options. */
struct spawn_args {
    char *program;
    weir__environment env;
    int *descriptors;
};

/* The new process itself writes its pid over the digits. */
static int set_listen_fds(weir__environment *env, const weir_child_options *options)
{
    char entry[64];
    int err = weir__environment_set(env, "LISTEN_PID=0123456789");

    _Static_assert(sizeof("0123456789") > WEIR__PROCESS_DIGITS, "it has room");
    (void)snprintf(entry, sizeof(entry), "LISTEN_FDS=%zu", options->descriptor_count);
    if (err == 0)
        err = weir__environment_set(env, entry);
    return err;
}

static int set_listen_fd_names(weir__environment *env, const char *names)
{
    size_t size = sizeof("LISTEN_FDNAMES=") + strlen(names);
    char *entry = weir__alloc(size);
    int err;

    if (entry == NULL)
        return -ENOMEM;
    (void)snprintf(entry, size, "LISTEN_FDNAMES=%s", names);
    err = weir__environment_set(env, entry);
    weir__free(entry);
    return err;
}

/* Descriptors passed to this process are not passed on. */
static int prepare_env(weir__environment *env, const weir_child_options *options)
{
    char *const *entry = options->extra_env;
    int err = weir__environment_init(env, options->env);

    if (err < 0)
        return err;
    weir__environment_remove(env, "LISTEN_PID");
    weir__environment_remove(env, "LISTEN_FDS");
    weir__environment_remove(env, "LISTEN_FDNAMES");
    for (; entry != NULL && *entry != NULL && err == 0; entry++)
        err = weir__environment_set(env, *entry);
    if (err == 0 && options->export_listen_fds)
        err = set_listen_fds(env, options);
    if (err == 0 && options->listen_fd_names != NULL)
        err = set_listen_fd_names(env, options->listen_fd_names);
    return err;
}

static int prepare_descriptors(const weir_child_options *options, int **ret_descriptors)
{
    size_t count = STDIO_COUNT + options->descriptor_count;
    int *descriptors = weir__alloc(count * sizeof(*descriptors));

    if (descriptors == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        if (i < STDIO_COUNT)
            descriptors[i] = options->stdio[i] > 0 ? options->stdio[i] : -1;
        else
            descriptors[i] = options->descriptors[i - STDIO_COUNT];
    }
    *ret_descriptors = descriptors;
    return 0;
}

static int start(const weir_child_options *options, weir__process *ret_process)
{
    struct spawn_args args = {0};
    int err = weir__process_find(options->argv[0], &args.program);

    if (err == 0)
        err = prepare_env(&args.env, options);
    if (err == 0)
        err = prepare_descriptors(options, &args.descriptors);
    if (err == 0)
        err = weir__process_start(
            &(const weir__process_options){
                .program = args.program,
                .argv = options->argv,
                .env = args.env.entries,
                .pid_text = options->export_listen_fds
                                ? weir__environment_value(&args.env, "LISTEN_PID")
                                : NULL,
                .directory = options->directory,
                .descriptors = args.descriptors,
                .count = STDIO_COUNT + options->descriptor_count,
            },
            ret_process);
    weir__free(args.program);
    weir__environment_deinit(&args.env);
    weir__free(args.descriptors);
    return err;
}

static int read_options(const weir_child_options *given, weir_child_options *ret_options)
{
    int err = weir__options_read(ret_options, sizeof(*ret_options), given);

    if (err < 0)
        return err;
    if (ret_options->argv == NULL || ret_options->argv[0] == NULL)
        return weir__options_reject("child", NULL, ".argv names no program");
    err = weir__options_check("child", ret_options->argv[0],
                              WEIR__OPTION(ret_options, descriptor_count, 0, DESCRIPTORS_MAX));
    if (err < 0)
        return err;
    for (size_t i = 0; i < ret_options->descriptor_count; i++)
        if (ret_options->descriptors[i] < 0)
            return -EBADF;
    return 0;
}

/* A process that cannot be watched is killed. */
static int start_watched(weir_executor *loop, const weir_child_options *options, weir_child *child)
{
    int err = start(options, &child->process);

    if (err < 0) {
        weir__warn_limited(
            "child", options->argv[0], "cannot be started: %s%s", weir_error_text(err),
            err == -ENOSYS ? " (pidfd_open needs Linux 5.3, and a filter that allows it)" : "");
        return err;
    }
    err = watch_process(loop, child);
    if (err < 0)
        weir__process_kill(&child->process);
    return err;
}

int weir_child_spawn(weir_executor *loop, const weir_child_options *given, weir_child **ret_child)
{
    weir_child_options options;
    weir_child *child;
    int err = read_options(given, &options);

    if (err == 0)
        err = check_loop(loop);
    if (err < 0)
        return err;
    child = create(options.exited, options.user_data);
    if (child == NULL)
        return -ENOMEM;
    err = start_watched(loop, &options, child);
    if (err < 0)
        release(child);
    else
        return_child(child, ret_child);
    return err;
}

/* ---- accessors ---- */

int weir_child_pid(const weir_child *child)
{
    return child->process.pid;
}

int weir_child_signal(weir_child *child, int number)
{
    return weir__sys.pidfd_send_signal(child->process.descriptor, number) < 0 ? -errno : 0;
}

weir_child *weir_child_retain(weir_child *child)
{
    weir__refs_retain(&child->refs);
    return child;
}

void weir_child_release(weir_child *child)
{
    if (child != NULL)
        release(child);
}
