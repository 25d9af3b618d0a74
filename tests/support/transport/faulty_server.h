/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server whose system calls and allocations fail, for the scenarios of a sweep.
 *
 *     faulty_server_open(&site, sweep);                     a group of one thread
 *     weir_udp_create(NULL, &site.channel);
 *     faulty_server_add(&site, site.channel, &handler);
 *     faulty_server_bind(&site, &address);
 *     ...
 *     sweep_stop_faults(sweep);
 *     faulty_server_close(&site);
 *
 * Whatever has failed, all opened connections are closed at the end.
 */
#ifndef WEIR_TEST_FAULTY_SERVER_H
#define WEIR_TEST_FAULTY_SERVER_H

#include <weir/channel.h>
#include <weir/pipeline.h>

#include "support/executor/call_counter.h"
#include "support/loop/fault_sweep.h"
#include "support/loop/sockets.h"

struct faulty_server {
    struct sweep *sweep;
    weir_group *group;
    weir_channel *channel; /* the server's */
    struct address address;
    struct call_counter opened;
    struct call_counter closed;
    struct call_counter errors; /* received by handlers */
};

int faulty_server_open(struct faulty_server *faulty, struct sweep *sweep);
void faulty_server_close(struct faulty_server *faulty);

/* Registers its channel and binds it. */
int faulty_server_bind(struct faulty_server *faulty, const weir_address *address);

/* Reads the channel's address. */
int faulty_server_find_address(struct faulty_server *faulty);

/* Adds a handler that counts connections and errors, and passes everything on; and another one,
 * whose option is the site. */
int faulty_server_add(struct faulty_server *faulty, weir_channel *channel,
                      const weir_handler *handler);

/* An echo handler. */
extern const weir_handler faulty_server_echo;

/* For handlers whose state is a pointer to the site, which is their option: pointer_keep. */
struct faulty_server *faulty_server_of(weir_ctx *ctx);

/* The steps of a server: opened as far as its address, and connected to. */
struct faulty_server_run {
    int (*open)(struct faulty_server *faulty);
    void (*serve)(struct faulty_server *faulty);
};

/* For a sweep whose arg is a faulty_server_run. The end is not played with: it has no report. */
int faulty_server_run(struct sweep *sweep);

#endif
