/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replacing the process. The new one is spawned on the caller's thread, so that errors are returned
 * at once; everything else happens on the loop of the first listener.
 *
 *      begin -> on_notified, READY=1 -> on_probation_over ----> complete
 *        |                           `-> on_notified, replaced -^
 *        |        on_exited (the process exited) ---------------^
 *        `-> on_not_ready -> SIGTERM, SIGKILL -> on_exited -------'
 *
 * Both processes accept until the end of the probation. Nothing is handed over before: the files of
 * Unix sockets stay ours, and the manager is not sent another MAINPID. So a new process that exits
 * in that time leaves this one as it was.
 *
 * The task, the child and the watch of the socket hold a reference each until their last callback.
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
#define KILL_DELAY_NS weir_seconds(5)
#define STOPPED \
    "the server was stopped before the new process took over; the new one was ended, too"

struct restart {
    weir__refs refs;
    weir_server *server; /* owned, as are the next three */
    weir_promise *done;
    weir_executor *loop;
    weir_child *child;
    weir_fd_watch *watch; /* of the notification socket */
    weir_task begin;
    int64_t timeout_ns;
    int64_t probation_ns; /* 0 = none */

    /* On the loop. */
    weir_timer timer;
    bool has_begun; /* `child` is set */
    bool is_ready;
    int64_t ready_at_ns; /* by the loop's clock */
    bool is_over;
    int replaced_by; /* the process that has replaced the new one within its probation; 0 = none */
    int give_up_err; /* why the new process is being ended; 0 = it is not */
};

static void restart_release(struct restart *restart)
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

/* ---- completion, on the loop ---- */

/* Notifies the manager, if there is one, that a restart begins. */
static void notify_begin(void)
{
    char text[64];

    (void)snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%lld",
                   (long long)(weir__monotonic_now() / weir_us(1)));
    (void)weir_systemd_notify(text); /* logs its failures, as below */
}

/* Notifies it of the new main process, or that this one continues. */
static void notify_end(struct restart *restart, int err)
{
    char text[64] = "READY=1";

    if (err == 0)
        (void)snprintf(text, sizeof(text), "MAINPID=%d\nREADY=1",
                       restart->replaced_by != 0 ? restart->replaced_by
                                                 : weir_child_pid(restart->child));
    if (err != WEIR_ECANCELED)
        (void)weir_systemd_notify(text);
}

/* The files of Unix sockets belong to the new process from now on. */
static void disable_unlink(weir_server *server)
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
    weir__warn("restart", "-", "this process continues: %s", detail);
    if (restart->done != NULL)
        (void)weir_promise_fail(restart->done, err, detail);
}

static void complete(struct restart *restart, int err, const char *detail)
{
    restart->is_over = true;
    (void)weir_timer_stop(&restart->timer);
    weir_fd_watch_close(restart->watch);
    notify_end(restart, err); /* before another restart can begin */
    if (err == 0)
        weir__notify_predecessor(weir_child_pid(restart->child));
    atomic_store_explicit(&restart->server->is_restarting, false, memory_order_release);
    if (err == 0)
        succeed(restart);
    else
        fail(restart, err, detail);
}

/* ---- events, on the loop ---- */

static void on_kill_delay(weir_timer *timer)
{
    struct restart *restart = WEIR_CONTAINER_OF(timer, struct restart, timer);

    (void)weir_child_signal(restart->child, SIGKILL);
}

/* SIGTERM, so that it can finish the connections that it has accepted; then SIGKILL. */
static void end_child(struct restart *restart)
{
    (void)weir_child_signal(restart->child, SIGTERM);
    (void)weir_timer_stop(&restart->timer);
    (void)weir_timer_start(restart->loop, &restart->timer, KILL_DELAY_NS, on_kill_delay);
}

static void give_up(struct restart *restart, int err)
{
    if (restart->is_over || restart->give_up_err != 0)
        return;
    restart->give_up_err = err;
    if (restart->has_begun)
        end_child(restart);
}

static void on_not_ready(weir_timer *timer)
{
    give_up(WEIR_CONTAINER_OF(timer, struct restart, timer), -ETIMEDOUT);
}

