/* SPDX-License-Identifier: Apache-2.0 */
#include "support/protocol/http/http_feed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/composite.h>
#include <weir/error.h>

#include "support/codec/feed.h"
#include "support/protocol/http/http_text.h"
#include "support/test.h"

/* ---- the application ---- */

struct notes {
    struct http_fed *fed;
    bool is_server;
    bool is_in_content;
    size_t content;
};

static int init(void *state, const void *options)
{
    *(struct notes *)state = *(const struct notes *)options;
    return 0;
}

static void note(struct notes *notes, const char *word)
{
    char *text = notes->fed->in;
    size_t used = strlen(text);

    assert_true(used + strlen(word) + 2 < HTTP_FEED_SIZE);
    (void)snprintf(text + used, HTTP_FEED_SIZE - used, "%s%s", used > 0 ? "|" : "", word);
}

/* Joins it with the content before it. */
static void note_content(struct notes *notes, weir_msg *msg)
{
    char word[HTTP_FEED_SIZE];
    char *text = notes->fed->in;

    notes->content += weir_msg_size(msg);
    http_format(msg, word, sizeof(word));
    if (!notes->is_in_content) {
        note(notes, word);
        notes->is_in_content = true;
        return;
    }
    assert_true(strlen(text) + strlen(word) < HTTP_FEED_SIZE);
    strcpy(text + strlen(text) - 1, word + 1); /* without ")(" */
}

static void respond(weir_ctx *ctx, const struct notes *notes)
{
    weir_http_response *response = NULL;
    weir_buf *content = NULL;

    assert_int_equal(weir_http_response_create(200, &response), 0);
    assert_int_equal(weir_buf_create(32, 0, &content), 0);
    assert_int_equal(weir_buf_printf(content, "%zu", notes->content), 0);
    assert_int_equal(
        weir_http_response_set_content_length(response, (int64_t)weir_buf_readable(content)), 0);
    weir_write(ctx, weir_http_response_msg(response), NULL);
    weir_write(ctx, weir_buf_msg(content), NULL);
    weir_write(ctx, weir_http_end_static(), NULL);
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    struct notes *notes = weir_ctx_state(ctx);
    char word[HTTP_FEED_SIZE];
    bool is_end = weir_http_end_of(msg) != NULL;

    if (weir_buf_of(msg) != NULL) {
        note_content(notes, msg);
    } else {
        notes->is_in_content = false;
        http_format(msg, word, sizeof(word));
        note(notes, word);
    }
    weir_msg_release(msg);
    if (is_end && notes->is_server)
        respond(ctx, notes);
    if (is_end)
        notes->content = 0;
}

static void on_read_complete(weir_ctx *ctx)
{
    weir_flush(ctx);
}

static void on_error(weir_ctx *ctx, int err, const char *detail)
{
    char word[128];

    (void)detail;
    (void)snprintf(word, sizeof(word), "error(%s)", weir_error_name(err));
    note(weir_ctx_state(ctx), word);
    weir_close(ctx, NULL);
}

static void on_event(weir_ctx *ctx, weir_msg *event)
{
    const weir_http_refusal *refusal = weir_http_refusal_of(event);
    char word[32];

    if (refusal != NULL) {
        (void)snprintf(word, sizeof(word), "refused(%d)", weir_http_refusal_status(refusal));
        note(weir_ctx_state(ctx), word);
    }
    weir_msg_release(event);
}

static const weir_handler application = {.name = "application",
                                         .state_size = sizeof(struct notes),
                                         .init = init,
                                         .read = on_read,
                                         .read_complete = on_read_complete,
                                         .error = on_error,
                                         .event = on_event};

/* ---- feeding ---- */

static void write_request(weir_embedded *embedded, const char *method)
{
    weir_channel *channel = weir_embedded_channel(embedded);
    weir_http_request *request = NULL;

    assert_int_equal(
        weir_http_request_create(method, strcmp(method, "CONNECT") == 0 ? "h:1" : "/", &request),
        0);
    assert_int_equal(
        weir_http_headers_add_text(weir_http_request_headers(request), WEIR_HTTP_HOST, "h"), 0);
    weir_channel_write(channel, weir_http_request_msg(request), NULL);
    weir_channel_write_and_flush(channel, weir_http_end_static(), NULL);
}

static void write_requests(weir_embedded *embedded, const char *methods)
{
    char list[256], *rest = list, *method;

    (void)snprintf(list, sizeof(list), "%s", methods);
    while ((method = strtok_r(rest, " ", &rest)) != NULL)
        write_request(embedded, method);
}

