/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server whose system calls and allocations fail, for the plays of a sweep.
 *
 *     site_open(&site, sweep);                     a group of one thread
 *     weir_udp_create(NULL, &site.channel);
 *     site_add(&site, site.channel, &handler);
 *     site_bind(&site, &address);
 *     ...
 *     sweep_stop_faults(sweep);
 *     site_close(&site);
 *
 * Whatever has failed, connections that were opened are closed at the end.
 */
#ifndef WEIR_TEST_FAULTY_SERVER_H
#define WEIR_TEST_FAULTY_SERVER_H

#include <weir/channel.h>
#include <weir/pipeline.h>

#include "support/executor/call_counter.h"
#include "support/loop/fault_sweep.h"
#include "support/loop/sockets.h"

struct site {
    struct sweep *sweep;
    weir_group *group;
    weir_channel *channel; /* the server's */
    struct address address;
    struct call_counter opened;
    struct call_counter closed;
    struct call_counter errors; /* that handlers have heard */
};

int site_open(struct site *site, struct sweep *sweep);
void site_close(struct site *site);

/* Registers its channel and binds it. */
int site_bind(struct site *site, const weir_address *address);

/* Finds out the channel's address. */
int site_find(struct site *site);

/* Adds a handler that counts who comes and goes, and errors, all of which goes on; and another one,
 * whose option is the site. */
int site_add(struct site *site, weir_channel *channel, const weir_handler *handler);

/* One that sends back what comes. */
extern const weir_handler site_echo;

/* For handlers whose state is a pointer to the site, which is their option: pointer_keep. */
struct site *site_of(weir_ctx *ctx);

/* What is done at a site: opened as far as its address, and visited. */
struct site_play {
    int (*open)(struct site *site);
    void (*serve)(struct site *site);
};

/* For a sweep whose arg is a site_play. The end is not played with: it has no report. */
int site_play(struct sweep *sweep);

#endif
