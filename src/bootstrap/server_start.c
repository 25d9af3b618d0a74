/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting a server, and waiting until it listens.
 *
 * An address in use is retried for half a second: operations in the io_uring of a killed process
 * keep its sockets open for another 10 to 20 ms (docs/decisions/0018), so a supervisor that
 * restarts it at once would fail with EADDRINUSE.
 */
#include <errno.h>

#include <weir/error.h>

#include "base/options.h"
#include "bootstrap/server.h"
#include "executor/promise.h"
#include "os/clock.h"
#include "os/thread.h"

#define IN_USE_NS weir_ms(500)
#define RETRY_MIN_NS weir_ms(10)
#define RETRY_MAX_NS weir_ms(100)

/* Fails before the options were validated: the descriptors to adopt are closed nevertheless. */
static int refuse(const weir_server_options *given, int err)
{
    weir_server_options options;

    if (weir__options_read(&options, sizeof(options), given) == 0 && options.adopt != NULL)
        weir__inherited_fds_close(&options, 0);
    return err;
}

static int start(const weir_server_options *options, weir_executor *loop, bool retries,
                 weir_server **ret_server)
{
    weir_promise *started;
    weir_server *server;
    int err = weir__server_create_promise(loop, &started);

    if (err < 0)
        return refuse(options, err);
    err = weir__server_begin(options, retries, started, &server);
    if (err == 0) {
        err = weir__server_await(server, started, WEIR_NEVER);
        if (err == 0)
            err = weir_promise_result(started);
        if (err < 0)
            weir_server_release(server);
    }
    weir_promise_release(started);
    if (err == 0)
        *ret_server = server;
    return err;
}

int weir_server_start(const weir_server_options *options, weir_server **ret_server)
{
    int64_t until_ns = weir__monotonic_now() + IN_USE_NS, delay_ns = RETRY_MIN_NS;
    weir_server_options own;
    weir__signal_set blocked;
    bool retries;
    int err = weir__options_read(&own, sizeof(own), options);

    if (err < 0)
        return err;
    retries = own.adopt_count == 0; /* adopted descriptors are closed by the first attempt */
    err = weir__promise_may_wait(NULL);
    if (err < 0)
        return refuse(options, err);
    blocked = weir__server_block_signals(own.restart_argv);
    while ((err = start(options, own.loop, retries, ret_server)) == -EADDRINUSE && retries) {
        weir__thread_sleep(delay_ns);
        delay_ns = 2 * delay_ns < RETRY_MAX_NS ? 2 * delay_ns : RETRY_MAX_NS;
        retries = weir__monotonic_now() < until_ns;
    }
    if (err < 0)
        weir__signal_set_unblock(blocked);
    else
        (*ret_server)->blocked_signals = blocked;
    return err;
}
