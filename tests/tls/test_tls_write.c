/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How plain bytes become records, where that is not seen from outside: who goes with whom, and what
 * happens to a record that nobody takes. What is sent as such is in test_tls.c.
 */
#include <errno.h>

#include <weir/buf.h>
#include <weir/composite.h>
#include <weir/error.h>
#include <weir/tls.h>

#include "channel/outbound.h"
#include "support/tls/tls_pair.h"

static void open_duet(struct duet *duet, const struct duet_options *options)
{
    duet_open(duet, options);
    assert_events(&duet->client.events, "shaken(ok)");
    assert_events(&duet->server.events, "shaken(ok)");
}

/* The record has bytes of others, who do not wait: they must not go with who has left. */
TEST(tls_writes, a_write_that_was_cancelled_takes_nobody_with_it)
{
    struct duet duet;
    weir_promise *promise;

    open_duet(&duet, NULL);
    promise = duet_promise(&duet.client, "b");
    duet_write(&duet.client, duet_bytes(3), NULL);
    weir_channel_write(duet.client.channel, duet_bytes(1000), promise);
    assert_int_equal(weir_promise_cancel(promise), 0);
    weir_channel_flush(duet.client.channel);
    duet_play(&duet);
    duet_say(&duet.client, "and on");
    duet_play(&duet);
    assert_int_equal(duet.server.received, 9);
    assert_int_equal(event_log_count(&duet.server.events, "error"), 0);
    assert_events(&duet.client.events, "b=WEIR_ECANCELED");
    weir_promise_release(promise);
    duet_close(&duet);
}

/* A record that was made has to go out, or nothing behind it can be read. */
TEST(tls_writes, the_cap_is_for_what_is_written_and_not_for_records)
{
    struct duet duet;

    open_duet(&duet,
              &(const struct duet_options){
                  .client_channel = WEIR_EMBEDDED_OPTIONS(
                          .socket_space = 20000,
                          .channel = WEIR_CHANNEL_OPTIONS(.write_cap =
                                                              2 * (40000 + WEIR__OUTBOUND_COST)))});
    duet_write(&duet.client, duet_bytes(40000), "a");
    duet_write(&duet.client, duet_bytes(40000), "b");
    duet_write(&duet.client, duet_bytes(40000), "c");
    assert_int_equal(event_log_count(&duet.client.events, "c=WEIR_EFULL"), 1);
    weir_channel_flush(duet.client.channel);
    weir_channel_close(duet.client.channel, NULL);
    weir_embedded_make_space(duet.client.embedded, 100000);
    duet_play(&duet);
    assert_int_equal(event_log_count(&duet.client.events, "a=ok"), 1);
    assert_int_equal(event_log_count(&duet.client.events, "b=ok"), 1);
    assert_int_equal(duet.server.received, 80000);
    assert_int_equal(event_log_count(&duet.server.events, "ended"), 1);
    assert_int_equal(event_log_count(&duet.server.events, "error"), 0);
    duet_close(&duet);
}

TEST(tls_writes, many_small_pieces_need_no_more_room_than_few)
{
    weir_composite *composite = NULL;
    struct duet duet;
    weir_msg *sent;

    open_duet(&duet, NULL);
    assert_int_equal(weir_composite_create(SIZE_MAX, &composite), 0);
    for (int i = 0; i < 5000; i++)
        assert_int_equal(weir_composite_add(composite, duet_bytes(1)), 0);
    duet_write(&duet.client, weir_composite_msg(composite), "w");
    weir_channel_flush(duet.client.channel);
    sent = weir_embedded_read_outbound(duet.client.embedded);
    assert_non_null(sent);
    assert_in_range(weir_buf_capacity(weir_buf_of(sent)), 5000, 16384);
    weir_msg_release(sent);
    /* 5000 buffers hold much more than 5000 bytes. */
    assert_events(&duet.client.events, "writable(no) writable(yes) w=ok");
    duet_close(&duet);
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
    struct duet duet;

    open_duet(&duet, NULL);
    assert_int_equal(
        weir_pipeline_add(duet.client.pipeline, WEIR_PLACE(.first = true), &refuser, NULL), 0);
    refuses = true;
    duet_write(&duet.client, duet_bytes(length), name);
    weir_channel_flush(duet.client.channel);
    duet_play(&duet);
    assert_false(refuses);
    assert_events(&duet.client.events, client);
    assert_events(&duet.server.events, "error(WEIR_ECUTOFF) inactive");
    duet_close(&duet);
}

TEST(tls_writes, ends_if_a_record_was_refused)
{
    check_refused(200000, NULL, "writable(no) error(ENOMEM) writable(yes) error(ENOMEM) inactive");
    check_refused(1000, "w", "w=ENOMEM error(ENOMEM) inactive");
}

/* Small writes share a record, and the promise of that record is theirs. */
TEST(tls_writes, that_share_a_record_share_its_failure)
{
    struct duet duet;

    open_duet(&duet, NULL);
    assert_int_equal(
        weir_pipeline_add(duet.client.pipeline, WEIR_PLACE(.first = true), &refuser, NULL), 0);
    refuses = true;
    duet_write(&duet.client, duet_bytes(10), "a");
    duet_write(&duet.client, duet_bytes(10), "b");
    weir_channel_flush(duet.client.channel);
    duet_play(&duet);
    assert_events(&duet.client.events, "a=ENOMEM b=ENOMEM error(ENOMEM) inactive");
    duet_close(&duet);
}

TEST(tls_writes, fail_quietly_when_the_output_is_closed)
{
    struct duet duet;

    open_duet(&duet, &(const struct duet_options){.client_channel =
                                                      WEIR_EMBEDDED_OPTIONS(.peer_stays = true)});
    weir_channel_shutdown_output(duet.client.channel, NULL);
    duet_write(&duet.client, duet_bytes(10), "w");
    weir_channel_flush(duet.client.channel);
    assert_events(&duet.client.events, "w=WEIR_ECLOSED");
    duet_close(&duet);
}
