/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What docs/guide/08-buffers.md shows.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "guide/guide_fixture.h"

/* doc:begin make */
/* A frame: a length of two bytes, then a text. */
static int make_frame(const char *name, int score, weir_buf **ret_frame)
{
    weir_buf *buf;
    int err = weir_buf_create(64, 0, &buf); /* 64 bytes; it grows */

    if (err < 0)
        return err;
    err = weir_buf_write_u16(buf, 0); /* the length, set below */
    if (!err)
        err = weir_buf_printf(buf, "%s=%d", name, score);
    if (!err)
        err = weir_buf_set_u16(buf, 0, (uint16_t)(weir_buf_readable(buf) - 2));
    if (err < 0)
        weir_buf_release(buf);
    else
        *ret_frame = buf;
    return err;
}
/* doc:end */

/* doc:begin read */
/* The text of the next frame as a view of `buf`; -EAGAIN if the frame is incomplete. */
static int read_frame(weir_buf *buf, weir_buf **ret_text)
{
    uint16_t length;

    if (weir_buf_peek_u16(buf, &length) < 0 || weir_buf_readable(buf) < 2u + length)
        return -EAGAIN; /* nothing was consumed */
    (void)weir_buf_skip(buf, 2);
    return weir_buf_read_slice(buf, length, ret_text);
}
/* doc:end */

TEST(buffers, are_written_and_read)
{
    weir_buf *frame = NULL, *text = NULL;

    assert_int_equal(make_frame("ada", 42, &frame), 0);
    assert_int_equal(weir_buf_readable(frame), 8);
    assert_int_equal(read_frame(frame, &text), 0);
    assert_int_equal(read_frame(frame, &text), -EAGAIN);
    weir_buf_release(frame); /* the view holds the memory */
    assert_text(weir_buf_msg(text), "ada=42");
}

/* doc:begin checked */
static int parse(weir_buf *buf, uint8_t *ret_kind, uint32_t *ret_size, uint64_t *ret_id)
{
    int err = weir_buf_read_u8(buf, ret_kind);

    if (!err)
        err = weir_buf_read_u32_le(buf, ret_size);
    if (!err)
        err = weir_buf_read_varint(buf, ret_id);
    return err; /* WEIR_EBOUNDS: the message is too short */
}
/* doc:end */

TEST(buffers, check_every_access)
{
    weir_buf *buf = NULL;
    uint8_t kind;
    uint32_t size;
    uint64_t id = 0;

    assert_int_equal(weir_buf_create_from("\x01\x02\x00\x00\x00\x07", 6, &buf), 0);
    assert_int_equal(parse(buf, &kind, &size, &id), 0);
    assert_int_equal(id, 7);
    assert_int_equal(parse(buf, &kind, &size, &id), WEIR_EBOUNDS);
    weir_buf_release(buf);
}

/* doc:begin fan-out */
/* Sends the same bytes to several channels, as views with their own indices. Takes msg. */
static void send_to_all(weir_channel **channels, size_t count, weir_msg *msg)
{
    weir_msg *share;

    for (size_t i = 0; i < count; i++)
        if (weir_msg_share(msg, &share) == 0)
            weir_channel_write_and_flush(channels[i], share, NULL);
    weir_msg_release(msg); /* ours; the memory is freed when the last view was sent */
}
/* doc:end */

static const weir_handler nothing = {.name = "nothing"};

TEST(buffers, are_shared_by_views)
{
    weir_embedded *a = embed(&nothing, NULL), *b = embed(&nothing, NULL);
    weir_channel *channels[] = {weir_embedded_channel(a), weir_embedded_channel(b)};

    send_to_all(channels, 2, text_msg("news"));
    assert_text(weir_embedded_read_outbound(a), "news");
    assert_text(weir_embedded_read_outbound(b), "news");
    weir_embedded_release(b);
    weir_embedded_release(a);
}

/* doc:begin composite */
/* Puts a header in front of a body, without copying. Takes the body. */
static int with_header(weir_msg *body, uint32_t size, weir_msg **ret_whole)
{
    weir_composite *whole = NULL;
    weir_buf *header = NULL;
    int err = weir_composite_create(0, &whole);

    if (!err)
        err = weir_buf_create(4, 4, &header);
    if (!err) {
        (void)weir_buf_write_u32(header, size); /* fits */
        err = weir_composite_add(whole, weir_buf_msg(header));
    }
    if (!err)
        err = weir_composite_add(whole, body); /* takes it, even on failure */
    else
        weir_msg_release(body);
    if (!err)
        *ret_whole = weir_composite_msg(whole);
    else
        weir_composite_release(whole);
    return err;
}
/* doc:end */

