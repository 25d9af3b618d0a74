/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bulks written in parts, and the end of the connection if a part cannot be sent: the header has
 * announced the number of bytes.
 */
#include <weir/resp.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/chunks.h>
#include <weir/embedded.h>
#include <weir/error.h>
#include <weir/file_range.h>

#include "support/codec/feed.h"
#include "support/memory.h"
#include "support/test.h"
#include "support/transport/connection.h"

/* ---- files ---- */

static int make_file(off_t size)
{
    char path[] = "/tmp/weir-resp-XXXXXX";
    int file = mkstemp(path);

    assert_true(file >= 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(ftruncate(file, size), 0);
    return file;
}

static weir_msg *range_of(int file, int64_t length)
{
    weir_file_range *range = NULL;

    assert_int_equal(weir_file_range_create(file, 0, length, 0, &range), 0);
    return weir_file_range_msg(range);
}

static weir_msg *chunks_of(int file, int64_t length, size_t chunk_size)
{
    weir_chunks *chunks = NULL;

    assert_int_equal(weir_chunks_create_file(file, 0, length, 0, chunk_size, &chunks), 0);
    return weir_chunks_msg(chunks);
}

static weir_msg *head_of(uint64_t length)
{
    weir_resp *head = NULL;

    assert_int_equal(weir_resp_create_bulk_header(length, &head), 0);
    return weir_resp_msg(head);
}

/* ---- a pipeline: something in front, the codec, a witness of errors ---- */

struct witness {
    int err;
    char detail[256];
};

static int init_witness(void *state, const void *options)
{
    memcpy(state, &options, sizeof(options));
    return 0;
}

static void on_error(weir_ctx *ctx, int err, const char *detail)
{
    struct witness *witness = *(struct witness **)weir_ctx_state(ctx);

    witness->err = err;
    (void)snprintf(witness->detail, sizeof(witness->detail), "%s", detail);
}

static const weir_handler witness_table = {
    .name = "witness",
    .state_size = sizeof(struct witness *),
    .init = init_witness,
    .error = on_error,
};

/* As TLS does with files, or a failing disk. */
static void refuse_files(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    if (weir_file_range_of(msg) == NULL) {
        weir_write(ctx, msg, done);
        return;
    }
    weir_msg_release(msg);
    weir_ctx_report(ctx, done, -EIO, "the disk is on fire");
}

static const weir_handler refusing = {.name = "refusing", .write = refuse_files};

static int add_refusing(weir_pipeline *pipeline)
{
    return weir_pipeline_add_last(pipeline, &refusing, NULL);
}

static weir_embedded *open_behind(int (*add)(weir_pipeline *), struct witness *witness)
{
    weir_embedded *embedded = NULL;
    weir_pipeline *pipeline;

    memset(witness, 0, sizeof(*witness));
    assert_int_equal(weir_embedded_create(WEIR_EMBEDDED_OPTIONS(.socket_space = 1000), &embedded),
                     0);
    pipeline = weir_embedded_pipeline(embedded);
    assert_int_equal(add(pipeline), 0);
    assert_int_equal(weir_resp_codec_add(pipeline, NULL), 0);
    assert_int_equal(weir_pipeline_add_last(pipeline, &witness_table, witness), 0);
    return embedded;
}

static weir_promise *write_with_promise(weir_embedded *embedded, weir_msg *msg,
                                        weir_executor *executor)
{
    weir_promise *done = NULL;

    assert_int_equal(weir_promise_create(executor, &done), 0);
    weir_channel_write_and_flush(weir_embedded_channel(embedded), msg, done);
    weir_embedded_run(embedded);
    return done;
}

static void assert_cut_off(weir_embedded *embedded, const struct witness *witness, int err,
                           const char *words)
{
    assert_int_equal(witness->err, err);
    assert_non_null(strstr(witness->detail, "incomplete frame written: "));
    assert_non_null(strstr(witness->detail, words));
    assert_false(weir_channel_is_open(weir_embedded_channel(embedded)));
}

/* ---- tests ---- */

TEST(resp_bulk, ends_the_connection_if_its_file_cannot_be_sent)
{
    struct witness witness;
    weir_embedded *embedded = open_behind(add_refusing, &witness);
    weir_executor *loop = weir_channel_executor(weir_embedded_channel(embedded));
    weir_promise *head = write_with_promise(embedded, head_of(100), loop);
    weir_promise *file = write_with_promise(embedded, range_of(0, 100), loop);

    assert_int_equal(weir_promise_result(head), 0);
    assert_int_equal(weir_promise_result(file), -EIO);
    assert_cut_off(embedded, &witness, -EIO, "the disk is on fire");
    weir_promise_release(head);
    weir_promise_release(file);
    weir_embedded_release(embedded);
}

TEST(resp_bulk, ends_the_connection_with_any_promise_or_none)
{
    struct witness witness;
    weir_embedded *embedded = open_behind(add_refusing, &witness);
    weir_promise *file;

    weir_channel_write(weir_embedded_channel(embedded), head_of(100), NULL);
    weir_channel_write(weir_embedded_channel(embedded), range_of(0, 100), NULL);
    weir_embedded_run(embedded);
    assert_cut_off(embedded, &witness, -EIO, "fire");
    weir_embedded_release(embedded);

    embedded = open_behind(add_refusing, &witness);
    weir_channel_write(weir_embedded_channel(embedded), head_of(100), NULL);
    file = write_with_promise(embedded, range_of(0, 100), NULL);
    assert_int_equal(weir_promise_result(file), -EIO);
    assert_cut_off(embedded, &witness, -EIO, "fire");
    weir_promise_release(file);
    weir_embedded_release(embedded);
}

/* The first piece is in flight when the file is truncated. */
TEST(resp_bulk, ends_the_connection_if_its_file_is_truncated)
{
    struct witness witness;
    weir_embedded *embedded = open_behind(weir_chunked_writing_add, &witness);
    int file = make_file(100000);
    weir_promise *done;

    weir_channel_write(weir_embedded_channel(embedded), head_of(100000), NULL);
    done = write_with_promise(embedded, chunks_of(file, 100000, 1000), NULL);
    assert_false(weir_promise_is_done(done));
    assert_int_equal(ftruncate(file, 50000), 0);
    weir_embedded_make_space(embedded, 1000000);
    weir_embedded_run(embedded);
    assert_int_equal(weir_promise_result(done), WEIR_ETRUNCATED);
    assert_cut_off(embedded, &witness, WEIR_ETRUNCATED, "the chunk source failed");
    weir_promise_release(done);
    weir_embedded_release(embedded);
    assert_int_equal(close(file), 0);
}

TEST(resp_bulk, of_chunks_ends_with_a_line_end)
{
    struct witness witness;
    weir_embedded *embedded = open_behind(weir_chunked_writing_add, &witness);
    int file = make_file(10);
    weir_msg *msg;
    char text[64];
    size_t length = 0;

    assert_int_equal(pwrite(file, "0123456789", 10, 0), 10);
    weir_channel_write(weir_embedded_channel(embedded), head_of(12), NULL);
    weir_channel_write(weir_embedded_channel(embedded), chunks_of(file, 10, 4), NULL);
    assert_int_equal(weir_embedded_write_outbound(embedded, feed_bytes("ab", 2)), 0);
    while ((msg = weir_embedded_read_outbound(embedded)) != NULL) {
        memcpy(text + length, weir_buf_bytes(weir_buf_of(msg)),
               weir_buf_readable(weir_buf_of(msg)));
        length += weir_buf_readable(weir_buf_of(msg));
        weir_msg_release(msg);
    }
    assert_int_equal(length, 19);
    assert_memory_equal(text, "$12\r\n0123456789ab\r\n", 19);
    assert_int_equal(witness.err, 0);
    weir_embedded_release(embedded);
    assert_int_equal(close(file), 0);
}

/* A closing channel still sends the writes before it. */
TEST(resp_bulk, written_too_late_leaves_earlier_writes)
{
    struct witness witness;
    weir_embedded *embedded = open_behind(add_refusing, &witness);
    weir_channel *channel = weir_embedded_channel(embedded);
    weir_buf *early = NULL;

    assert_int_equal(weir_buf_create(5000, 0, &early), 0);
    memset(weir_buf_space(early), 'x', 5000);
    assert_int_equal(weir_buf_advance(early, 5000), 0);
    weir_channel_write_and_flush(channel, weir_buf_msg(early), NULL);
    weir_channel_write(channel, head_of(10), NULL);
    weir_channel_close(channel, NULL);
    weir_channel_write(channel, range_of(0, 10), NULL);
    weir_embedded_run(embedded);
    assert_true(weir_channel_is_open(channel) || witness.err == 0);
    assert_int_equal(witness.err, 0);
    weir_embedded_release(embedded);
}

TEST(resp_bulk, survives_allocation_failures)
{
    int file = make_file(100);

    for (unsigned n = 1;; n++) {
        struct witness witness;
        weir_embedded *embedded = open_behind(weir_chunked_writing_add, &witness);
        weir_msg *head = head_of(110), *range = chunks_of(file, 100, 30);
        weir_msg *rest = feed_bytes("0123456789", 10);
        bool failed;

        test_memory_fail_at(n);
        weir_channel_write(weir_embedded_channel(embedded), head, NULL);
        weir_channel_write(weir_embedded_channel(embedded), range, NULL);
        weir_channel_write_and_flush(weir_embedded_channel(embedded), rest, NULL);
        weir_embedded_run(embedded);
        failed = test_memory_failed();
        test_memory_fail_at(0);
        weir_embedded_release(embedded);
        if (!failed)
            break;
    }
    assert_int_equal(close(file), 0);
}

/* With sockets, where the kernel reads the file. The peer reads nothing until the file is
 * truncated. */
TEST_EACH_CONNECTION(resp_bulk, of_a_truncated_file_range_ends_the_connection)
{
    enum { SIZE = 64 << 20 };
    int file = make_file(SIZE);
    weir_promise *done;

    connection_prepare(connection, NULL);
    assert_int_equal(weir_resp_codec_add(weir_channel_pipeline(connection->client.channel), NULL),
                     0);
    connection_connect(connection);
    weir_channel_set_auto_read(connection->server.channel, false);
    done = connection_promise(&connection->client);
    weir_channel_write(connection->client.channel, head_of(SIZE), NULL);
    weir_channel_write_and_flush(connection->client.channel, range_of(file, SIZE), done);
    assert_int_equal(ftruncate(file, SIZE / 2), 0);
    connection->server.on_read = connection_discard;
    weir_channel_set_auto_read(connection->server.channel, true);
    assert_int_equal(connection_result(done), WEIR_ETRUNCATED);
    assert_int_equal(weir_channel_await_closed(connection->client.channel, TEST_TIMEOUT_NS), 0);
    assert_int_equal(close(file), 0);
}
