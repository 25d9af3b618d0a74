/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How writes become records: which writes share a record, and what happens to records that are not
 * accepted. What is sent is in test_tls.c.
 */
#include <errno.h>

#include <weir/buf.h>
#include <weir/composite.h>
#include <weir/error.h>
#include <weir/pipeline.h>
#include <weir/tls.h>

#include "channel/outbound.h"
#include "support/tls/tls_pair.h"

static void open_pair(struct tls_pair *pair, const struct tls_pair_options *options)
{
    tls_pair_open(pair, options);
    assert_events(&pair->client.events, "handshake(ok)");
    assert_events(&pair->server.events, "handshake(ok)");
}

/* The record has bytes of other writes, which must not be cancelled with it. */
TEST(tls_writes, a_cancelled_write_does_not_cancel_others)
{
    struct tls_pair pair;
    weir_promise *promise;

    open_pair(&pair, NULL);
    promise = tls_side_promise(&pair.client, "b");
    tls_side_write(&pair.client, tls_pair_bytes(3), NULL);
    weir_channel_write(pair.client.channel, tls_pair_bytes(1000), promise);
    assert_int_equal(weir_promise_cancel(promise), 0);
    weir_channel_flush(pair.client.channel);
    tls_pair_run(&pair);
    tls_side_send_text(&pair.client, "and on");
    tls_pair_run(&pair);
    assert_int_equal(pair.server.received, 9);
    assert_int_equal(event_log_count(&pair.server.events, "error"), 0);
    assert_events(&pair.client.events, "b=WEIR_ECANCELED");
    weir_promise_release(promise);
    tls_pair_close(&pair);
}

/* The peer would reject the next record if one before it was made and not sent. */
TEST(tls_writes, a_cancelled_write_alone_makes_no_record)
{
    struct tls_pair pair;
    weir_promise *promise;

    open_pair(&pair, NULL);
    promise = tls_side_promise(&pair.client, "a");
    weir_channel_write(pair.client.channel, tls_pair_bytes(10), promise);
    assert_int_equal(weir_promise_cancel(promise), 0);
    weir_channel_flush(pair.client.channel);
    tls_pair_run(&pair);
    tls_side_send_text(&pair.client, "and on");
    tls_pair_run(&pair);
    assert_int_equal(pair.server.received, 6);
    assert_int_equal(event_log_count(&pair.server.events, "error"), 0);
    assert_events(&pair.client.events, "a=WEIR_ECANCELED");
    weir_promise_release(promise);
    tls_pair_close(&pair);
}

/* A record that was made has to go out, or nothing behind it can be read. */
TEST(tls_writes, the_cap_is_for_what_is_written_and_not_for_records)
{
    struct tls_pair pair;

    open_pair(&pair,
              &(const struct tls_pair_options){
                  .client_channel = WEIR_EMBEDDED_OPTIONS(
                          .socket_space = 20000,
                          .channel = WEIR_CHANNEL_OPTIONS(.write_cap =
                                                              2 * (40000 + WEIR__OUTBOUND_COST)))});
    tls_side_write(&pair.client, tls_pair_bytes(40000), "a");
    tls_side_write(&pair.client, tls_pair_bytes(40000), "b");
    tls_side_write(&pair.client, tls_pair_bytes(40000), "c");
    assert_int_equal(event_log_count(&pair.client.events, "c=WEIR_EFULL"), 1);
    weir_channel_flush(pair.client.channel);
    weir_channel_close(pair.client.channel, NULL);
    weir_embedded_make_space(pair.client.embedded, 100000);
    tls_pair_run(&pair);
    assert_int_equal(event_log_count(&pair.client.events, "a=ok"), 1);
    assert_int_equal(event_log_count(&pair.client.events, "b=ok"), 1);
    assert_int_equal(pair.server.received, 80000);
    assert_int_equal(event_log_count(&pair.server.events, "ended"), 1);
    assert_int_equal(event_log_count(&pair.server.events, "error"), 0);
    tls_pair_close(&pair);
}

TEST(tls_writes, many_small_pieces_need_no_more_room_than_few)
{
    weir_composite *composite = NULL;
    struct tls_pair pair;
    weir_msg *sent;

    open_pair(&pair, NULL);
    assert_int_equal(weir_composite_create(SIZE_MAX, &composite), 0);
    for (int i = 0; i < 5000; i++)
        assert_int_equal(weir_composite_add(composite, tls_pair_bytes(1)), 0);
    tls_side_write(&pair.client, weir_composite_msg(composite), "w");
    weir_channel_flush(pair.client.channel);
    sent = weir_embedded_read_outbound(pair.client.embedded);
    assert_non_null(sent);
    assert_in_range(weir_buf_capacity(weir_buf_of(sent)), 5000, 16384);
    weir_msg_release(sent);
    /* 5000 buffers hold much more than 5000 bytes. */
    assert_events(&pair.client.events, "writable(no) writable(yes) w=ok");
    tls_pair_close(&pair);
}

