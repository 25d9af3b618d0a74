/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What docs/guide/07-pipelines.md shows.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "guide/guide_fixture.h"
#include "support/executor/log_capture.h"

/* doc:begin duplex */
/* Counts both ways: a handler may have inbound and outbound slots. */
struct meter {
    uint64_t in, out;
};

static void meter_read(weir_ctx *ctx, weir_msg *msg)
{
    ((struct meter *)weir_ctx_state(ctx))->in += weir_msg_size(msg);
    weir_fire_read(ctx, msg);
}

static void meter_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    ((struct meter *)weir_ctx_state(ctx))->out += weir_msg_size(msg);
    weir_write(ctx, msg, done);
}

static const weir_handler meter = {
    .name = "meter", .state_size = sizeof(struct meter), .read = meter_read, .write = meter_write};
/* doc:end */

/* doc:begin shout */
/* Changes messages in place: no one else has a reference. */
static void shout_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    weir_buf *buf = weir_buf_of(msg);

    for (size_t i = 0; buf != NULL && i < weir_buf_readable(buf); i++) {
        size_t at = weir_buf_read_index(buf) + i;
        uint8_t c;

        (void)weir_buf_get_u8(buf, at, &c);
        (void)weir_buf_set_u8(buf, at, (uint8_t)toupper(c));
    }
    weir_write(ctx, msg, done);
}

static const weir_handler shout = {.name = "shout", .write = shout_write};
/* doc:end */

/* doc:begin add */
static int init(weir_channel *channel, void *user_data)
{
    weir_pipeline *pipeline = weir_channel_pipeline(channel);
    int err = weir_pipeline_add_last(pipeline, &meter, NULL);

    (void)user_data;
    if (!err)
        err = weir_pipeline_add_last(pipeline, &shout, NULL);
    if (!err)
        err = weir_pipeline_add_last_as(pipeline, "outer", &meter, NULL); /* a second one */
    return err; /* an error closes the channel */
}
/* doc:end */

TEST(pipelines, are_in_order)
{
    weir_embedded *embedded = NULL;
    weir_pipeline *pipeline;
    char text[80];

    assert_int_equal(weir_embedded_create(NULL, &embedded), 0);
    pipeline = weir_embedded_pipeline(embedded);
    assert_int_equal(init(weir_embedded_channel(embedded), NULL), 0);
    weir_pipeline_dump(pipeline, text, sizeof(text));
    assert_string_equal(text, "head <-> meter <-> shout <-> outer <-> tail");
    assert_int_equal(weir_embedded_write_outbound(embedded, text_msg("hey")), 0);
    assert_text(weir_embedded_read_outbound(embedded), "HEY");
    assert_int_equal(((struct meter *)weir_ctx_state(weir_pipeline_find(pipeline, "meter")))->out,
                     3);
    weir_embedded_release(embedded);
}

/* doc:begin once */
static void greet_read(weir_ctx *ctx, weir_msg *msg)
{
    uint8_t first = 0;

    (void)weir_buf_peek_u8(weir_buf_of(msg), &first);
    if (first == '!' &&
        weir_pipeline_add_after(weir_ctx_pipeline(ctx), weir_ctx_name(ctx), &shout, NULL) < 0)
        weir_fire_error(ctx, -ENOMEM, "no memory to shout");
    weir_fire_read(ctx, msg); /* continues behind this handler */
    weir_ctx_remove(ctx);     /* its work is done */
}

static const weir_handler choose = {.name = "choose", .read = greet_read};
/* doc:end */

TEST(pipelines, change_while_they_are_used)
{
    weir_embedded *embedded = embed(&choose, NULL);
    char text[80];

    assert_int_equal(weir_embedded_write_inbound(embedded, text_msg("!")), 0);
    assert_text(weir_embedded_read_inbound(embedded), "!");
    weir_pipeline_dump(weir_embedded_pipeline(embedded), text, sizeof(text));
    assert_string_equal(text, "head <-> shout <-> tail");
    weir_embedded_release(embedded);
}

