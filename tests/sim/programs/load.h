/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Load for servers that are stopped or replaced: clients that ask until each of their requests was
 * answered, and the handler that answers. Both record what they see for each request.
 *
 * A request has an id. Its answer has the id and bytes that depend on it. A client keeps a few
 * requests open at a time. When its connection ends it asks again, at the next address, for what
 * was not answered.
 */
#ifndef SIM_LOAD_H
#define SIM_LOAD_H

#include <weir/frames.h>

#include "sim/programs/parts.h"

#define LOAD_CLIENTS_MAX 12
#define LOAD_REQUESTS_MAX 16 /* of a client */
#define LOAD_SERVERS_MAX 16

/* How a server ends its connections when it drains. */
enum load_drain {
    LOAD_CLOSES,   /* by default: answers are written at once */
    LOAD_FINISHES, /* `draining`: closes when no answer is missing */
    LOAD_WAITS,    /* `drain_waits`: the clients close */
};

struct load_request {
    uint8_t reads[LOAD_SERVERS_MAX];   /* how often the server has read it */
    uint8_t answers[LOAD_SERVERS_MAX]; /* how often it has written the answer */
    uint8_t sent[LOAD_SERVERS_MAX];    /* how often it was sent there */
    uint8_t received[LOAD_SERVERS_MAX];
};

struct load {
    weir_sim *sim;

    /* Of the clients. */
    unsigned clients, requests, window;
    unsigned per_connection;                 /* a client reconnects after that many; 0 = never */
    size_t max_answer;                       /* bytes */
    int64_t max_pause_ns;                    /* before the next request */
    int64_t timeout_ns;                      /* without an answer: the connection is aborted */
    const char *addresses[LOAD_SERVERS_MAX]; /* up to NULL */
    bool stays; /* each client has an address; otherwise all begin with the first */

    /* Of the servers. */
    enum load_drain drain;
    int64_t max_work_ns;                   /* 0 = answers at once */
    weir_group *offload[LOAD_SERVERS_MAX]; /* some answers are made there; may be NULL */

    /* What happened. */
    unsigned refused;  /* connections that failed */
    unsigned broken;   /* connections that ended with requests open */
    unsigned timeouts; /* connections that were aborted by their client */
    unsigned accepted[LOAD_SERVERS_MAX];
    struct load_request seen[LOAD_CLIENTS_MAX * LOAD_REQUESTS_MAX];

    /* Of load.c. */
    weir_group *group;
    weir_promise *done;
    unsigned left;
};

/* The user_data of load_init_child: which server it is. */
struct load_server {
    struct load *load;
    unsigned number;
};

/* Adds the handlers of a server's connection. `user_data` is a struct load_server. */
int load_init_child(weir_channel *channel, void *user_data);

/* True if a call failed only because a fault was drawn, after a short sleep: it is repeated. */
bool load_retries(int err);

/* Creates a group; repeats it like that. */
int load_group(const char *name, int threads, weir_group **ret_group);

/* The main function of the clients. `arg` is a struct load. */
int load_clients_main(void *arg);

#endif
