/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The base of encoders.
 */
#include <weir/codec.h>

#include <errno.h>
#include <string.h>

#include <weir/buf.h>
#include <weir/channel.h>
#include <weir/error.h>
#include <weir/memory.h>

#include "support/codec/feed.h"
#include "support/memory.h"

struct number {
    weir_msg msg;
    int value;
    unsigned *destroyed;
};

static void destroy(weir_msg *msg)
{
    (*WEIR_CONTAINER_OF(msg, struct number, msg)->destroyed)++;
}

static const weir_msg_type number_type = {.name = "number", .destroy = destroy};

static int encode(weir_ctx *ctx, weir_msg *msg, weir_buf *out)
{
    int value = WEIR_CONTAINER_OF(msg, struct number, msg)->value;

    (void)ctx;
    return value >= 0 ? weir_buf_printf(out, "<%d>", value) : -ERANGE;
}

static const weir_encoder numbers = {
    .handler = {.name = "numbers", WEIR_ENCODER_SLOTS},
    .type = &number_type,
    .encode = encode,
};

static weir_embedded *open_channel(void)
{
    weir_embedded *embedded = NULL;

    assert_int_equal(weir_embedded_create(NULL, &embedded), 0);
    assert_int_equal(
        weir_pipeline_add_last(weir_embedded_pipeline(embedded), &numbers.handler, NULL), 0);
    return embedded;
}

static weir_msg *number(struct number *number, int value, unsigned *destroyed)
{
    *number = (struct number){.value = value, .destroyed = destroyed};
    weir_msg_init(&number->msg, &number_type);
    return &number->msg;
}

static void assert_goes_out(weir_embedded *embedded, const char *text)
{
    weir_msg *msg = weir_embedded_read_outbound(embedded);

    assert_non_null(msg);
    assert_int_equal(weir_buf_readable(weir_buf_of(msg)), strlen(text));
    assert_memory_equal(weir_buf_bytes(weir_buf_of(msg)), text, strlen(text));
    weir_msg_release(msg);
}

TEST(encoder, encodes_its_messages_and_releases_them)
{
    weir_embedded *embedded = open_channel();
    struct number memory;
    unsigned destroyed = 0;

    assert_int_equal(weir_embedded_write_outbound(embedded, number(&memory, 7, &destroyed)), 0);
    assert_int_equal(destroyed, 1);
    assert_goes_out(embedded, "<7>");
    weir_embedded_release(embedded);
}

TEST(encoder, passes_other_messages_on)
{
    weir_embedded *embedded = open_channel();

    assert_int_equal(weir_embedded_write_outbound(embedded, feed_bytes("plain", 5)), 0);
    assert_goes_out(embedded, "plain");
    weir_embedded_release(embedded);
}

TEST(encoder, fails_the_write_if_encode_fails)
{
    weir_embedded *embedded = open_channel();
    struct number memory;
    unsigned destroyed = 0;

    assert_int_equal(weir_embedded_write_outbound(embedded, number(&memory, -1, &destroyed)),
                     -ERANGE);
    assert_int_equal(destroyed, 1);
    assert_null(weir_embedded_read_outbound(embedded));
    assert_true(weir_channel_is_open(weir_embedded_channel(embedded)));
    weir_embedded_release(embedded);
}

TEST(encoder, logs_a_failure_without_a_promise)
{
    weir_embedded *embedded = open_channel();
    struct number memory;
    unsigned destroyed = 0;

    weir_channel_write(weir_embedded_channel(embedded), number(&memory, -1, &destroyed), NULL);
    weir_embedded_run(embedded);
    assert_int_equal(weir_embedded_take_error(embedded), -ERANGE);
    assert_int_equal(destroyed, 1);
    weir_embedded_release(embedded);
}

TEST(encoder, survives_allocation_failures)
{
    for (unsigned n = 1;; n++) {
        bool failed;
        weir_embedded *embedded = open_channel();
        struct number memory;
        unsigned destroyed = 0;
        int err;

        test_memory_fail_at(n);
        err = weir_embedded_write_outbound(embedded, number(&memory, 7, &destroyed));
        failed = test_memory_failed();
        test_memory_fail_at(0);
        assert_int_equal(destroyed, 1);
        weir_embedded_release(embedded);
        if (!failed)
            break;
        assert_true(err == 0 || err == -ENOMEM);
    }
}
