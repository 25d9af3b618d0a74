/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internals of weir_server.
 *
 * The server holds a reference to each listener, and the acceptor handler of each listener holds
 * one to the server; the cycle ends when the listener closes and its handlers are removed.
 */
#ifndef WEIR_BOOTSTRAP_SERVER_H
#define WEIR_BOOTSTRAP_SERVER_H

#include <stdatomic.h>

#include <weir/server.h>

#include "base/refcount.h"
#include "os/signal_set.h"

enum {
    WEIR__SERVER_STARTED = 1 << 0,
    WEIR__SERVER_CLOSED = 1 << 1,   /* the first listener is closed */
    WEIR__SERVER_DRAINING = 1 << 2, /* the groups close the listeners */
};

typedef struct weir__listening {
    weir_server *server;
    weir_channel *channel; /* owned */
    weir_address address;
    struct weir__listening *shares; /* accepts from the socket of that one, as other loops do; the
                                       first of them is itself; NULL = no other loop does */
    size_t acceptor; /* its index among those of its address; 0 determines the port */
    size_t index;    /* that of its address; see weir_server_address_index */
    bool is_adopted; /* already listens */
    bool accepts;    /* as soon as all listeners do */
    weir_listener listener;
} weir__listening;

struct weir_server {
    weir__refs refs;
    weir_group *boss; /* both NULL if there is a loop */
    weir_group *workers;
    weir_executor *loop; /* weak reference; NULL = groups */
    enum weir_kind kind;
    size_t acceptors;        /* per address */
    size_t loops_per_socket; /* without a boss: those that accept from each socket */
    bool stays;              /* connections stay on the loop that accepted them */
    weir_init_fn *init_child;
    weir_init_fn *init_server;
    void *user_data;
    bool notifies_manager; /* of READY and STOPPING */
    char *const *restart_argv;
    int64_t restart_probation_ns; /* as given */
    int64_t drain_timeout_ns;     /* as given */
    weir_attribute_value *child_attributes;
    size_t child_attribute_count;

    /* While starting. The thread that sets the second of STARTED and CLOSED closes the other
     * listeners. */
    _Atomic uint32_t marks;
    weir_promise *started; /* owned; may be NULL */
    size_t bound;          /* number of bound listeners: index of the one being bound, or failed */
    size_t closing;        /* listeners left to close after a failure */
    int err;
    bool retries; /* the caller retries an address in use */

    weir__signal_set blocked_signals; /* by the starting thread, until the server is stopped */
    pid_t blocking_thread;
    _Atomic bool is_replaced; /* by another process, which notifies the manager from then on */
    _Atomic bool is_restarting;
    _Atomic bool is_stopping; /* by weir_server_stop: may no longer be replaced */
    _Atomic bool is_aborting; /* connections that remain while stopping are aborted */
    size_t count;
    size_t own_count; /* the first ones, which have a socket; the others share one */
    weir__listening listeners[];
};

/* Any thread: sets a mark. Closes the other listeners if that is this caller's turn. */
void weir__server_mark(weir_server *server, uint32_t mark);

static inline bool weir__server_has(weir_server *server, uint32_t mark)
{
    return (atomic_load_explicit(&server->marks, memory_order_acquire) & mark) != 0;
}

/* Any thread: aborts the remaining connections of a server that is being stopped, or will be. */
void weir__server_abort(weir_server *server);

/* Any thread: a listener of each shared socket looks for connections that have woken no loop. */
void weir__server_look(const weir_server *server);

/* True if the calling thread owns the server's loop and has to run it. */
bool weir__server_runs_loop(const weir_server *server);

/* Fails with -EDEADLK if the calling thread may not wait for the server's end. */
int weir__server_may_wait(const weir_server *server);

/* Creates a promise for weir__server_await. The loop is that of the server, or NULL. */
int weir__server_create_promise(weir_executor *loop, weir_promise **ret_promise);

/* As weir_promise_await; runs the loop meanwhile if the calling thread owns it. */
int weir__server_await(weir_server *server, weir_promise *promise, int64_t timeout_ns);

/*
 * Blocks the signals of weir_server_run in the calling thread, before the server starts, if it can
 * be restarted and they have their default action: they may arrive as soon as it reports that it is
 * ready. Returns those that were not blocked before.
 */
weir__signal_set weir__server_block_signals(char *const *restart_argv);

/* Unblocks them when the server has ended, on the thread that started it. SIGUSR2 stays blocked: it
 * would kill the process, and there is nothing left to restart. */
void weir__server_unblock_signals(weir_server *server);

/* As weir_server_stop, without its checks; leaves the signals blocked. */
int weir__server_stop(weir_server *server, int64_t quiet_ns, int64_t timeout_ns);

/* As weir_server_start_later. With `retries`, an address in use is not logged as an error. */
int weir__server_begin(const weir_server_options *given, bool retries, weir_promise *done,
                       weir_server **ret_server);

/* ---- server_options.c ---- */

/* Validated options with defaults filled in, and the channel options that they point to. */
typedef struct weir__server_config {
    weir_server_options options;
    weir_channel_options listener;
    weir_channel_options child;
    int *inherited; /* owned: the descriptors passed to the process */
} weir__server_config;

/* Invalid options are logged, and the descriptors to adopt are closed. */
int weir__server_config_init(weir__server_config *config, const weir_server_options *given);
void weir__server_config_deinit(weir__server_config *config);

/* The number of addresses, the address at an index, and the number of acceptors per address. */
size_t weir__server_addresses(const weir_server_options *options);
const char *weir__server_address_at(const weir_server_options *options, size_t index);
size_t weir__server_acceptors(const weir_server_options *options);

/* ---- inherited_fds.c ---- */

/* Finds the listeners passed to this process. Fails with -ENOMEM, and as weir_systemd_listeners. */
int weir__inherited_fds_find(int **ret_descriptors, size_t *ret_count);

/* Makes a listener of a descriptor, which it owns from now on, even on failure. */
int weir__inherited_fds_adopt(const weir_server_options *options, int descriptor,
                              weir__listening *listening);

/* Closes the descriptors that were not adopted, from index `first` on. */
void weir__inherited_fds_close(const weir_server_options *options, size_t first);

/* ---- acceptor.c ---- */

/* Adds the handler that sets up accepted connections. On the listener's loop. */
int weir__acceptor_add(const weir__listening *listening);

#endif
