/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What docs/guide/20-frames.md shows.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "guide/guide_fixture.h"
#include "support/executor/log_capture.h"

/* doc:begin lines */
static void on_line(weir_ctx *ctx, weir_msg *msg)
{
    weir_string *answer, *line = weir_string_of(msg);

    if (weir_string_format(&answer, "you said %s\n", weir_string_text(line)) == 0)
        weir_write_and_flush(ctx, weir_string_msg(answer), NULL);
    weir_string_release(line);
}

/* A line that is too long or not UTF-8 is dropped; the next line is delivered as usual. */
static void on_error(weir_ctx *ctx, int err, const char *detail)
{
    weir_string *excuse;

    if (err != WEIR_ETOOLONG && err != WEIR_EMALFORMED)
        weir_fire_error(ctx, err, detail); /* the tail closes the channel */
    else if (weir_string_format(&excuse, "sorry: %s\n", detail) == 0)
        weir_write_and_flush(ctx, weir_string_msg(excuse), NULL);
}

static const weir_handler parrot = {.name = "parrot", .read = on_line, .error = on_error};

static int init(weir_channel *channel, void *user_data)
{
    weir_pipeline *pipeline = weir_channel_pipeline(channel);
    int err = weir_lines_add(pipeline, WEIR_LINES_OPTIONS(.max_length = 80));

    (void)user_data;
    if (!err)
        err = weir_strings_add(pipeline, WEIR_STRINGS_OPTIONS(.utf8 = true));
    if (!err)
        err = weir_pipeline_add_last(pipeline, &parrot, NULL);
    return err;
}
/* doc:end */

TEST(frames, of_a_parrot)
{
    weir_embedded *embedded = NULL;
    char line[90];

    memset(line, 'x', sizeof(line));
    line[sizeof(line) - 1] = '\0';
    assert_int_equal(weir_embedded_create(NULL, &embedded), 0);
    assert_int_equal(init(weir_embedded_channel(embedded), NULL), 0);
    assert_int_equal(weir_embedded_write_inbound(embedded, text_msg("hel")), 0);
    assert_null(weir_embedded_read_outbound(embedded));
    assert_int_equal(weir_embedded_write_inbound(embedded, text_msg("lo\r\n")), 0);
    assert_text(weir_embedded_read_outbound(embedded), "you said hello\n");
    assert_int_equal(weir_embedded_write_inbound(embedded, text_msg(line)), 0);
    assert_text(weir_embedded_read_outbound(embedded), "sorry: line over the limit of 80 bytes\n");
    assert_int_equal(weir_embedded_write_inbound(embedded, text_msg("\n\xff\nbye\n")), 0);
    assert_text(weir_embedded_read_outbound(embedded), "sorry: text is not valid UTF-8\n");
    assert_text(weir_embedded_read_outbound(embedded), "you said bye\n");
    weir_embedded_release(embedded);
}

/* doc:begin length */
static int add_frames(weir_pipeline *pipeline)
{
    int err = weir_length_field_add(pipeline, WEIR_LENGTH_FIELD_OPTIONS(.width = 2, .strip = 2));

    return err < 0 ? err
                   : weir_length_prepender_add(pipeline, WEIR_LENGTH_PREPENDER_OPTIONS(.width = 2));
}
/* doc:end */

TEST(frames, with_a_length_field)
{
    weir_embedded *embedded = NULL;
    weir_composite *out;
    weir_buf *in = NULL;
    char bytes[4];

    assert_int_equal(weir_embedded_create(NULL, &embedded), 0);
    assert_int_equal(add_frames(weir_embedded_pipeline(embedded)), 0);
    assert_int_equal(weir_buf_create_from("\0\2ok", 4, &in), 0);
    assert_int_equal(weir_embedded_write_inbound(embedded, weir_buf_msg(in)), 0);
    assert_text(weir_embedded_read_inbound(embedded), "ok");
    assert_int_equal(weir_embedded_write_outbound(embedded, text_msg("ok")), 0);
    out = weir_composite_of(weir_embedded_read_outbound(embedded));
    assert_int_equal(weir_composite_readable(out), 4);
    assert_int_equal(weir_composite_peek_bytes(out, bytes, 4), 0);
    assert_memory_equal(bytes, "\0\2ok", 4);
    weir_composite_release(out);
    weir_embedded_release(embedded);
}

/* doc:begin own */
struct reading {
    weir_msg msg;
    uint16_t sensor;
    int16_t tenths;
};

static void free_reading(weir_msg *msg)
{
    free(msg);
}

static const weir_msg_type reading_type = {.name = "reading", .destroy = free_reading};

/* Four bytes: the number of a sensor, and its measurement. */
static int decode_reading(weir_ctx *ctx, weir_buf *in, weir_msg **ret_msg)
{
    struct reading *reading;

    if (weir_buf_readable(in) < 4)
        return weir_decoder_need(ctx, 4);
    reading = malloc(sizeof(*reading));
    if (reading == NULL)
        return -ENOMEM;
    weir_msg_init(&reading->msg, &reading_type);
    (void)weir_buf_read_u16(in, &reading->sensor);
    (void)weir_buf_read_i16(in, &reading->tenths);
    *ret_msg = &reading->msg;
    return 1;
}

struct readings {
    weir_decoder_state decoder;
};

static const weir_decoder readings = {
    .handler = {.name = "readings", WEIR_DECODER_SLOTS(struct readings)}, .decode = decode_reading};
/* doc:end */

TEST(frames, of_ones_own)
{
    weir_embedded *embedded = embed(&readings.handler, NULL);
    static const uint8_t bytes[] = {0, 7, 0xff, 0xfe, 0, 8};
    struct reading *reading;

    for (size_t i = 0; i < sizeof(bytes); i++) {
        weir_buf *byte = NULL;

        assert_int_equal(weir_buf_create_from(bytes + i, 1, &byte), 0);
        assert_int_equal(weir_embedded_write_inbound(embedded, weir_buf_msg(byte)), 0);
    }
    reading = (struct reading *)(void *)weir_embedded_read_inbound(embedded);
    assert_non_null(reading);
    assert_int_equal(reading->sensor, 7);
    assert_int_equal(reading->tenths, -2);
    weir_msg_release(&reading->msg);
    assert_null(weir_embedded_read_inbound(embedded));
    weir_embedded_release(embedded);
}