/*
 * Leaves the files to the new process; false if the server is being stopped. weir_server_stop
 * exchanges the same flag: so either it is seen here, or it sees that the files are left alone. A
 * stop that has begun before this call removes the files; one that begins during it may leave them,
 * stale.
 */
static bool hand_over(weir_server *server)
{
    bool is_stopping = atomic_load_explicit(&server->is_stopping, memory_order_acquire);

    if (is_stopping || !weir_channel_is_open(server->listeners[0].channel))
        return false;
    disable_unlink(server);
    return atomic_compare_exchange_strong_explicit(&server->is_stopping, &is_stopping, false,
                                                   memory_order_acq_rel, memory_order_acquire) &&
           weir_channel_is_open(server->listeners[0].channel);
}

/* A server that is being stopped is not continued in another process. */
static void replace_server(struct restart *restart)
{
    if (restart->is_over || restart->give_up_err != 0)
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
    if (restart->is_over || restart->give_up_err != 0 || restart->is_ready)
        return;
    restart->is_ready = true;
    restart->ready_at_ns = weir__executor_now(restart->loop);
    weir__info("restart", "-", "process %d is ready; probation: %lld ms",
               weir_child_pid(restart->child), (long long)(restart->probation_ns / weir_ms(1)));
    if (restart->probation_ns == 0)
        replace_server(restart);
    else /* fails only if the loop has shut down: on_exited follows */
        (void)weir_timer_start(restart->loop, &restart->timer, restart->probation_ns,
                               on_probation_over);
}

static weir__notified read_notifications(const struct restart *restart)
{
    return weir__notify_socket_read(weir_fd_watch_descriptor(restart->watch),
                                    weir_child_pid(restart->child));
}

/* The new process was replaced itself, after the probation of a third one: that counts for this
 * one, too, which would else take the end of the new process for a failure. */
static void on_replaced(struct restart *restart, int pid)
{
    restart->replaced_by = pid;
    replace_server(restart);
}

static void on_notified(weir_fd_watch *watch, uint32_t events, void *user_data)
{
    struct restart *restart = user_data;
    weir__notified notified = read_notifications(restart);

    (void)watch;
    (void)events;
    if (notified.is_ready)
        on_ready(restart);
    if (notified.replaced_by != 0)
        on_replaced(restart, notified.replaced_by);
}

static void on_watch_closed(weir_fd_watch *watch, int err, void *user_data)
{
    struct restart *restart = user_data;

    (void)watch;
    if (err < 0 && err != WEIR_ECANCELED && !restart->is_ready)
        give_up(restart, err);
    restart_release(restart);
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
                   was_killed ? "was killed by signal" : "exited with status",
                   was_killed ? exit->signal : exit->status, when);
}

static void explain(const struct restart *restart, const weir_child_exit *exit, char *ret_detail,
                    size_t size)
{
    if (restart->give_up_err == WEIR_ECANCELED)
        (void)snprintf(ret_detail, size, STOPPED);
    else if (restart->give_up_err == -ETIMEDOUT)
        (void)snprintf(ret_detail, size, "the new process was not ready in time and was ended");
    else if (restart->give_up_err < 0)
        (void)snprintf(ret_detail, size,
                       "no notifications from the new process, which was ended: %s",
                       weir_error_text(restart->give_up_err));
    else
        explain_exit(restart, exit, ret_detail, size);
}

/* A server that is stopped ends the new process, too; with one SIGTERM only, since a second one
 * would make it abort its connections. */
static void on_look(void *server, int status)
{
    if (status == 0)
        weir__server_look(server);
    weir_server_release(server);
}

/*
 * A process that was killed may have taken the wake-up of a connection. A ring of it takes more of
 * them until the kernel has freed it, which it does later.
 */
static void look_after_exit(struct restart *restart)
{
    const int64_t delays_ns[] = {0, weir_ms(10), weir_ms(100), weir_seconds(1)};

    for (size_t i = 0; i < sizeof(delays_ns) / sizeof(delays_ns[0]); i++)
        if (weir_schedule(restart->loop, delays_ns[i], on_look, weir_server_retain(restart->server),
                          NULL) < 0)
            weir_server_release(restart->server);
}