/* doc:begin event */
struct login {
    weir_msg msg; /* first: it is a message */
    char user[32];
};

static void free_login(weir_msg *msg)
{
    free(msg);
}

static const weir_msg_type login_type = {.name = "login", .destroy = free_login};

static void greet_event(weir_ctx *ctx, weir_msg *event)
{
    const struct login *login = (const struct login *)event;
    weir_buf *buf;

    if (weir_msg_is(event, &login_type) && weir_buf_create(64, 0, &buf) == 0) {
        (void)weir_buf_printf(buf, "welcome, %s\n", login->user);
        weir_write_and_flush(ctx, weir_buf_msg(buf), NULL);
    }
    weir_fire_event(ctx, event); /* for other handlers */
}

static const weir_handler greet = {.name = "greet", .event = greet_event};
/* doc:end */

TEST(pipelines, carry_events)
{
    weir_embedded *embedded = embed(&greet, NULL);
    struct login *login = malloc(sizeof(*login));

    assert_non_null(login);
    weir_msg_init(&login->msg, &login_type);
    strcpy(login->user, "ada");
    weir_channel_fire_event(weir_embedded_channel(embedded), &login->msg);
    weir_embedded_run(embedded);
    assert_text(weir_embedded_read_outbound(embedded), "welcome, ada\n");
    weir_embedded_release(embedded);
}

/* doc:begin error */
static void guard_error(weir_ctx *ctx, int err, const char *detail)
{
    if (err == -EBADMSG)
        weir_close(ctx, NULL); /* the peer's fault: not worth a line in the log */
    else
        weir_fire_error(ctx, err, detail);
}

static const weir_handler guard = {.name = "guard", .error = guard_error};
/* doc:end */

TEST(pipelines, carry_errors)
{
    weir_embedded *embedded = embed(&guard, NULL);

    weir_pipeline_fire_error(weir_embedded_pipeline(embedded), -EBADMSG, NULL);
    weir_embedded_run(embedded);
    assert_int_equal(weir_embedded_take_error(embedded), 0);
    assert_false(weir_channel_is_open(weir_embedded_channel(embedded)));
    weir_embedded_release(embedded);
}

TEST(pipelines, tell_the_tail_of_errors_that_nobody_wants)
{
    weir_embedded *embedded = embed(&guard, NULL);

    log_capture_start();
    weir_pipeline_fire_error(weir_embedded_pipeline(embedded), -EIO, "the disk is gone");
    assert_int_equal(weir_embedded_take_error(embedded), -EIO);
    weir_embedded_release(embedded);
}

/* doc:begin timer */
struct idle {
    weir_timer timer;
};

static void on_idle(weir_ctx *ctx, weir_timer *timer)
{
    (void)timer;
    weir_close(ctx, NULL);
}

static void idle_again(weir_ctx *ctx)
{
    struct idle *self = weir_ctx_state(ctx);

    (void)weir_ctx_timer_start(ctx, &self->timer, weir_seconds(60), on_idle);
}

static void idle_active(weir_ctx *ctx)
{
    idle_again(ctx);
    weir_fire_active(ctx);
}

static void idle_read(weir_ctx *ctx, weir_msg *msg)
{
    idle_again(ctx); /* restarts a running timer */
    weir_fire_read(ctx, msg);
}

static const weir_handler idle = {
    .name = "idle",
    .state_size = sizeof(struct idle),
    .added = idle_again, /* for a channel that is active already */
    .active = idle_active,
    .read = idle_read,
};
/* doc:end */

TEST(pipelines, have_timers)
{
    weir_embedded *embedded = embed(&idle, NULL);
    weir_channel *channel = weir_embedded_channel(embedded);

    weir_embedded_advance(embedded, weir_seconds(59));
    assert_int_equal(weir_embedded_write_inbound(embedded, text_msg("x")), 0);
    weir_embedded_advance(embedded, weir_seconds(59));
    assert_true(weir_channel_is_open(channel));
    weir_embedded_advance(embedded, weir_seconds(1));
    assert_false(weir_channel_is_open(channel));
    weir_embedded_release(embedded);
}