TEST(buffers, are_put_together_without_copying)
{
    weir_msg *whole = NULL;
    weir_composite *composite;
    uint32_t size;
    char body[5] = "";

    assert_int_equal(with_header(text_msg("body"), 4, &whole), 0);
    composite = weir_composite_of(whole);
    assert_int_equal(weir_composite_readable(composite), 8);
    assert_int_equal(weir_composite_read_u32(composite, &size), 0);
    assert_int_equal(weir_composite_read_bytes(composite, body, 4), 0);
    assert_string_equal(body, "body");
    weir_msg_release(whole);
}

/* doc:begin wrap */
static void free_page(void *data, void *user_data)
{
    (void)user_data;
    free(data);
}

static int page_of(const char *text, weir_buf **ret_buf)
{
    char *page = strdup(text);

    if (page == NULL)
        return -ENOMEM;
    return weir_buf_wrap(page, strlen(page), free_page, NULL, ret_buf); /* frees it on failure */
}
/* doc:end */

TEST(buffers, wrap_memory_that_exists)
{
    weir_buf *buf = NULL;

    assert_int_equal(page_of("a page", &buf), 0);
    assert_text(weir_buf_msg(buf), "a page");
}

static void leak_nothing(void)
{
    weir_buf *buf = NULL;

    if (weir_buf_create(16, 0, &buf) == 0)
        weir_buf_release(buf);
}

TEST(buffers, are_watched)
{
    /* doc:begin scope */
    weir_leak_scope scope;

    weir_leak_scope_begin(&scope);
    leak_nothing();
    assert_int_equal(weir_leak_scope_end(&scope), 0); /* the number of leaks */
    /* doc:end */
}

TEST(buffers, are_limited)
{
    /* doc:begin limit */
    char table[4096];
    int err = weir_pool_set_limit(256 << 20); /* above it, allocations fail with -ENOMEM */

    weir_pool_describe(table, sizeof(table)); /* memory by size and by thread */
    /* doc:end */
    assert_int_equal(err, 0);
    assert_true(strlen(table) > 0);
    assert_int_equal(weir_pool_set_limit(WEIR_OFF), 0);
}

/* doc:begin lines */
struct lines {
    weir_buf *rest; /* the beginning of an incomplete line, or NULL */
};

static void lines_deinit(void *state)
{
    weir_buf_release(((struct lines *)state)->rest);
}

/* Takes buf; passes complete lines to the next handler, as views. */
static int split(weir_ctx *ctx, weir_buf *buf)
{
    struct lines *self = weir_ctx_state(ctx);
    ssize_t end;
    int err = 0;

    while (!err && (end = weir_buf_find(buf, weir_buf_read_index(buf), '\n')) >= 0) {
        weir_buf *line;

        err = weir_buf_read_slice(buf, (size_t)end + 1 - weir_buf_read_index(buf), &line);
        if (!err)
            weir_fire_read(ctx, weir_buf_msg(line));
    }
    if (!err && weir_buf_readable(buf) > 0) {
        self->rest = buf; /* kept, not released */
        return 0;
    }
    weir_buf_release(buf);
    return err;
}

static void lines_read(weir_ctx *ctx, weir_msg *msg)
{
    struct lines *self = weir_ctx_state(ctx);
    weir_buf *buf = weir_buf_of(msg), *rest = self->rest;
    int err = 0;

    if (rest != NULL) { /* the line arrived in several parts: copy them together */
        self->rest = NULL;
        err = weir_buf_write_buf(rest, buf, weir_buf_readable(buf));
        weir_buf_release(buf);
        buf = rest;
    }
    if (!err)
        err = split(ctx, buf);
    else
        weir_buf_release(buf);
    if (err < 0)
        weir_fire_error(ctx, err, NULL);
}

static const weir_handler lines = {
    .name = "lines",
    .state_size = sizeof(struct lines),
    .deinit = lines_deinit,
    .read = lines_read,
};
/* doc:end */

TEST(buffers, become_lines)
{
    weir_embedded *embedded = embed(&lines, NULL);

    assert_int_equal(weir_embedded_write_inbound(embedded, text_msg("one\ntwo\nth")), 0);
    assert_text(weir_embedded_read_inbound(embedded), "one\n");
    assert_text(weir_embedded_read_inbound(embedded), "two\n");
    assert_null(weir_embedded_read_inbound(embedded));
    assert_int_equal(weir_embedded_write_inbound(embedded, text_msg("re")), 0);
    assert_int_equal(weir_embedded_write_inbound(embedded, text_msg("e\nfour")), 0);
    assert_text(weir_embedded_read_inbound(embedded), "three\n");
    weir_embedded_release(embedded);
}
