/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timeouts of a server's connection, by the manual clock.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <weir/embedded.h>
#include <weir/file_range.h>
#include <weir/http1.h>

#include "support/codec/feed.h"
#include "support/protocol/http/http_text.h"
#include "support/test.h"

#define GET "GET / HTTP/1.1\r\nHost: h\r\n\r\n"
#define POST "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n"

static weir_embedded *open_full(const weir_http1_options *options,
                                const weir_embedded_options *embedded_options)
{
    weir_embedded *embedded = NULL;

    assert_int_equal(weir_embedded_create(embedded_options, &embedded), 0);
    assert_int_equal(weir_http1_server_add(weir_embedded_pipeline(embedded), options), 0);
    return embedded;
}

static weir_embedded *open_with(const weir_http1_options *options)
{
    return open_full(options, NULL);
}

static void put(weir_embedded *embedded, const char *text)
{
    assert_int_equal(weir_embedded_write_inbound(embedded, feed_bytes(text, strlen(text))), 0);
}

static void discard(weir_embedded *embedded)
{
    weir_msg *msg;

    while ((msg = weir_embedded_read_inbound(embedded)) != NULL)
        weir_msg_release(msg);
    while ((msg = weir_embedded_read_outbound(embedded)) != NULL)
        weir_msg_release(msg);
}

static void respond(weir_embedded *embedded, size_t length)
{
    weir_channel *channel = weir_embedded_channel(embedded);
    weir_http_response *response = NULL;
    char content[1100] = "";

    assert_int_equal(weir_http_response_create(200, &response), 0);
    assert_int_equal(weir_http_response_set_content_length(response, (int64_t)length), 0);
    weir_channel_write(channel, weir_http_response_msg(response), NULL);
    for (size_t piece; length > 0; length -= piece) { /* the "socket" takes whole messages only */
        piece = length < sizeof(content) ? length : sizeof(content);
        weir_channel_write(channel, feed_bytes(content, piece), NULL);
    }
    weir_channel_write_and_flush(channel, weir_http_end_static(), NULL);
    weir_embedded_run(embedded);
}

static bool is_open(weir_embedded *embedded)
{
    return weir_channel_is_open(weir_embedded_channel(embedded));
}

/* The status of the answer; 0 if there is none. */
static int answer(weir_embedded *embedded)
{
    weir_msg *msg = weir_embedded_read_outbound(embedded);
    char text[512];
    int status = 0;

    if (msg == NULL)
        return 0;
    http_format(msg, text, sizeof(text));
    weir_msg_release(msg);
    (void)sscanf(text, "(HTTP/1.1 %d", &status);
    return status;
}

TEST(http1_timeouts, close_a_connection_without_a_request)
{
    weir_embedded *embedded = open_with(NULL);

    weir_embedded_advance(embedded, weir_seconds(14));
    assert_true(is_open(embedded));
    weir_embedded_advance(embedded, weir_seconds(2));
    assert_false(is_open(embedded));
    assert_int_equal(answer(embedded), 0);
    weir_embedded_release(embedded);
}

/* From the connection on, however often a byte arrives. */
TEST(http1_timeouts, answer_a_slow_head)
{
    weir_embedded *embedded = open_with(NULL);

    weir_embedded_advance(embedded, weir_seconds(5));
    for (int i = 0; i < 9; i++) {
        put(embedded, "G");
        weir_embedded_advance(embedded, weir_seconds(1));
        assert_true(is_open(embedded));
    }
    weir_embedded_advance(embedded, weir_seconds(2));
    assert_int_equal(answer(embedded), 408);
    assert_false(is_open(embedded));
    weir_embedded_release(embedded);
}

TEST(http1_timeouts, count_a_later_head_from_its_first_byte)
{
    weir_embedded *embedded = open_with(NULL);

    put(embedded, GET);
    respond(embedded, 1);
    weir_embedded_advance(embedded, weir_seconds(40));
    discard(embedded);
    assert_true(is_open(embedded));
    put(embedded, "GET");
    weir_embedded_advance(embedded, weir_seconds(14));
    assert_true(is_open(embedded));
    weir_embedded_advance(embedded, weir_seconds(2));
    assert_int_equal(answer(embedded), 408);
    assert_false(is_open(embedded));
    weir_embedded_release(embedded);
}

