/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selects the backend of loops. AUTO is a fixed rule, not a measurement: io_uring if available,
 * otherwise epoll. The environment variable WEIR_IO overrides AUTO. A channel with its own thread
 * uses poll: one system call for one socket and the wake-up, and no further descriptor.
 */
#include "loop/loop.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/options.h"
#include "base/poison.h"
#include "loop/seams.h"
#include "os/environment.h"
#include "os/virtual_os.h"

#define REASON_SIZE 256

/* valgrind runs one thread at a time (3.19), and none while io_uring_enter waits. */
#define VALGRIND_HANGS "valgrind stops all threads while io_uring_enter waits"

#ifdef WEIR_WITH_URING
#define URING &weir__io_uring
#else
#define URING NULL
#endif

static const struct {
    const char *name;
    const weir__io_type *type; /* NULL = not built */
} backends[] = {
    [WEIR_IO_EPOLL] = {"epoll", &weir__io_epoll},
    [WEIR_IO_URING] = {"io_uring", URING},
    [WEIR_IO_POLL] = {"poll", &weir__io_poll},
    [WEIR_IO_BLOCKING] = {"poll with a thread per channel", &weir__io_poll},
};

static int validate(const char *name, const weir__loop_options *options)
{
    if (options->strategy_fn != NULL && options->strategy != WEIR_STRATEGY_SELECT)
        return weir__options_reject("loop", name,
                                    ".strategy and .strategy_fn are mutually exclusive");
    return weir__options_check(
        "loop", name, WEIR__OPTION(options, io, WEIR_IO_AUTO, WEIR_IO_BLOCKING),
        WEIR__OPTION(options, io_ratio, 0, 100),
        WEIR__OPTION(options, strategy, WEIR_STRATEGY_SELECT, WEIR_STRATEGY_ADAPTIVE),
        WEIR__OPTION_FROM(options, adaptive_limit_ns, 0),
        WEIR__OPTION_FROM(options, adaptive_credit_ns, 0));
}

static void set_defaults(weir__loop_options *options)
{
    if (options->io_ratio == 0)
        options->io_ratio = 50;
    if (options->adaptive_limit_ns == 0)
        options->adaptive_limit_ns = WEIR__ADAPTIVE_LIMIT_NS;
    if (options->adaptive_credit_ns == 0)
        options->adaptive_credit_ns = WEIR__ADAPTIVE_CREDIT_NS;
}

/* Only a refused backend leaves a reason. */
static int try_backend(weir__loop_options *options, enum weir_io io, weir__loop_make_fn *make,
                       void *arg)
{
    options->io = io;
    options->backend = weir__backend_set != NULL ? weir__backend_set(io) : backends[io].type;
    options->reason[0] = '\0';
    if (options->backend != NULL)
        return make(options, arg);
    (void)snprintf(options->reason, options->reason_size, "weir was built without liburing");
    return -ENOTSUP;
}

static int skip_uring(weir__loop_options *options)
{
    (void)snprintf(options->reason, options->reason_size, VALGRIND_HANGS);
    return -ENOTSUP;
}

/* Logs a warning once per process; only a note if it was expected. */
static void log_refusal(const char *name, const char *reason, bool is_expected)
{
    static atomic_bool of_process;
    atomic_bool *was_logged = weir__process_static(&of_process, sizeof(of_process));
    const char text[] = "io_uring is not available, epoll is used instead";

    if (is_expected)
        weir__info("loop", name, "%s: %s", text, reason);
    else if (!atomic_exchange(was_logged, true))
        weir__warn("loop", name, "%s: %s", text, reason);
}

static int make_automatically(const char *name, weir__loop_options *options,
                              weir__loop_make_fn *make, void *arg)
{
    bool under_valgrind = weir__runs_under_valgrind();
    int err = under_valgrind ? skip_uring(options) : try_backend(options, WEIR_IO_URING, make, arg);

    if (err == 0 || options->reason[0] == '\0')
        return err;
    log_refusal(name, options->reason, under_valgrind || backends[WEIR_IO_URING].type == NULL);
    return try_backend(options, WEIR_IO_EPOLL, make, arg);
}

/* Reads WEIR_IO; AUTO if unset or empty. */
static int read_environment(const char *name, enum weir_io *ret_io)
{
    static const struct {
        const char *text;
        enum weir_io io;
    } values[] = {{"", WEIR_IO_AUTO},
                  {"auto", WEIR_IO_AUTO},
                  {"epoll", WEIR_IO_EPOLL},
                  {"uring", WEIR_IO_URING},
                  {"poll", WEIR_IO_POLL}};
    const char *text = weir__environment_get("WEIR_IO");

    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        if (strcmp(text != NULL ? text : "", values[i].text) == 0) {
            *ret_io = values[i].io;
            return 0;
        }
    }
    weir__error("loop", name,
                "WEIR_IO is \"%s\" in the environment: expected auto, epoll, uring or poll", text);
    return -EINVAL;
}

int weir__loop_make(const char *name, const weir__loop_options *given, weir__loop_make_fn *make,
                    void *arg)
{
    weir__loop_options options = *given;
    char reason[REASON_SIZE] = "";
    int err = validate(name, &options);

    if (err == 0 && options.io == WEIR_IO_AUTO)
        err = read_environment(name, &options.io);
    if (err < 0)
        return err;
    set_defaults(&options);
    options.reason = reason;
    options.reason_size = sizeof(reason);
    if (options.io == WEIR_IO_URING && weir__runs_under_valgrind())
        weir__warn("loop", name, VALGRIND_HANGS "; WEIR_IO_AUTO selects epoll there");
    if (options.io == WEIR_IO_AUTO)
        err = make_automatically(name, &options, make, arg);
    else
        err = try_backend(&options, options.io, make, arg);
    if (err < 0 && reason[0] != '\0')
        weir__error("loop", name, "%s is not available: %s", backends[options.io].name, reason);
    return err;
}