static void on_exited(weir_child *child, const weir_child_exit *exit, void *user_data)
{
    struct restart *restart = user_data;
    char detail[160];
    int replaced_by = 0;

    if (restart->has_begun && !restart->is_over && exit->err == 0) /* its last words may wait */
        replaced_by = read_notifications(restart).replaced_by;
    if (replaced_by != 0)
        on_replaced(restart, replaced_by);
    if (!restart->is_over && exit->err == WEIR_ECANCELED) {
        if (restart->give_up_err == 0)
            (void)weir_child_signal(child, SIGTERM);
        complete(restart, WEIR_ECANCELED, STOPPED);
    } else if (!restart->is_over) {
        look_after_exit(restart);
        explain(restart, exit, detail, sizeof(detail));
        complete(restart, restart->give_up_err < 0 ? restart->give_up_err : -ECHILD, detail);
    }
    restart_release(restart);
}

static void on_begin(void *arg, int status)
{
    struct restart *restart = arg;

    restart->has_begun = true;
    if (status == 0 && !restart->is_over && restart->give_up_err != 0) {
        end_child(restart);
    } else if (status == 0 && !restart->is_over) {
        (void)weir_fd_watch_set_events(restart->watch, WEIR_FD_READABLE);
        (void)weir_timer_start(restart->loop, &restart->timer, restart->timeout_ns, on_not_ready);
    }
    restart_release(restart);
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
                             WEIR_FD_WATCH_OPTIONS(.ready = on_notified, .closed = on_watch_closed,
                                                   .user_data = restart, .close_descriptor = true),
                             &restart->watch);
    if (err < 0)
        restart_release(restart);
    return err;
}

static void close_all(const int *descriptors, size_t count)
{
    for (size_t i = 0; i < count; i++)
        (void)weir__descriptor_close(descriptors[i]);
}

static int duplicate_all(weir_server *server, int *ret_descriptors)
{
    for (size_t i = 0; i < server->own_count; i++) {
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

/* NOTIFY_SOCKET is set last, so that extra_env cannot override it. */
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
                                                  .descriptor_count = restart->server->own_count,
                                                  .export_listen_fds = true, .exited = on_exited,
                                                  .user_data = restart),
                               &restart->child);
    if (err < 0)
        restart_release(restart);
    weir__environment_deinit(&env);
    return err;
}

static int spawn(struct restart *restart, const weir_restart_options *options, const char *entry)
{
    size_t count = restart->server->own_count;
    int *descriptors = weir__alloc(count * sizeof(*descriptors));
    int err = descriptors != NULL ? duplicate_all(restart->server, descriptors) : -ENOMEM;

    if (err == 0) {
        err = spawn_in(restart, options, descriptors, entry);
        close_all(descriptors, count);
    }
    weir__free(descriptors);
    return err;
}

/* If the loop has just ended, the child and the watch have been notified of that. */
static void begin(struct restart *restart)
{
    weir__refs_retain(&restart->refs);
    weir_task_init(&restart->begin, on_begin, restart);
    if (weir__executor_post(restart->loop, &restart->begin, WEIR__NOW) < 0)
        restart_release(restart);
}

static int start(struct restart *restart, const weir_restart_options *options)
{
    char entry[WEIR__NOTIFY_ENTRY_SIZE];
    int err = watch_socket(restart, entry, sizeof(entry));

    if (err < 0)
        return err;
    notify_begin(); /* first: the new process may exit at once */
    err = spawn(restart, options, entry);
    if (err < 0) {
        weir_fd_watch_close(restart->watch);
        notify_end(restart, err);
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

/* NULL if out of memory. */
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
        return weir__options_reject("restart", NULL,
                                    ".argv or the server's .restart_argv is required");
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
    restart_release(restart);
    return err;
}

int weir_server_restart(weir_server *server, const weir_restart_options *given, weir_promise *done)
{
    weir_restart_options options;
    int err = server != NULL ? read_options(server, given, &options) : -EINVAL;

    if (err < 0)
        return err;
    /* Acquire-release: the next restart sees the state that the one before left. */
    if (atomic_exchange_explicit(&server->is_restarting, true, memory_order_acq_rel))
        return -EALREADY;
    err = restart_server(server, &options, done);
    if (err < 0)
        atomic_store_explicit(&server->is_restarting, false, memory_order_release);
    return err;
}