TEST(http1_timeouts, close_an_idle_connection)
{
    weir_embedded *embedded = open_with(NULL);

    for (int i = 0; i < 3; i++) {
        put(embedded, GET);
        respond(embedded, 1);
        discard(embedded);
        weir_embedded_advance(embedded, weir_seconds(59));
        assert_true(is_open(embedded));
    }
    weir_embedded_advance(embedded, weir_seconds(17));
    assert_false(is_open(embedded));
    assert_int_equal(answer(embedded), 0);
    weir_embedded_release(embedded);
}

TEST(http1_timeouts, never_expire_while_the_application_works)
{
    weir_embedded *embedded = open_with(NULL);

    put(embedded, GET);
    weir_embedded_advance(embedded, weir_seconds(1000));
    assert_true(is_open(embedded));
    respond(embedded, 1);
    discard(embedded);
    weir_embedded_advance(embedded, weir_seconds(59));
    assert_true(is_open(embedded));
    weir_embedded_advance(embedded, weir_seconds(17));
    assert_false(is_open(embedded));
    weir_embedded_release(embedded);
}

TEST(http1_timeouts, answer_slow_content)
{
    weir_embedded *embedded = open_with(NULL);
    char piece[1101];

    memset(piece, 'x', sizeof(piece));
    piece[1100] = '\0';
    put(embedded, POST);
    for (int i = 0; i < 60; i++) { /* fast enough */
        put(embedded, piece);
        weir_embedded_advance(embedded, weir_seconds(1));
        assert_true(is_open(embedded));
    }
    piece[900] = '\0';
    for (int i = 0; i < 21 && is_open(embedded); i++) {
        put(embedded, piece);
        weir_embedded_advance(embedded, weir_seconds(1));
    }
    discard(embedded);
    assert_false(is_open(embedded));
    weir_embedded_release(embedded);
}

/* A client cannot send what is not read, nor before status 100 if it waits for that. */
TEST(http1_timeouts, wait_for_the_application_to_read_content)
{
    weir_embedded *embedded = open_with(NULL);

    put(embedded, POST);
    weir_channel_set_auto_read(weir_embedded_channel(embedded), false);
    weir_embedded_advance(embedded, weir_seconds(100));
    assert_true(is_open(embedded));
    weir_channel_set_auto_read(weir_embedded_channel(embedded), true);
    weir_embedded_advance(embedded, weir_seconds(21));
    assert_int_equal(answer(embedded), 408);
    weir_embedded_release(embedded);

    embedded = open_with(NULL);
    put(embedded, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n"
                  "Expect: 100-continue\r\n\r\n");
    weir_embedded_advance(embedded, weir_seconds(100));
    assert_true(is_open(embedded));
    put(embedded, "x");
    weir_embedded_advance(embedded, weir_seconds(21));
    assert_int_equal(answer(embedded), 408);
    weir_embedded_release(embedded);
}

static weir_embedded *open_narrow(void)
{
    return open_full(NULL, WEIR_EMBEDDED_OPTIONS(.socket_space = 1000));
}

TEST(http1_timeouts, reset_a_client_that_reads_slowly)
{
    weir_embedded *embedded = open_narrow();

    put(embedded, GET);
    respond(embedded, 200000);
    for (int i = 0; i < 40; i++) { /* fast enough */
        weir_embedded_make_space(embedded, 2000);
        weir_embedded_advance(embedded, weir_seconds(1));
        assert_true(is_open(embedded));
    }
    for (int i = 0; i < 25 && is_open(embedded); i++) {
        weir_embedded_make_space(embedded, 900);
        weir_embedded_advance(embedded, weir_seconds(1));
    }
    assert_false(is_open(embedded));
    weir_embedded_release(embedded);
}

/* Below the high mark: noticed when the connection has been idle for long enough. */
TEST(http1_timeouts, reset_a_client_that_reads_a_short_response_slowly)
{
    weir_embedded *embedded = open_narrow();

    put(embedded, GET);
    respond(embedded, 20000);
    weir_embedded_advance(embedded, weir_seconds(80));
    assert_false(is_open(embedded));
    weir_embedded_release(embedded);
}

