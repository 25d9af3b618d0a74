/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers that observe their writes, on channels that move to another loop meanwhile: the promises
 * complete on the old loop.
 */
#include <errno.h>
#include <stdatomic.h>

#include <weir/buf.h>
#include <weir/chunks.h>
#include <weir/timeouts.h>

#include "support/transport/connection.h"

enum { PIECE = 64 * 1024, PIECES = 256 }; /* more than both sockets buffer */

/* The server does not read yet. */
static void open_line(struct connection *connection)
{
    connection_open(connection, &(const struct connection_options){
                                    .server = WEIR_CHANNEL_OPTIONS(.read_on_demand = true)});
}

static void move(struct connection_end *end, struct host *host)
{
    weir_promise *promise = connection_promise(end);

    assert_int_equal(connection_do(end, weir_channel_deregister), 0);
    weir_group_register(host->group, end->channel, promise);
    assert_int_equal(connection_result(promise), 0);
}

static void read_all(struct connection *connection)
{
    connection->server.on_read = connection_discard;
    weir_channel_set_auto_read(connection->server.channel, true);
    connection_await_received(&connection->server, (uint64_t)PIECES * PIECE);
}

static weir_msg *make_piece(void)
{
    weir_buf *buf = NULL;

    if (weir_buf_create(PIECE, PIECE, &buf) < 0)
        return NULL;
    (void)weir_buf_advance(buf, PIECE);
    return weir_buf_msg(buf);
}

/* ---- chunks ---- */

struct source {
    weir_channel *channel;
    unsigned made;
    _Atomic unsigned strayed; /* callbacks outside the channel's loop */
    struct call_counter closed;
};

static void look_around(struct source *source)
{
    if (!weir_in_executor(weir_channel_executor(source->channel)))
        source->strayed++;
}

static int next_piece(void *source_, weir_msg **ret_chunk)
{
    struct source *source = source_;

    look_around(source);
    if (source->made++ == PIECES)
        return WEIR_CHUNKS_END;
    *ret_chunk = make_piece();
    return *ret_chunk != NULL ? WEIR_CHUNKS_READY : -ENOMEM;
}

static void close_source(void *source)
{
    call_counter_add(&((struct source *)source)->closed);
}

static void on_progress(int64_t sent, int64_t length, void *source)
{
    (void)sent;
    (void)length;
    look_around(source);
}

static void write_chunks(struct connection *connection, struct source *source,
                         weir_promise *written)
{
    static const weir_chunk_source table = {.next = next_piece, .close = close_source};
    weir_chunks *chunks = NULL;

    source->channel = connection->client.channel;
    assert_int_equal(weir_chunked_writing_add(weir_channel_pipeline(source->channel)), 0);
    assert_int_equal(weir_chunks_create(&table, source, (int64_t)PIECES * PIECE, &chunks), 0);
    weir_chunks_on_progress(chunks, on_progress, source);
    weir_channel_write_and_flush(source->channel, weir_chunks_msg(chunks), written);
}

/* The half closure behind the writes is not lost either. */
TEST_EACH_CONNECTION(moving, keeps_chunks)
{
    struct source source = {0};
    weir_promise *written, *shut;

    open_line(connection);
    written = connection_promise(&connection->client);
    shut = connection_promise(&connection->client);
    write_chunks(connection, &source, written);
    weir_channel_shutdown_output(source.channel, shut);
    move(&connection->client, &connection->far);
    read_all(connection);
    assert_int_equal(connection_result(written), 0);
    assert_int_equal(connection_result(shut), 0);
    assert_true(call_counter_await(&source.closed, 1));
    assert_int_equal(source.strayed, 0);
    connection_close(connection);
}

TEST_EACH_CONNECTION(moving, fails_chunks_when_the_new_loop_ends)
{
    struct source source = {0};
    weir_promise *written;

    open_line(connection);
    written = connection_promise(&connection->client);
    write_chunks(connection, &source, written);
    move(&connection->client, &connection->far);
    assert_int_equal(weir_group_shutdown(connection->far.group, 0, TEST_TIMEOUT_NS), 0);
    (void)connection_result(written); /* the server closes as well, and may discard everything */
    assert_true(call_counter_await(&source.closed, 1));
    connection_close(connection);
}

/* ---- timeouts ---- */

/* For the thread sanitizer. */
TEST_EACH_CONNECTION(moving, keeps_timed_writes)
{
    weir_promise *written;

    open_line(connection);
    assert_int_equal(
        weir_write_timeout_add(weir_channel_pipeline(connection->client.channel), NULL), 0);
    for (int i = 1; i < PIECES; i++)
        weir_channel_write_and_flush(connection->client.channel, make_piece(), NULL);
    move(&connection->client, &connection->far);
    written = connection_promise(&connection->client);
    weir_channel_write_and_flush(connection->client.channel, make_piece(), written);
    read_all(connection);
    assert_int_equal(connection_result(written), 0);
    connection_close(connection);
}