weir_embedded *http_feed_open(const struct http_feed *feed, struct http_fed *fed)
{
    struct notes notes = {.fed = fed, .is_server = feed->requests == NULL};
    weir_embedded *embedded = NULL;
    weir_pipeline *pipeline;

    memset(fed, 0, sizeof(*fed));
    assert_int_equal(
        weir_embedded_create(
            WEIR_EMBEDDED_OPTIONS(.channel = WEIR_CHANNEL_OPTIONS(.half_closure = true)),
            &embedded),
        0);
    pipeline = weir_embedded_pipeline(embedded);
    if (notes.is_server)
        assert_int_equal(weir_http1_server_add(pipeline, feed->options), 0);
    else
        assert_int_equal(weir_http1_client_add(pipeline, feed->options), 0);
    assert_int_equal(weir_pipeline_add_last(pipeline, &application, &notes), 0);
    if (!notes.is_server) {
        write_requests(embedded, feed->requests);
        http_feed_collect(embedded, fed);
        fed->out[0] = '\0';
    }
    return embedded;
}

/* Removes the Date fields, which change. */
static void remove_dates(char *text)
{
    char *date;

    while ((date = strstr(text, "Date: ")) != NULL) {
        const char *end = strstr(date, "\r\n");

        if (end == NULL)
            return; /* it is not complete yet */
        memmove(date, end + 2, strlen(end + 2) + 1);
    }
}

void http_feed_collect(weir_embedded *embedded, struct http_fed *fed)
{
    weir_msg *msg;

    while ((msg = weir_embedded_read_outbound(embedded)) != NULL) {
        char word[HTTP_FEED_SIZE];
        size_t used = strlen(fed->out);

        http_format(msg, word, sizeof(word));
        assert_true(used + strlen(word) < HTTP_FEED_SIZE);
        strcpy(fed->out + used, word + 1);
        fed->out[strlen(fed->out) - 1] = '\0'; /* without parentheses */
        weir_msg_release(msg);
    }
    remove_dates(fed->out);
}

void http_feed_put(weir_embedded *embedded, const void *bytes, size_t length, struct http_fed *fed)
{
    if (length > 0 && weir_channel_is_open(weir_embedded_channel(embedded)))
        (void)weir_embedded_write_inbound(embedded, feed_bytes(bytes, length));
    http_feed_collect(embedded, fed);
}

void http_feed_close(weir_embedded *embedded, struct http_fed *fed)
{
    fed->is_open = weir_channel_is_open(weir_embedded_channel(embedded));
    weir_embedded_end_input(embedded);
    http_feed_collect(embedded, fed);
    (void)weir_embedded_finish(embedded);
    http_feed_collect(embedded, fed);
    weir_embedded_release(embedded);
}

/* ---- asserting ---- */

static void assert_cut(const struct http_feed *feed, const void *bytes, size_t length, size_t cut,
                       const char *in, const char *out, struct http_fed *fed)
{
    weir_embedded *embedded = http_feed_open(feed, fed);

    http_feed_put(embedded, bytes, cut, fed);
    http_feed_put(embedded, (const char *)bytes + cut, length - cut, fed);
    http_feed_close(embedded, fed);
    assert_string_equal(fed->in, in);
    if (out != NULL)
        assert_string_equal(fed->out, out);
}

static void assert_bytewise(const struct http_feed *feed, const void *bytes, size_t length,
                            const char *in, const char *out, struct http_fed *fed)
{
    weir_embedded *embedded = http_feed_open(feed, fed);

    for (size_t i = 0; i < length; i++)
        http_feed_put(embedded, (const char *)bytes + i, 1, fed);
    http_feed_close(embedded, fed);
    assert_string_equal(fed->in, in);
    if (out != NULL)
        assert_string_equal(fed->out, out);
}

void assert_http_fed(const struct http_feed *feed, const void *bytes, size_t length, const char *in,
                     const char *out)
{
    struct http_fed *whole = malloc(sizeof(*whole)), *fed = malloc(sizeof(*fed));
    size_t step = length > 1000 ? length / 500 : 1;

    assert_cut(feed, bytes, length, length, in, out, whole);
    for (size_t cut = 1; cut < length; cut += step)
        assert_cut(feed, bytes, length, cut, in, whole->out, fed);
    assert_bytewise(feed, bytes, length, in, whole->out, fed);
    free(whole);
    free(fed);
}