/* Each response is taken at once: that less than the rate is sent is the server's doing. */
TEST(http1_timeouts, keep_a_client_that_takes_little_because_there_is_little)
{
    weir_embedded *embedded = open_with(NULL);

    for (int i = 0; i < 100; i++) {
        put(embedded, GET);
        respond(embedded, 10);
        discard(embedded);
        weir_embedded_advance(embedded, weir_seconds(7));
        assert_true(is_open(embedded));
    }
    weir_embedded_release(embedded);
}

#define LARGE 262144

/* A file that the test sends. */
static weir_file_range *respond_file(weir_embedded *embedded)
{
    weir_channel *channel = weir_embedded_channel(embedded);
    weir_http_response *response = NULL;
    weir_file_range *range = NULL;
    int file = memfd_create("file", MFD_CLOEXEC);

    assert_int_equal(ftruncate(file, LARGE), 0);
    assert_int_equal(weir_file_range_create(file, 0, LARGE, WEIR_FILE_RANGE_CLOSE, &range), 0);
    assert_int_equal(weir_http_response_create(200, &response), 0);
    assert_int_equal(weir_http_response_set_content_length(response, LARGE), 0);
    weir_channel_write(channel, weir_http_response_msg(response), NULL);
    weir_channel_write(channel, weir_msg_retain(weir_file_range_msg(range)), NULL);
    weir_channel_write_and_flush(channel, weir_http_end_static(), NULL);
    weir_embedded_run(embedded);
    discard(embedded);
    return range;
}

/* A period in which one file ended and another one began says nothing about the client. */
TEST(http1_timeouts, count_each_file_by_itself)
{
    weir_embedded *embedded = open_with(NULL);
    weir_file_range *first, *second;

    put(embedded, GET);
    first = respond_file(embedded);
    weir_embedded_advance(embedded, weir_seconds(24)); /* the period began after 15 */
    assert_true(is_open(embedded));
    assert_int_equal(weir_file_range_advance(first, LARGE), 0);
    put(embedded, GET);
    second = respond_file(embedded);
    weir_embedded_advance(embedded, weir_seconds(10)); /* and again after 25 */
    assert_true(is_open(embedded));
    weir_embedded_advance(embedded, weir_seconds(2));
    assert_false(is_open(embedded));
    weir_msg_release(weir_file_range_msg(first));
    weir_msg_release(weir_file_range_msg(second));
    weir_embedded_release(embedded);
}

/* A descriptor of a file that was sent is not kept until the next timeout. */
TEST(http1_timeouts, keep_no_file_behind_its_response)
{
    weir_embedded *embedded = open_with(NULL);
    weir_file_range *file;
    int descriptor;

    put(embedded, GET);
    file = respond_file(embedded);
    descriptor = weir_file_range_descriptor(file);
    assert_int_equal(weir_file_range_advance(file, LARGE), 0);
    weir_msg_release(weir_file_range_msg(file));
    put(embedded, GET);
    respond(embedded, 1);
    assert_int_equal(fcntl(descriptor, F_GETFD), -1);
    discard(embedded);
    weir_embedded_release(embedded);
}

TEST(http1_timeouts, can_be_switched_off)
{
    weir_embedded *embedded =
        open_with(WEIR_HTTP1_OPTIONS(.head_timeout_ns = WEIR_OFF, .idle_timeout_ns = WEIR_OFF,
                                     .min_rate = WEIR_OFF));

    weir_embedded_advance(embedded, weir_seconds(1000));
    put(embedded, "GET / ");
    weir_embedded_advance(embedded, weir_seconds(1000));
    put(embedded, "HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n");
    weir_embedded_advance(embedded, weir_seconds(1000));
    put(embedded, "xy");
    respond(embedded, 1);
    weir_embedded_advance(embedded, weir_seconds(1000));
    assert_true(is_open(embedded));
    weir_embedded_release(embedded);
}

TEST(http1_timeouts, can_be_changed)
{
    weir_embedded *embedded = open_with(
        WEIR_HTTP1_OPTIONS(.head_timeout_ns = weir_seconds(2), .idle_timeout_ns = weir_seconds(4)));

    put(embedded, GET);
    respond(embedded, 1);
    weir_embedded_advance(embedded, weir_ms(3900));
    assert_true(is_open(embedded));
    weir_embedded_advance(embedded, weir_ms(1200));
    assert_false(is_open(embedded));
    weir_embedded_release(embedded);
}