/* A handler in front, which has no memory for one message. */
static bool refuses;

static void refuse_once(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    if (!refuses) {
        weir_write(ctx, msg, done);
        return;
    }
    refuses = false;
    weir_msg_release(msg);
    weir_ctx_report(ctx, done, -ENOMEM, NULL);
}

static const weir_handler refuser = {.name = "refuser", .write = refuse_once};

/* What comes behind a record that is missing looks forged: nothing does. */
static void check_refused(size_t length, const char *name, const char *client)
{
    struct tls_pair pair;

    open_pair(&pair, NULL);
    assert_int_equal(
        weir_pipeline_add(pair.client.pipeline, WEIR_PLACE(.first = true), &refuser, NULL), 0);
    refuses = true;
    tls_side_write(&pair.client, tls_pair_bytes(length), name);
    weir_channel_flush(pair.client.channel);
    tls_pair_run(&pair);
    assert_false(refuses);
    assert_events(&pair.client.events, client);
    assert_events(&pair.server.events, "error(WEIR_ECUTOFF) inactive");
    tls_pair_close(&pair);
}

TEST(tls_writes, ends_if_a_record_was_rejected)
{
    check_refused(200000, NULL, "writable(no) error(ENOMEM) writable(yes) error(ENOMEM) inactive");
    check_refused(1000, "w", "w=ENOMEM error(ENOMEM) inactive");
}

/* Small writes share a record, and the promise of that record is theirs. */
TEST(tls_writes, that_share_a_record_share_its_failure)
{
    struct tls_pair pair;

    open_pair(&pair, NULL);
    assert_int_equal(
        weir_pipeline_add(pair.client.pipeline, WEIR_PLACE(.first = true), &refuser, NULL), 0);
    refuses = true;
    tls_side_write(&pair.client, tls_pair_bytes(10), "a");
    tls_side_write(&pair.client, tls_pair_bytes(10), "b");
    weir_channel_flush(pair.client.channel);
    tls_pair_run(&pair);
    assert_events(&pair.client.events, "a=ENOMEM b=ENOMEM error(ENOMEM) inactive");
    tls_pair_close(&pair);
}

TEST(tls_writes, fail_quietly_when_the_output_is_closed)
{
    struct tls_pair pair;

    open_pair(&pair, &(const struct tls_pair_options){
                         .client_channel = WEIR_EMBEDDED_OPTIONS(.peer_stays = true)});
    weir_channel_shutdown_output(pair.client.channel, NULL);
    tls_side_write(&pair.client, tls_pair_bytes(10), "w");
    weir_channel_flush(pair.client.channel);
    assert_events(&pair.client.events, "w=WEIR_ECLOSED");
    tls_pair_close(&pair);
}

/* ---- long writes ---- */

/* In front of TLS: what is written between two flushes. */
struct meter {
    size_t unflushed;
    size_t most;
    size_t flushes;
};

static struct meter meter;

static void on_meter_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    meter.unflushed += weir_msg_size(msg);
    if (meter.unflushed > meter.most)
        meter.most = meter.unflushed;
    weir_write(ctx, msg, done);
}

static void on_meter_flush(weir_ctx *ctx)
{
    meter.unflushed = 0;
    meter.flushes++;
    weir_flush(ctx);
}

static void add_meter(struct tls_side *side)
{
    static const weir_handler handler = {
        .name = "meter", .write = on_meter_write, .flush = on_meter_flush};

    meter = (struct meter){0};
    assert_int_equal(weir_pipeline_add_first(weir_channel_pipeline(side->channel), &handler, NULL),
                     0);
}

/* The records are sent while they are in the cache, and their memory is used again. */
TEST(tls_writes, a_long_write_is_sent_in_several_pieces)
{
    struct tls_pair pair;

    open_pair(&pair, NULL);
    pair.server.is_long = true;
    add_meter(&pair.client);
    tls_side_write(&pair.client, tls_pair_bytes(400000), "a");
    weir_channel_flush(pair.client.channel);
    assert_in_range(meter.most, 7 * 16384, 128 * 1024);
    assert_int_equal(meter.flushes, 4);
    tls_pair_run(&pair);
    assert_int_equal(pair.server.received, 400000);
    tls_pair_close(&pair);
}

