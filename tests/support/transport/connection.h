/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A TCP or Unix connection between two loops, with a channel at each end, and a log of the events
 * of both.
 *
 *     TEST_EACH_PAIR(tcp, brings_a_word)
 *     {
 *         connection_open(line, NULL);
 *         connection_send(&line->client, "x");
 *         assert_end_events(&line->server, "read(x)");
 *     }
 *
 * The body runs for every pair of backends, the server's and the client's. When it returns, open
 * channels are aborted, both loops are shut down, and no descriptor may be left. Handlers and their
 * hooks run on the loops: they must not assert.
 */
#ifndef WEIR_TEST_CONNECTION_H
#define WEIR_TEST_CONNECTION_H

#include <weir/channel.h>
#include <weir/pipeline.h>
#include <weir/transport.h>

#include "support/channel/event_log.h"
#include "support/executor/call_counter.h"
#include "support/executor/group.h"
#include "support/loop/host.h"

struct connection;

/* Its handler logs events: "active", "read(text)", "passed(text)" for a message with descriptors,
 * "error(NAME)", ... and calls the hooks. */
struct connection_end {
    struct connection *connection;
    weir_channel *channel; /* owned; that of the server is set once accepted */
    struct event_log events;
    struct call_counter notes;
    struct call_counter completes; /* read_complete events */
    _Atomic uint64_t received;
    void *_Atomic user_data;

    void (*_Atomic on_active)(weir_ctx *ctx);
    void (*_Atomic on_read)(weir_ctx *ctx, weir_msg *msg); /* instead of logging; takes msg */
    void (*_Atomic on_read_complete)(weir_ctx *ctx);
    void (*_Atomic on_event)(weir_ctx *ctx, const weir_msg *event);
    void (*_Atomic on_writability)(weir_ctx *ctx); /* instead of logging */
};

struct connection_options {
    const weir_channel_options *listener;
    const weir_channel_options *server;
    const weir_channel_options *client;
    int (*add)(weir_pipeline *pipeline,
               void *arg); /* handlers of the client, before the logging one */
    void *arg;
};

enum connection_medium {
    CONNECTION_TCP,
    CONNECTION_UNIX,
    CONNECTION_SEQPACKET,
};

struct connection {
    enum connection_medium
        medium;       /* as the run says; a test may change it before it opens the line */
    struct host near; /* the client's loop */
    struct host far;  /* the listener's and the server's */
    struct connection_options options;
    weir_address address; /* the listener's, once it is bound */
    weir_channel *listener;
    struct call_counter accepted;
    struct connection_end client;
    struct connection_end server;
};

/*
 * Whether the lines of this run are Unix sockets: WEIR_TEST_CONNECTION=unix. So the tests of TCP
 * are also those of Unix streams, but for what only one of the two has.
 */
bool connection_is_unix(void);

/* Opens a connected pair; or only a listener and a registered client. */
void connection_open(struct connection *connection, const struct connection_options *options);
void connection_prepare(struct connection *connection, const struct connection_options *options);

/* The second half of connection_open; the same without checking the events of both ends. */
void connection_connect(struct connection *connection);
void connection_start(struct connection *connection);

/* As connection_start, but that a listener of the connect writes a text, flushes it and notes
 * "said": before `active`. */
void connection_start_and_send(struct connection *connection, const char *text);

/* Closes what is open, for tests that check that in their body. */
void connection_close(struct connection *connection);

/* The end of a context's handler. */
struct connection_end *connection_end_of(weir_ctx *ctx);

/* Another channel with the handler of `end`, which it becomes the channel of; not registered. */
void connection_make_client(struct connection *connection);

/* For on_read: only counts the bytes. */
void connection_discard(weir_ctx *ctx, weir_msg *msg);

/* Writes to the log, on any thread. */
void connection_note(struct connection_end *end, const char *note);

/* Writes a text and flushes it. */
void connection_send(struct connection_end *end, const char *text);

/* Waits until `count` entries of the log begin with this word. */
void connection_await(struct connection_end *end, const char *word, unsigned count);
void connection_await_received(struct connection_end *end, uint64_t bytes);

/* Creates a promise on the loop of an end; waits for its result, and releases it. */
weir_promise *connection_promise(struct connection_end *end);
int connection_result(weir_promise *promise);

/* Calls an operation, such as a close, and waits for its result. */
typedef void connection_operation(weir_channel *channel, weir_promise *done);
int connection_do(struct connection_end *end, connection_operation *operation);

/* Waits for the last of these words; then compares the whole log, and clears it. */
#define assert_end_events(end, words)                                     \
    do {                                                                  \
        char said_[EVENT_LOG_SIZE];                                       \
        assert_string_equal(connection_events(end, words, said_), words); \
    } while (0)

const char *connection_events(struct connection_end *end, const char *words, char *said);

/* ---- tests ---- */

typedef void connection_body(struct connection *connection);

void connection_run(enum backend_id far, enum backend_id near, connection_body *body);

#define CONNECTION_NEAR(XX, test, name, far) \
    XX(test, name, far, EPOLL)               \
    XX(test, name, far, URING) XX(test, name, far, POLL)

/* Under sanitizers, which are slow, each backend is on each side once. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define CONNECTION_PAIRS(XX, test, name) \
    XX(test, name, EPOLL, URING)         \
    XX(test, name, URING, POLL)          \
    XX(test, name, POLL, EPOLL) XX(test, name, BLOCKING, BLOCKING)
#else
#define CONNECTION_PAIRS(XX, test, name)   \
    CONNECTION_NEAR(XX, test, name, EPOLL) \
    CONNECTION_NEAR(XX, test, name, URING) \
    CONNECTION_NEAR(XX, test, name, POLL)  \
    XX(test, name, BLOCKING, BLOCKING)     \
    XX(test, name, BLOCKING, EPOLL) XX(test, name, EPOLL, BLOCKING)
#endif

#define CONNECTION_SAME(XX, test, name) \
    XX(test, name, EPOLL, EPOLL)        \
    XX(test, name, URING, URING)        \
    XX(test, name, POLL, POLL) XX(test, name, BLOCKING, BLOCKING)

#define CONNECTION_FUNCTION(test, name, far, near)           \
    static void test##_on_##far##_##near(void)               \
    {                                                        \
        connection_run(BACKEND_##far, BACKEND_##near, test); \
    }

#define CONNECTION_CASE(test, name, far, near) \
    {name "@" BACKEND_NAME_##far "-" BACKEND_NAME_##near, test##_on_##far##_##near, NULL},

#define CONNECTION_TESTS(test, name, pairs)                                     \
    static void test(struct connection *connection);                            \
    pairs(CONNECTION_FUNCTION, test, name)                                      \
        __attribute__((constructor)) static void register_##test(void)          \
    {                                                                           \
        static struct test_case tests[] = {pairs(CONNECTION_CASE, test, name)}; \
                                                                                \
        for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)           \
            test_register(&tests[i]);                                           \
    }                                                                           \
    static void test(struct connection *connection)

/* On every pair of backends (a thread per channel only with itself and epoll); and on every backend
 * with itself, where the other end does not matter. */
#define TEST_EACH_PAIR(noun, sentence) \
    CONNECTION_TESTS(noun##_##sentence, #noun "." #sentence, CONNECTION_PAIRS)
#define TEST_EACH_CONNECTION(noun, sentence) \
    CONNECTION_TESTS(noun##_##sentence, #noun "." #sentence, CONNECTION_SAME)

#endif
