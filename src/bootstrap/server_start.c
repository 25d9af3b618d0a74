/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting a server, and waiting until it listens.
 *
 * An address that is in use is tried again for a moment. When a process with io_uring is killed,
 * what its ring has under way keeps the sockets open after it is gone, until the system gets round
 * to that: 10 to 20 ms later (docs/decisions/0018). Whoever starts it again at once, as supervisors
 * do, would hear that the address is in use.
 */
#include <errno.h>

#include <weir/error.h>

#include "base/options.h"
#include "bootstrap/server.h"
#include "executor/promise.h"
#include "os/clock.h"
#include "os/thread.h"

#define IN_USE_NS weir_ms(500)
#define PAUSE_MIN_NS weir_ms(10)
#define PAUSE_MAX_NS weir_ms(100)

/* Before the options have been looked at: what there is to adopt goes all the same. */
static int refuse(const weir_server_options *given, int err)
{
    weir_server_options options;

    if (weir__options_read(&options, sizeof(options), given) == 0 && options.adopt != NULL)
        weir__inherited_fds_close(&options, 0);
    return err;
}

static int start(const weir_server_options *options, bool is_patient, weir_channel **ret_server)
{
    weir_promise *started;
    weir_channel *server;
    int err = weir_promise_create(NULL, &started);

    if (err < 0)
        return refuse(options, err);
    err = weir__server_begin(options, is_patient, started, &server);
    if (err == 0) {
        err = weir_promise_sync(started, WEIR_NEVER);
        if (err < 0)
            weir_channel_release(server);
    }
    weir_promise_release(started);
    if (err == 0)
        *ret_server = server;
    return err;
}

int weir_server_start(const weir_server_options *options, weir_channel **ret_server)
{
    int64_t until_ns = weir__monotonic_now() + IN_USE_NS, pause_ns = PAUSE_MIN_NS;
    weir_server_options own;
    weir__signal_set held;
    bool is_patient;
    int err = weir__options_read(&own, sizeof(own), options);

    if (err < 0)
        return err;
    is_patient = own.adopt_count == 0; /* what was adopted is gone after the first time */
    err = weir__promise_may_wait(NULL);
    if (err < 0)
        return refuse(options, err);
    held = weir__server_hold_signals(own.restart_argv);
    while ((err = start(options, is_patient, ret_server)) == -EADDRINUSE && is_patient) {
        weir__thread_sleep(pause_ns); /* longer each time: who has the address may hear of it */
        pause_ns = 2 * pause_ns < PAUSE_MAX_NS ? 2 * pause_ns : PAUSE_MAX_NS;
        is_patient = weir__monotonic_now() < until_ns;
    }
    if (err < 0)
        weir__signal_set_unblock(held);
    else
        weir__server_of(*ret_server)->held = held;
    return err;
}
