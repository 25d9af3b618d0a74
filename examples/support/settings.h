/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the examples are told on the command line, and how those that serve do it.
 *
 *      --host ADDRESS    --port N    --io auto|epoll|uring|poll|blocking    --adaptive
 *      --threads N       0 = as many as weir likes; blocking: as many as channels
 *      --boss-threads N  0 = the workers accept for themselves
 *      --tls             and what belongs to it: support/tls.h
 */
#ifndef EXAMPLES_SETTINGS_H
#define EXAMPLES_SETTINGS_H

#include <weir/weir.h>

struct settings {
    const char *program;
    const char *host;
    int port;
    char address[WEIR_ADDRESS_TEXT_SIZE]; /* of both */
    enum weir_io io;
    enum weir_strategy strategy;
    int threads;
    int boss_threads;
    bool offers_tls; /* the example does; the rest of it is in support/tls.h */
    bool tls;
    bool insecure;
    const char *cert;
    const char *key;
    const char *ca;
};

/* An option of the example's own, before the others are read: its value, NULL if it is not there;
 * it is taken out of the arguments. */
char *settings_take(int *argc, char **argv, const char *name);

/* Ends the program with 2, and lines that say what is wrong and how it is used, if there is
 * something else; with 0 at --help. */
struct settings settings_read(int argc, char **argv, const char *host, int port);

/* The same for examples that speak TLS if they are told to. */
struct settings settings_read_tls(int argc, char **argv, const char *host, int port);

/* Makes the groups that the settings ask for; `boss` stays NULL if the workers are to accept. NULL
 * for `ret_boss`: nobody accepts. */
int settings_make_groups(const struct settings *settings, weir_group **ret_boss,
                         weir_group **ret_workers);

/* Prints "listening on ADDRESS:PORT": of the port that it got, if 0 was asked for. From here on
 * SIGINT, SIGTERM and SIGUSR2 wait for weir_server_run. */
void print_address(weir_server *server);

/* The server of examples/echo, for examples that are about its handlers: returns when it has been
 * stopped by a signal, with what main() is to return. */
int serve(const struct settings *settings, weir_init_fn *init_child);

/* The same for datagrams: each loop has a socket of its own. */
int serve_datagrams(const struct settings *settings, weir_init_fn *init_server);

/* A client's connection, by TLS if that is asked for; its handlers are added by `init`. */
int connect_to(const struct settings *settings, weir_group *group, weir_init_fn *init,
               void *user_data, weir_channel **ret_channel);

#endif
