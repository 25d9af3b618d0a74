/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/client.h - makes a channel, gives it its handlers and its loop, and connects it.
 *
 *      weir_client_connect_sync(WEIR_CLIENT_OPTIONS(.group = group, .address = "127.0.0.1:8007",
 *                                                   .init = init), &channel);
 */
#ifndef WEIR_CLIENT_H
#define WEIR_CLIENT_H

#include <weir/attribute.h>
#include <weir/channel.h>
#include <weir/group.h>
#include <weir/resolver.h>
#include <weir/server.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zero means default. Build with WEIR_CLIENT_OPTIONS(.group = g, .address = "...", ...). */
typedef struct weir_client_options {
    size_t size;
    weir_group *group;
    const char *address;           /* "127.0.0.1:8007", "[::1]:8007", "example.org:80",
                                      "unix:/run/x.sock", "unix:@name", "inproc:..."; a name is
                                      looked up by `resolver` */
    const weir_address *addresses; /* instead: several, tried by happy eyeballs (RFC 8305) */
    size_t address_count;
    int64_t attempt_delay_ns;  /* before the next address is tried as well: default 250 ms, 10 ms at
                                  the least; WEIR_OFF = only when the one before has failed */
    const char *local_address; /* default: the system's choice */
    weir_init_fn *init;        /* on the channel's loop; default: no handlers */
    void *user_data;
    const weir_channel_options *options;    /* connect_timeout_ns is for each attempt */
    const weir_attribute_value *attributes; /* set on each channel: not freed by it */
    size_t attribute_count;
    enum weir_kind kind;     /* default WEIR_KIND_STREAM */
    weir_executor *loop;     /* instead of a group: this one, such as that of another channel */
    weir_resolver *resolver; /* default weir_resolver_default() */
} weir_client_options;

#define WEIR_CLIENT_OPTIONS(...) \
    (&(const weir_client_options){.size = sizeof(weir_client_options), __VA_ARGS__})

/*
 * Makes options that are all default.
 * Thread: any.
 */
WEIR_API void weir_client_options_init(weir_client_options *options);

/*
 * Connects. The promise's value is the channel, kept by the promise; cancelling it gives up. With
 * several addresses, given or those of a name, the first that answers wins, and `init` runs for
 * each attempt: those that lose are aborted. If all fail the promise has the last one's error, and
 * a sentence that tells of each; a name that cannot be resolved, WEIR_ENOHOST or WEIR_ELOOKUP. A
 * loop whose thread cannot be started fails it with -EAGAIN or -ENOMEM, one that has shut down with
 * WEIR_EREJECTED. Its listeners run on the channel's loop, before `active`.
 * Thread: any.  Gives: connecting.  Fails: -EINVAL, -ENOMEM, -EAFNOSUPPORT; if the group has a
 * thread per channel, WEIR_ETOOMANY, WEIR_EREJECTED, and with what an executor was refused with.
 */
WEIR_API int weir_client_connect(const weir_client_options *options, weir_promise **ret_connecting);

/*
 * Connects, and waits for it. What was wrong in words, and of which address, is only in the promise
 * of weir_client_connect.
 * Thread: any that may wait.  Gives: channel.  Fails: -EDEADLK, and with what failed the
 * connection.
 */
WEIR_API int weir_client_connect_sync(const weir_client_options *options,
                                      weir_channel **ret_channel);

#ifdef __cplusplus
}
#endif

#endif
