/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replacing the process: the new one is started on the caller's thread, so that what keeps it from
 * starting is told at once; all else happens on the loop of the first listener.
 *
 *      begin -> on_notified, READY=1 -> on_probation_over ----> complete
 *        |        on_exited (it has ended by itself) -----------^
 *        `-> on_time_up -> SIGTERM, SIGKILL -> on_exited -------'
 *
 * Both processes accept until the end of the probation. Nothing is handed over before: the files of
 * Unix sockets stay ours, and the manager hears of no other main process. So a new process that
 * ends in that time leaves this one as it was.
 *
 * The task, the child and the watch over the socket have a reference each, until their last word.
 */
#include <weir/restart.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <weir/error.h>
#include <weir/timer.h>
#include <weir/transport.h>
#include <weir/watch.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/options.h"
#include "bootstrap/notify_socket.h"
#include "bootstrap/server.h"
#include "bootstrap/transport_for.h"
#include "executor/executor.h"
#include "os/clock.h"
#include "os/descriptor.h"
#include "os/environment.h"

#define READY_TIMEOUT_NS weir_seconds(60)
#define PROBATION_NS weir_seconds(5)
#define END_PATIENCE_NS weir_seconds(5)
#define STOPPED "the server was stopped before the new process had taken over, which was ended, too"

struct restart {
    weir__refs refs;
    weir_server *server; /* kept, as are the next three */
    weir_promise *done;
    weir_executor *loop;
    weir_child *child;
    weir_fd_watch *watch; /* over the socket where it says that it is ready */
    weir_task begin;
    int64_t timeout_ns;
    int64_t probation_ns; /* 0 = none */

    /* The loop's. */
    weir_timer timer;
    bool has_begun; /* the child is known here */
    bool is_ready;
    int64_t ready_at_ns; /* by the loop's clock */
    bool is_over;
    int given_up; /* why it is being ended; 0 = it is not */
};

static void drop(struct restart *restart)
{
    if (!weir__refs_release(&restart->refs))
        return;
    weir_fd_watch_release(restart->watch);
    weir_child_release(restart->child);
    weir_promise_release(restart->done);
    weir__executor_weak_release(restart->loop);
    weir_server_release(restart->server);
    weir__free(restart);
}

/* ---- the end, on the loop ---- */

/* What a manager hears, if there is one: a service that is about to change, its new process when
 * that is ready, or that it goes on. */
static void tell_of_restart(void)
{
    char text[64];

    (void)snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%lld",
                   (long long)(weir__monotonic_now() / weir_us(1)));
    (void)weir_systemd_notify(text); /* the log says if it could not be told, as below */
}

static void tell_of_end(struct restart *restart, int err)
{
    char text[64] = "READY=1";

    if (err == 0)
        (void)snprintf(text, sizeof(text), "MAINPID=%d\nREADY=1", weir_child_pid(restart->child));
    if (err != WEIR_ECANCELED)
        (void)weir_systemd_notify(text);
}

/* Files of Unix sockets are the new process's from now on. */
static void leave_files(weir_server *server)
{
    for (size_t i = 0; i < server->count; i++)
        (void)weir_unix_disable_unlink(server->listeners[i].channel);
}

static void release_child(void *child)
{
    weir_child_release(child);
}

static void succeed(struct restart *restart)
{
    weir__info("restart", "-", "process %d has taken over", weir_child_pid(restart->child));
    if (restart->done != NULL)
        (void)weir_promise_succeed_with(restart->done, weir_child_retain(restart->child),
                                        release_child);
}

static void fail(struct restart *restart, int err, const char *detail)
{
    weir__warn("restart", "-", "this process goes on: %s", detail);
    if (restart->done != NULL)
        (void)weir_promise_fail(restart->done, err, detail);
}

static void complete(struct restart *restart, int err, const char *detail)
{
    restart->is_over = true;
    (void)weir_timer_stop(&restart->timer);
    weir_fd_watch_close(restart->watch);
    tell_of_end(restart, err); /* before another one may begin */
    atomic_store_explicit(&restart->server->is_restarting, false, memory_order_release);
    if (err == 0)
        succeed(restart);
    else
        fail(restart, err, detail);
}

/* ---- what happens, on the loop ---- */

static void on_time_up(weir_timer *timer)
{
    struct restart *restart = WEIR_CONTAINER_OF(timer, struct restart, timer);

    (void)weir_child_signal(restart->child, SIGKILL);
}

/* It has perhaps accepted clients: it may serve them to the end. */
static void end_child(struct restart *restart)
{
    (void)weir_child_signal(restart->child, SIGTERM);
    (void)weir_timer_stop(&restart->timer);
    (void)weir_timer_start(restart->loop, &restart->timer, END_PATIENCE_NS, on_time_up);
}

static void give_up(struct restart *restart, int err)
{
    if (restart->is_over || restart->given_up != 0)
        return;
    restart->given_up = err;
    if (restart->has_begun)
        end_child(restart);
}

static void on_not_ready(weir_timer *timer)
{
    give_up(WEIR_CONTAINER_OF(timer, struct restart, timer), -ETIMEDOUT);
}

/*
 * Whether the server may be replaced: from now on its files are the new process's. Who stops it
 * changes what is changed here, too, and so is either seen or sees that the files are to be left.
 */
static bool hand_over(weir_server *server)
{
    bool is_stopping = false;

    leave_files(server);
    return atomic_compare_exchange_strong_explicit(&server->is_stopping, &is_stopping, false,
                                                   memory_order_acq_rel, memory_order_acquire) &&
           weir_channel_is_open(server->listeners[0].channel);
}

/* A server that was told to stop does not go on in another process. */
static void replace_server(struct restart *restart)
{
    if (restart->is_over || restart->given_up != 0)
        return;
    if (!hand_over(restart->server)) {
        give_up(restart, WEIR_ECANCELED);
        return;
    }
    atomic_store_explicit(&restart->server->is_replaced, true, memory_order_relaxed);
    complete(restart, 0, NULL);
}

static void on_probation_over(weir_timer *timer)
{
    replace_server(WEIR_CONTAINER_OF(timer, struct restart, timer));
}

static void on_ready(struct restart *restart)
{
    if (restart->is_over || restart->given_up != 0 || restart->is_ready)
        return;
    restart->is_ready = true;
    restart->ready_at_ns = weir__executor_now(restart->loop);
    weir_fd_watch_close(restart->watch);
    weir__info("restart", "-", "process %d is ready; probation: %lld ms",
               weir_child_pid(restart->child), (long long)(restart->probation_ns / weir_ms(1)));
    if (restart->probation_ns == 0)
        replace_server(restart);
    else /* fails only if the loop has shut down; on_exited hears of that */
        (void)weir_timer_start(restart->loop, &restart->timer, restart->probation_ns,
                               on_probation_over);
}

static void on_notified(weir_fd_watch *watch, uint32_t events, void *user_data)
{
    struct restart *restart = user_data;

    (void)events;
    if (weir__notify_socket_read(weir_fd_watch_descriptor(watch), weir_child_pid(restart->child)))
        on_ready(restart);
}

static void on_deaf(weir_fd_watch *watch, int err, void *user_data)
{
    struct restart *restart = user_data;

    (void)watch;
    if (err < 0 && err != WEIR_ECANCELED && !restart->is_ready)
        give_up(restart, err);
    drop(restart);
}

static void explain_exit(const struct restart *restart, const weir_child_exit *exit,
                         char *ret_detail, size_t size)
{
    bool was_killed = exit->signal != 0;
    char when[64] = "before it was ready";

    if (restart->is_ready)
        (void)snprintf(
            when, sizeof(when), "%lld ms after it was ready",
            (long long)((weir__executor_now(restart->loop) - restart->ready_at_ns) / weir_ms(1)));
    (void)snprintf(ret_detail, size, "the new process %s %d %s",
                   was_killed ? "was killed by signal" : "has ended with status",
                   was_killed ? exit->signal : exit->status, when);
}

static void explain(const struct restart *restart, const weir_child_exit *exit, char *ret_detail,
                    size_t size)
{
    if (restart->given_up == WEIR_ECANCELED)
        (void)snprintf(ret_detail, size, STOPPED);
    else if (restart->given_up == -ETIMEDOUT)
        (void)snprintf(ret_detail, size, "the new process was not ready in time, and was ended");
    else if (restart->given_up < 0)
        (void)snprintf(ret_detail, size, "the new process cannot be heard, and was ended: %s",
                       weir_error_text(restart->given_up));
    else
        explain_exit(restart, exit, ret_detail, size);
}

/* A server that is being stopped takes the one with it that was to replace it; but one that was
 * told to end already is not told again, which would have it leave its clients. */
static void on_exited(weir_child *child, const weir_child_exit *exit, void *user_data)
{
    struct restart *restart = user_data;
    char detail[160];

    if (!restart->is_over && exit->err == WEIR_ECANCELED) {
        if (restart->given_up == 0)
            (void)weir_child_signal(child, SIGTERM);
        complete(restart, WEIR_ECANCELED, STOPPED);
    } else if (!restart->is_over) {
        explain(restart, exit, detail, sizeof(detail));
        complete(restart, restart->given_up < 0 ? restart->given_up : -ECHILD, detail);
    }
    drop(restart);
}

static void on_begin(void *arg, int status)
{
    struct restart *restart = arg;

    restart->has_begun = true;
    if (status == 0 && !restart->is_over && restart->given_up != 0) {
        end_child(restart);
    } else if (status == 0 && !restart->is_over) {
        (void)weir_fd_watch_set_events(restart->watch, WEIR_FD_READABLE);
        (void)weir_timer_start(restart->loop, &restart->timer, restart->timeout_ns, on_not_ready);
    }
    drop(restart);
}

/* ---- starting ---- */

static int watch_socket(struct restart *restart, char *ret_entry, size_t size)
{
    int descriptor, err = weir__notify_socket_open(&descriptor, ret_entry, size);

    if (err < 0)
        return err;
    weir__refs_retain(&restart->refs);
    err =
        weir_fd_watch_create(restart->loop, descriptor,
                             WEIR_FD_WATCH_OPTIONS(.ready = on_notified, .closed = on_deaf,
                                                   .user_data = restart, .close_descriptor = true),
                             &restart->watch);
    if (err < 0)
        drop(restart);
    return err;
}

static void close_all(const int *descriptors, size_t count)
{
    for (size_t i = 0; i < count; i++)
        (void)weir__descriptor_close(descriptors[i]);
}

static int duplicate_all(weir_server *server, int *ret_descriptors)
{
    for (size_t i = 0; i < server->count; i++) {
        int err =
            weir_channel_duplicate_descriptor(server->listeners[i].channel, &ret_descriptors[i]);

        if (err < 0) {
            close_all(ret_descriptors, i);
            return err;
        }
    }
    return 0;
}

static int set_manager(weir__environment *env)
{
    const char *manager = weir__environment_get("NOTIFY_SOCKET");
    char entry[sizeof(WEIR__NOTIFY_MANAGER) + WEIR_ADDRESS_TEXT_SIZE];

    (void)snprintf(entry, sizeof(entry), WEIR__NOTIFY_MANAGER "=%s",
                   manager != NULL ? manager : "");
    return weir__environment_set(env, entry);
}

/* The environment as it will be: where it is ready is told last, so that nobody says otherwise. */
static int spawn_in(struct restart *restart, const weir_restart_options *options,
                    const int *descriptors, const char *entry)
{
    char *const *extra = options->extra_env;
    weir__environment env;
    int err = weir__environment_init(&env, NULL);

    if (err < 0)
        return err;
    for (; extra != NULL && *extra != NULL && err == 0; extra++)
        err = weir__environment_set(&env, *extra);
    weir__environment_remove(&env, "WATCHDOG_PID");
    if (err == 0)
        err = set_manager(&env);
    if (err == 0)
        err = weir__environment_set(&env, entry);
    weir__refs_retain(&restart->refs);
    if (err == 0)
        err = weir_child_spawn(restart->loop,
                               WEIR_CHILD_OPTIONS(.argv = options->argv, .env = env.entries,
                                                  .descriptors = descriptors,
                                                  .descriptor_count = restart->server->count,
                                                  .export_listen_fds = true, .exited = on_exited,
                                                  .user_data = restart),
                               &restart->child);
    if (err < 0)
        drop(restart);
    weir__environment_deinit(&env);
    return err;
}

static int spawn(struct restart *restart, const weir_restart_options *options, const char *entry)
{
    size_t count = restart->server->count;
    int *descriptors = weir__alloc(count * sizeof(*descriptors));
    int err = descriptors != NULL ? duplicate_all(restart->server, descriptors) : -ENOMEM;

    if (err == 0) {
        err = spawn_in(restart, options, descriptors, entry);
        close_all(descriptors, count);
    }
    weir__free(descriptors);
    return err;
}

/* The loop may have ended just now; then both that wait for something have heard of it. */
static void begin(struct restart *restart)
{
    weir__refs_retain(&restart->refs);
    weir_task_init(&restart->begin, on_begin, restart);
    if (weir__executor_post(restart->loop, &restart->begin, WEIR__NOW) < 0)
        drop(restart);
}

static int start(struct restart *restart, const weir_restart_options *options)
{
    char entry[WEIR__NOTIFY_ENTRY_SIZE];
    int err = watch_socket(restart, entry, sizeof(entry));

    if (err < 0)
        return err;
    tell_of_restart(); /* first: the process may end at once, and then that is told */
    err = spawn(restart, options, entry);
    if (err < 0) {
        weir_fd_watch_close(restart->watch);
        tell_of_end(restart, err);
    } else {
        begin(restart);
    }
    return err;
}

static int64_t probation_of(const weir_server *server, const weir_restart_options *options)
{
    int64_t given_ns =
        options->probation_ns != 0 ? options->probation_ns : server->restart_probation_ns;

    if (given_ns == 0)
        return PROBATION_NS;
    return given_ns == WEIR_OFF ? 0 : given_ns;
}

/* NULL = no memory. */
static struct restart *make(weir_server *server, weir_executor *loop,
                            const weir_restart_options *options, weir_promise *done)
{
    struct restart *restart = weir__zalloc(sizeof(*restart));

    if (restart == NULL)
        return NULL;
    weir__refs_init(&restart->refs);
    weir__executor_weak_retain(loop);
    restart->server = weir_server_retain(server);
    restart->loop = loop;
    restart->timeout_ns =
        options->ready_timeout_ns > 0 ? options->ready_timeout_ns : READY_TIMEOUT_NS;
    restart->probation_ns = probation_of(server, options);
    restart->done = done != NULL ? weir_promise_retain(done) : NULL;
    weir_timer_init(&restart->timer);
    return restart;
}

static int read_options(const weir_server *server, const weir_restart_options *given,
                        weir_restart_options *ret_options)
{
    int err = weir__options_read(ret_options, sizeof(*ret_options), given);

    if (err < 0)
        return err;
    if (ret_options->argv == NULL)
        ret_options->argv = server->restart_argv;
    if (ret_options->argv == NULL)
        return weir__options_reject("restart", NULL, "there is no program: argv, or restart_argv");
    return weir__options_check("restart", NULL, WEIR__OPTION_FROM(ret_options, ready_timeout_ns, 0),
                               WEIR__OPTION_FROM(ret_options, probation_ns, WEIR_OFF));
}

static int check(weir_server *server)
{
    if (!weir__server_has(server, WEIR__SERVER_STARTED))
        return weir__options_reject("restart", NULL, "the server does not listen yet");
    return weir_channel_is_open(server->listeners[0].channel) ? 0 : WEIR_ECLOSED;
}

static int restart_server(weir_server *server, const weir_restart_options *options,
                          weir_promise *done)
{
    struct restart *restart;
    int err = check(server);

    if (err < 0)
        return err;
    restart = make(server, weir_channel_executor(server->listeners[0].channel), options, done);
    if (restart == NULL)
        return -ENOMEM;
    err = start(restart, options);
    drop(restart);
    return err;
}

int weir_server_restart(weir_server *server, const weir_restart_options *given, weir_promise *done)
{
    weir_restart_options options;
    int err = server != NULL ? read_options(server, given, &options) : -EINVAL;

    if (err < 0)
        return err;
    /* Acquire-release: who comes next sees what the one before has left. */
    if (atomic_exchange_explicit(&server->is_restarting, true, memory_order_acq_rel))
        return -EALREADY;
    err = restart_server(server, &options, done);
    if (err < 0)
        atomic_store_explicit(&server->is_restarting, false, memory_order_release);
    return err;
}