static void close_when_sent(weir_promise *promise, void *user_data)
{
    struct tls_side *side = user_data;

    assert_int_equal(weir_promise_result(promise), 0);
    weir_channel_write(side->channel, tls_pair_bytes(1000), NULL);
    weir_channel_flush(side->channel);
    weir_channel_close(side->channel, NULL);
}

/* The listener runs between two pieces: what was written before it, and by it, is sent first. */
TEST(tls_writes, a_close_in_the_middle_of_a_long_write_waits_for_the_rest)
{
    struct tls_pair pair;
    weir_listener listener = {.fn = close_when_sent, .user_data = &pair.client};
    weir_promise *promise;

    open_pair(&pair, NULL);
    pair.server.is_long = true;
    promise = tls_side_promise(&pair.client, "a");
    weir_promise_listen(promise, &listener);
    weir_channel_write(pair.client.channel, tls_pair_bytes(120000), promise);
    tls_side_write(&pair.client, tls_pair_bytes(300000), "b");
    weir_channel_flush(pair.client.channel);
    tls_pair_run(&pair);
    assert_int_equal(pair.server.received, 421000);
    assert_int_equal(event_log_count(&pair.server.events, "error"), 0);
    assert_int_equal(event_log_count(&pair.client.events, "b=ok"), 1);
    assert_false(weir_channel_is_open(pair.client.channel));
    weir_promise_release(promise);
    tls_pair_close(&pair);
}

/* ---- flushes in a read ---- */

static void answer_in_pieces(weir_ctx *ctx, weir_msg *msg)
{
    weir_msg_release(msg);
    for (int i = 0; i < 3; i++)
        weir_write_and_flush(ctx, tls_pair_bytes(1), NULL);
}

TEST(tls_writes, flushed_in_a_read_share_a_record)
{
    uint64_t before, alone;
    struct tls_pair pair;

    open_pair(&pair, NULL);
    before = pair.server.sent;
    tls_side_write(&pair.server, tls_pair_bytes(3), NULL);
    weir_channel_flush(pair.server.channel);
    tls_pair_run(&pair);
    alone = pair.server.sent - before;
    pair.server.on_read = answer_in_pieces;
    tls_side_send_text(&pair.client, "?");
    tls_pair_run(&pair);
    assert_int_equal(pair.server.sent - before, 2 * alone);
    assert_int_equal(pair.client.received, 6);
    tls_pair_close(&pair);
}

#define PIECES 40
#define PIECE 1000

static int64_t most_pending;
static unsigned pieces;

static void answer_while_writable(weir_ctx *ctx, weir_msg *msg)
{
    int64_t pending;

    weir_msg_release(msg);
    for (pieces = 0; pieces < PIECES && weir_ctx_is_writable(ctx); pieces++) {
        weir_write_and_flush(ctx, tls_pair_bytes(PIECE), NULL);
        pending = weir_channel_pending_bytes(weir_ctx_channel(ctx));
        most_pending = pending > most_pending ? pending : most_pending;
    }
}

/* They do not wait for the end of the read: the writer goes on, and memory is bounded. */
TEST(tls_writes, flushed_in_a_read_while_unwritable_are_sealed)
{
    struct tls_pair pair;

    open_pair(&pair,
              &(const struct tls_pair_options){
                  .server_channel =
                      WEIR_EMBEDDED_OPTIONS(.channel = WEIR_CHANNEL_OPTIONS(.low_mark = 4000,
                                                                            .high_mark = 8000))});
    pair.client.is_long = true;
    pair.server.on_read = answer_while_writable;
    most_pending = 0;
    tls_side_send_text(&pair.client, "?");
    tls_pair_run(&pair);
    assert_int_equal(pieces, PIECES);
    assert_int_equal(pair.client.received, PIECES * PIECE);
    assert_true(most_pending < 16000);
    tls_pair_close(&pair);
}

static void answer_the_end(weir_ctx *ctx, const weir_msg *event)
{
    if (event == weir_event_input_closed())
        weir_write_and_flush(ctx, tls_pair_bytes(5), NULL);
}

/* The stream ends without close_notify: the event comes out of the decoder. */
TEST(tls_writes, flushed_at_the_end_of_the_input_are_sealed)
{
    struct tls_pair pair;

    open_pair(&pair, &(const struct tls_pair_options){
                         .server_channel =
                             WEIR_EMBEDDED_OPTIONS(.channel = WEIR_CHANNEL_OPTIONS(.half_closure =
                                                                                       true))});
    pair.server.on_event = answer_the_end;
    weir_embedded_end_input(pair.server.embedded);
    assert_events(&pair.server.events, "error(WEIR_ECUTOFF) input-closed");
    (void)tls_pair_transfer(&pair, &pair.server, &pair.client);
    assert_int_equal(pair.client.received, 5);
    tls_pair_close(&pair);
}
