/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the listeners of one server share.
 *
 * The first listener stands for all: it has the server as an attribute, and so keeps it as long as
 * its own memory; the server keeps the others. Each acceptor, and whoever is starting the server,
 * keeps it too.
 */
#ifndef WEIR_BOOTSTRAP_SERVER_H
#define WEIR_BOOTSTRAP_SERVER_H

#include <stdatomic.h>

#include <weir/server.h>

#include "base/refcount.h"
#include "os/signal_set.h"

typedef struct weir__server weir__server;

enum {
    WEIR__SERVER_STARTED = 1 << 0,
    WEIR__SERVER_CLOSED = 1 << 1, /* the first listener is */
    WEIR__SERVER_DRAINS = 1 << 2, /* its groups see to each listener */
};

typedef struct weir__listening {
    weir__server *server;
    weir_channel *channel; /* kept, but for the first one */
    weir_address address;
    size_t acceptor; /* which one of its address's: the first finds out the port */
    bool is_adopted; /* it listens already */
    weir_listener heard;
} weir__listening;

struct weir__server {
    weir__refs refs;
    weir_group *boss;
    weir_group *workers;
    enum weir_kind kind;
    size_t acceptors; /* of each address */
    bool stays;       /* a connection stays on the loop that has accepted it */
    weir_init_fn *init_child;
    weir_init_fn *init_server;
    void *user_data;
    bool tells_manager; /* when it is ready */
    char *const *restart_argv;
    int64_t restart_probation_ns; /* as given */
    weir_attribute_value *child_attributes;
    size_t child_attribute_count;

    /* While it starts: whoever sees the first two marks, and no other, closes the other listeners.
     */
    _Atomic uint32_t marks;
    weir_promise *started; /* kept; may be NULL */
    size_t bound;          /* so many; the next one is being bound, or has failed */
    size_t closing;        /* so many are left to be closed after a failure */
    int err;
    bool is_patient; /* an address that is in use will be tried again */

    weir__signal_set held; /* until it has ended, by the thread that has started it */
    pid_t holder;
    _Atomic bool is_replaced; /* by a process that is ready: what a manager hears is its affair */
    _Atomic bool is_restarting;
    _Atomic bool is_stopping; /* by weir_server_stop: it is not to be replaced any more */
    _Atomic bool hurries;     /* what is still there when it is being stopped is aborted */
    size_t count;
    weir__listening listeners[];
};

weir__server *weir__server_retain(weir__server *server);
void weir__server_release(weir__server *server);

/* The server that a listener is the first of; NULL if it is not. Any thread. */
weir__server *weir__server_of(weir_channel *channel);

/* Any thread: has got as far as the mark says. Closes the other listeners if that is for it to do.
 */
void weir__server_mark(weir__server *server, uint32_t mark);

static inline bool weir__server_has(weir__server *server, uint32_t mark)
{
    return (atomic_load_explicit(&server->marks, memory_order_acquire) & mark) != 0;
}

/* Any thread: ends the draining of a server that is being stopped, or will be. */
void weir__server_hurry(weir__server *server);

/* 0, or -EDEADLK if this thread may not wait for the server's end. */
int weir__server_may_wait(const weir__server *server);

/*
 * For a server that is about to start: the signals of weir_server_run wait for it, in the calling
 * thread, if they would end the process and it is to be replaced by one of them: as soon as it says
 * that it is ready they may come. Returns those that did not wait before.
 */
weir__signal_set weir__server_hold_signals(char *const *restart_argv);

/* When it has ended, on the thread that has started it: who ends may be ended; but nobody is to
 * replace it any more. */
void weir__server_let_signals_go(weir__server *server);

/* As weir_server_stop, on a thread that may wait for it, and lets no signals go. */
int weir__server_stop(weir__server *server, int64_t quiet_ns, int64_t timeout_ns);

/* As weir_server_start_later. Who is patient will try again if an address is in use. */
int weir__server_begin(const weir_server_options *given, bool is_patient, weir_promise *done,
                       weir_channel **ret_server);

/* ---- server_options.c ---- */

/* Options as they are meant: defaults filled in, and those of channels in it. */
typedef struct weir__server_order {
    weir_server_options options;
    weir_channel_options listener;
    weir_channel_options child;
    int *inherited; /* what was handed over */
} weir__server_order;

/* What makes no sense is logged; descriptors that there were to adopt are closed then. */
int weir__server_order_read(weir__server_order *order, const weir_server_options *given);
void weir__server_order_deinit(weir__server_order *order);

/* How many addresses, each of them, and how many acceptors each has. */
size_t weir__server_addresses(const weir_server_options *options);
const char *weir__server_address_at(const weir_server_options *options, size_t index);
size_t weir__server_acceptors(const weir_server_options *options);

/* ---- handed.c ---- */

/* Finds what was handed over. Fails with -ENOMEM, and as weir_systemd_listeners. */
int weir__inherited_fds_find(int **ret_descriptors, size_t *ret_count);

/* Makes a listener of one that was handed over, which it takes, on failure too. */
int weir__inherited_fds_adopt(const weir_server_options *options, int descriptor,
                              weir__listening *listening);

/* Closes those that nobody has adopted, from the first of them on. */
void weir__inherited_fds_close(const weir_server_options *options, size_t first);

/* ---- acceptor.c ---- */

/* Adds the handler that makes connections of what a listener accepts. On its loop. */
int weir__acceptor_add(weir_channel *listener, weir__server *server);

#endif
