/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The PROXY protocol in both directions: split input, and invalid headers.
 */
#include <weir/proxy_protocol.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/error.h>
#include <weir/frames.h>

#include "support/channel/event_recorder.h"
#include "support/codec/decoder_fixture.h"
#include "support/memory.h"

#define V2 "\r\n\r\n\0\r\nQUIT\n"
#define BYTES(text) text, sizeof(text) - 1

/* ---- a header as a line of text, then the lines behind it ---- */

static void on_event(weir_ctx *ctx, weir_msg *event)
{
    const weir_proxy_header *header = weir_proxy_header_of(event);
    char source[WEIR_ADDRESS_TEXT_SIZE], destination[WEIR_ADDRESS_TEXT_SIZE], text[300];

    if (header == NULL) {
        weir_fire_event(ctx, event);
        return;
    }
    (void)snprintf(text, sizeof(text), "<v%d%s%s %s %s %zu>\n", weir_proxy_header_version(header),
                   weir_proxy_header_is_local(header) ? " local" : "",
                   weir_proxy_header_is_datagram(header) ? " datagrams" : "",
                   weir_address_format(weir_proxy_header_source(header), source, sizeof(source)),
                   weir_address_format(weir_proxy_header_destination(header), destination,
                                       sizeof(destination)),
                   weir_proxy_header_tlvs(header).length);
    weir_msg_release(event);
    weir_fire_read(ctx, feed_bytes(text, strlen(text)));
}

static const weir_handler headers_as_lines = {.name = "headers", .event = on_event};

static void add(weir_pipeline *pipeline, const struct feed *feed)
{
    assert_int_equal(weir_proxy_receiver_add(pipeline, feed->arg), 0);
    assert_int_equal(weir_pipeline_add_last(pipeline, &headers_as_lines, NULL), 0);
    assert_int_equal(weir_lines_add(pipeline, NULL), 0);
}

static const struct feed feed = {.add = add};

TEST(proxy_protocol, version_1_is_read_and_the_rest_passed_on)
{
    assert_text_fed(&feed, "PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\r\nGET\nx\n",
                    "<v1 192.0.2.1:56324 198.51.100.2:443 0>|GET|x");
    assert_text_fed(&feed, "PROXY TCP6 2001:db8::1 ::1 0 65535\r\na\n",
                    "<v1 [2001:db8::1]:0 [::1]:65535 0>|a");
    assert_text_fed(&feed, "PROXY UNKNOWN\r\na\n", "<v1 - - 0>|a");
    assert_text_fed(&feed, "PROXY UNKNOWN what  ever\r\na\n", "<v1 - - 0>|a");
}

TEST(proxy_protocol, version_2_is_read_and_the_rest_passed_on)
{
    assert_fed(&feed,
               BYTES(V2 "\x21\x11\x00\x0c\xc0\x00\x02\x01\xc6\x33\x64\x02\xdc\x04\x01\xbb"
                        "GET\nx\n"),
               "<v2 192.0.2.1:56324 198.51.100.2:443 0>|GET|x");
    assert_fed(&feed,
               BYTES(V2 "\x21\x12\x00\x11\xc0\x00\x02\x01\xc6\x33\x64\x02\xdc\x04\x01\xbb"
                        "\x04\x00\x02xx"
                        "a\n"),
               "<v2 datagrams 192.0.2.1:56324 198.51.100.2:443 5>|a");
    assert_fed(&feed,
               BYTES(V2 "\x21\x21\x00\x24"
                        "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\1"
                        "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1"
                        "\x00\x50\x01\xbb"
                        "a\n"),
               "<v2 [2001:db8::1]:80 [::1]:443 0>|a");
}

TEST(proxy_protocol, local_and_unknown_families_have_no_addresses)
{
    assert_fed(&feed,
               BYTES(V2 "\x20\x00\x00\x00"
                        "a\n"),
               "<v2 local - - 0>|a");
    assert_fed(&feed,
               BYTES(V2 "\x20\x11\x00\x05"
                        "xxxxx"
                        "a\n"), /* with any content */
               "<v2 local - - 0>|a");
    assert_fed(&feed,
               BYTES(V2 "\x20\xff\x00\x00"
                        "a\n"), /* its family is ignored */
               "<v2 local - - 0>|a");
    assert_fed(&feed,
               BYTES(V2 "\x21\x00\x00\x00"
                        "a\n"),
               "<v2 - - 0>|a");
    assert_fed(&feed,
               BYTES(V2 "\x21\x00\x00\x05"
                        "xxxxx"
                        "a\n"),
               "<v2 - - 0>|a");
}

static void feed_unix(const char *source, size_t source_length, const char *expected)
{
    char bytes[16 + 216 + 2] = V2 "\x21\x31\x00\xd8";
    char text[FEED_SIZE];

    memcpy(bytes + 16, source, source_length);
    memcpy(bytes + 16 + 108, "/run/b", 6);
    memcpy(bytes + 16 + 216, "a\n", 2);
    feed_bytewise(&feed, bytes, sizeof(bytes), text);
    assert_string_equal(text, expected);
    for (size_t cut = 0; cut <= sizeof(bytes); cut++) {
        feed_cut(&feed, bytes, sizeof(bytes), cut, cut, text);
        assert_string_equal(text, expected);
    }
}

TEST(proxy_protocol, supports_unix_paths_and_abstract_names)
{
    char path[109] = "/", expected[256];

    feed_unix(BYTES("/run/a"), "<v2 unix:/run/a unix:/run/b 0>|a");
    feed_unix(BYTES("\0name"), "<v2 unix:@name unix:/run/b 0>|a");
    feed_unix("", 0, "<v2 unix: unix:/run/b 0>|a");
    memset(path + 1, 'x', 107); /* without a terminating NUL */
    (void)snprintf(expected, sizeof(expected), "<v2 unix:%s unix:/run/b 0>|a", path);
    feed_unix(path, 108, expected);
}

TEST(proxy_protocol, verifies_the_checksum)
{
    weir_address a = {0}, b = {0};
    weir_proxy_header *header = NULL;
    weir_buf *buf = NULL;
    char text[FEED_SIZE];

    assert_int_equal(weir_address_parse("192.0.2.1:1", &a), 0);
    assert_int_equal(weir_address_parse("192.0.2.2:2", &b), 0);
    assert_int_equal(
        weir_proxy_header_create(
            WEIR_PROXY_HEADER_OPTIONS(.source = &a, .destination = &b, .checksum = true), &header),
        0);
    assert_int_equal(weir_buf_create(0, 0, &buf), 0);
    assert_int_equal(weir_proxy_header_write(header, buf), 0);
    assert_fed(&feed, weir_buf_bytes(buf), weir_buf_readable(buf),
               "<v2 192.0.2.1:1 192.0.2.2:2 7>");
    weir_buf_space(buf)[-1] ^= 1;
    feed_bytewise(&feed, weir_buf_bytes(buf), weir_buf_readable(buf), text);
    assert_string_equal(text, "error(WEIR_EMALFORMED)");
    weir_buf_release(buf);
    weir_proxy_header_release(header);
}

/* From another implementation of CRC-32C. */
TEST(proxy_protocol, matches_the_checksum_of_another_implementation)
{
    assert_fed(&feed,
               BYTES(V2 "\x21\x11\x00\x13\x7f\x00\x00\x01\x7f\x00\x00\x01\x00\x01\x00\x02"
                        "\x03\x00\x04\xe9\x16\x6d\x07"),
               "<v2 127.0.0.1:1 127.0.0.1:2 7>");
}

/* ---- nonsense ---- */

TEST(proxy_protocol, rejects_anything_else)
{
    static const char *const texts[] = {
        "GET / HTTP/1.0\r\n",
        "PROXX",
        "PROXY\r\n",
        "PROXY \r\n",
        "PROXY TCP5 1.1.1.1 1.1.1.1 1 1\r\n",
        "PROXY TCP4\r\n",
        "PROXY TCP4 1.1.1.1 1.1.1.1 1\r\n",
        "PROXY TCP4 1.1.1.1 1.1.1.1 1 \r\n",
        "PROXY TCP4 1.1.1.1 1.1.1.1 1 1 \r\n",
        "PROXY TCP4 1.1.1.1 1.1.1.1 1 1 1\r\n",
        "PROXY TCP4  1.1.1.1 1.1.1.1 1 1\r\n",
        "PROXY  TCP4 1.1.1.1 1.1.1.1 1 1\r\n",
        "PROXY TCP4 1.1.1 1.1.1.1 1 1\r\n",
        "PROXY TCP4 ::1 ::1 1 1\r\n",
        "PROXY TCP6 1.1.1.1 1.1.1.1 1 1\r\n",
        "PROXY TCP6 fe80::1%1 ::1 1 1\r\n",
        "PROXY TCP4 1.1.1.1 1.1.1.1 65536 1\r\n",
        "PROXY TCP4 1.1.1.1 1.1.1.1 -1 1\r\n",
        "PROXY TCP4 1.1.1.1 1.1.1.1 01 1\r\n",
        "PROXY TCP4 1.1.1.1 1.1.1.1 1x 1\r\n",
        "PROXY TCP4 1.1.1.1 1.1.1.1 1 1\r\r\n",
        "PROXY tcp4 1.1.1.1 1.1.1.1 1 1\r\n",
        "PROXY TCP4 1.1.1.1 1.1.1.1 1 1\n",
        "PROXY TCP4 1.1.1.1 1.1.",
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_text_fed(&feed, texts[i], "error(WEIR_EMALFORMED)");
}

TEST(proxy_protocol, rejects_inconsistent_binary_headers)
{
    const char *error = "error(WEIR_EMALFORMED)";

    assert_fed(&feed, BYTES(V2 "\x11\x11\x00\x00"), error); /* version */
    assert_fed(&feed, BYTES(V2 "\x22\x11\x00\x00"), error); /* command */
    assert_fed(&feed, BYTES(V2 "\x21\x41\x00\x00"), error); /* family */
    assert_fed(&feed, BYTES(V2 "\x21\x13\x00\x00"), error); /* protocol */
    assert_fed(&feed,
               BYTES(V2 "\x21\x11\x00\x0b"
                        "01234567890"),
               error); /* too short for its addresses */
    assert_fed(&feed,
               BYTES(V2 "\x21\x11\x00\x00"
                        "0123456789ab"),
               error);
    assert_fed(&feed,
               BYTES(V2 "\x21\x11\x00\x0e"
                        "0123456789ab\x01\x00"),
               error); /* truncated TLV */
    assert_fed(&feed,
               BYTES(V2 "\x21\x11\x00\x10"
                        "0123456789ab\x01\x00\x02x"),
               error); /* TLV beyond the end */
    assert_fed(&feed,
               BYTES(V2 "\x21\x11\x00\x0f"
                        "0123456789ab\x01\xff\xff"),
               error);
    assert_fed(&feed,
               BYTES(V2 "\x21\x11\x00\x12"
                        "0123456789ab\x03\x00\x03xxx"),
               error); /* checksum of three bytes */
    assert_fed(&feed,
               BYTES(V2 "\x21\x11\x00\x17"
                        "0123456789ab\x20\x00\x08\0\0\0\0\0\x21\x00\x01"),
               error); /* nested TLV beyond WEIR_PROXY_SSL */
    assert_fed(&feed,
               BYTES(V2 "\x21\x11\x00\x0c"
                        "0123456789a"),
               error); /* truncated header */
}

static int add_receiver(weir_pipeline *pipeline, const void *options)
{
    return weir_proxy_receiver_add(pipeline, options);
}

static void assert_error_of(const void *bytes, size_t length, const char *error)
{
    weir_embedded *embedded = fixture_open(add_receiver, NULL);

    fixture_write(embedded, bytes, length);
    assert_string_equal(fixture_error(), error);
    weir_embedded_release(embedded);
}

TEST(proxy_protocol, reports_errors_as_early_as_possible)
{
    char endless[108] = "PROXY UNKNOWN ";

    memset(endless + 14, 'x', sizeof(endless) - 14);
    assert_error_of(endless, 106, "");
    assert_error_of(endless, 107, "WEIR_EMALFORMED: PROXY line longer than 107 bytes");
    assert_error_of(BYTES("PX"), "WEIR_EMALFORMED: no PROXY header at the start of the connection");
    assert_error_of(BYTES(V2 "\x31"), "WEIR_EMALFORMED: unknown version of the PROXY header");
    assert_error_of(BYTES(V2 "\x21\x99"),
                    "WEIR_EMALFORMED: unknown address family of the PROXY header");
    assert_error_of(BYTES(V2 "\x21\x11\xff\xff"),
                    "WEIR_ETOOLONG: PROXY header over the limit of 4096 bytes");
}

TEST(proxy_protocol, discards_bytes_after_an_error)
{
    weir_embedded *embedded = fixture_open(add_receiver, NULL);

    fixture_write_text(embedded, "nonsense");
    fixture_assert_no_growth(embedded, "0123456789", 10);
    assert_null(weir_embedded_read_inbound(embedded));
    weir_embedded_release(embedded);
}

TEST(proxy_protocol, limits_the_length_of_headers)
{
    static const char header[] = V2 "\x20\x00\x00\x04xxxx";
    const struct feed exact = {.add = add, .arg = WEIR_PROXY_RECEIVER_OPTIONS(.max_size = 20)};
    const struct feed less = {.add = add, .arg = WEIR_PROXY_RECEIVER_OPTIONS(.max_size = 19)};

    assert_fed(&exact, header, sizeof(header) - 1, "<v2 local - - 0>");
    assert_fed(&less, header, sizeof(header) - 1, "error(WEIR_ETOOLONG)");
}

TEST(proxy_protocol, ignores_connections_closed_without_data)
{
    assert_text_fed(&feed, "", "");
}

/* ---- addresses of channels ---- */

static void assert_addresses(weir_channel *channel, const char *source, const char *destination)
{
    char text[WEIR_ADDRESS_TEXT_SIZE];
    weir_address address;

    assert_int_equal(weir_proxy_source(channel, &address), 0);
    assert_string_equal(weir_address_format(&address, text, sizeof(text)), source);
    assert_int_equal(weir_proxy_destination(channel, &address), 0);
    assert_string_equal(weir_address_format(&address, text, sizeof(text)), destination);
}

TEST(proxy_protocol, provides_the_real_addresses_to_all_handlers)
{
    weir_embedded *embedded = NULL;
    weir_channel *channel;

    assert_int_equal(
        weir_embedded_create(
            WEIR_EMBEDDED_OPTIONS(.local = "10.0.0.1:80", .remote = "10.0.0.2:1234"), &embedded),
        0);
    channel = weir_embedded_channel(embedded);
    assert_int_equal(weir_proxy_receiver_add(weir_embedded_pipeline(embedded), NULL), 0);
    assert_null(weir_proxy_received_header(channel));
    assert_addresses(channel, "10.0.0.2:1234", "10.0.0.1:80");
    fixture_write_text(embedded, "PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\r\n");
    assert_non_null(weir_proxy_received_header(channel));
    assert_addresses(channel, "192.0.2.1:56324", "198.51.100.2:443");
    assert_int_equal(weir_pipeline_count(weir_embedded_pipeline(embedded)), 0);
    weir_embedded_release(embedded);
}

TEST(proxy_protocol, provides_the_channels_addresses_for_local_headers)
{
    weir_embedded *embedded = fixture_open(add_receiver, NULL);

    fixture_write(embedded, BYTES(V2 "\x20\x00\x00\x00"));
    assert_true(
        weir_proxy_header_is_local(weir_proxy_received_header(weir_embedded_channel(embedded))));
    assert_addresses(weir_embedded_channel(embedded), "inproc:embedded", "inproc:embedded");
    weir_embedded_release(embedded);
}

static void remove_receiver(weir_ctx *ctx, weir_msg *event)
{
    assert_int_equal(weir_pipeline_remove(weir_ctx_pipeline(ctx), "proxy-receiver", NULL), 0);
    weir_msg_release(event);
}

TEST(proxy_protocol, allows_early_removal_of_the_receiver)
{
    static const weir_handler remover = {.name = "remover", .event = remove_receiver};
    weir_embedded *embedded = fixture_open(add_receiver, NULL);
    weir_buf *buf;

    assert_int_equal(weir_pipeline_add_last(weir_embedded_pipeline(embedded), &remover, NULL), 0);
    fixture_write_text(embedded, "PROXY UNKNOWN\r\nabc");
    buf = weir_buf_of(weir_embedded_read_inbound(embedded));
    assert_non_null(buf);
    assert_int_equal(weir_buf_readable(buf), 3);
    weir_buf_release(buf);
    weir_embedded_release(embedded);
}

TEST(proxy_protocol, requests_more_bytes_with_reads_on_demand)
{
    weir_embedded *embedded = NULL;
    weir_buf *buf;

    assert_int_equal(
        weir_embedded_create(
            WEIR_EMBEDDED_OPTIONS(.channel = WEIR_CHANNEL_OPTIONS(.read_on_demand = true)),
            &embedded),
        0);
    assert_int_equal(weir_proxy_receiver_add(weir_embedded_pipeline(embedded), NULL), 0);
    fixture_write_text(embedded, "PROXY UNK");
    fixture_write_text(embedded, "NOWN\r\n");
    fixture_write_text(embedded, "abc");
    fixture_write_text(embedded, "def");
    weir_channel_request_read(weir_embedded_channel(embedded)); /* one request, one message */
    weir_embedded_run(embedded);
    buf = weir_buf_of(weir_embedded_read_inbound(embedded));
    assert_non_null(buf);
    assert_int_equal(weir_buf_readable(buf), 3);
    weir_buf_release(buf);
    assert_null(weir_embedded_read_inbound(embedded));
    weir_embedded_release(embedded);
}

/* ---- the sender ---- */

static weir_proxy_header *make_header(void)
{
    weir_address a = {0}, b = {0};
    weir_proxy_header *header = NULL;

    assert_int_equal(weir_address_parse("192.0.2.1:1", &a), 0);
    assert_int_equal(weir_address_parse("192.0.2.2:2", &b), 0);
    assert_int_equal(
        weir_proxy_header_create(
            WEIR_PROXY_HEADER_OPTIONS(.version = 1, .source = &a, .destination = &b), &header),
        0);
    return header;
}

static void assert_sent(weir_embedded *embedded, const char *text)
{
    weir_buf *buf = weir_buf_of(weir_embedded_read_outbound(embedded));

    assert_non_null(buf);
    assert_int_equal(weir_buf_readable(buf), strlen(text));
    assert_memory_equal(weir_buf_bytes(buf), text, strlen(text));
    weir_buf_release(buf);
}

static void greet(weir_ctx *ctx)
{
    weir_write_and_flush(ctx, feed_bytes("hello", 5), NULL);
}

TEST(proxy_protocol, sends_the_header_first)
{
    static const weir_handler greeter = {.name = "greeter", .active = greet};
    weir_proxy_header *header = make_header();
    weir_embedded *embedded = NULL;

    assert_int_equal(weir_embedded_create(WEIR_EMBEDDED_OPTIONS(.register_later = true), &embedded),
                     0);
    assert_int_equal(weir_proxy_sender_add(weir_embedded_pipeline(embedded), header), 0);
    weir_proxy_header_release(header);
    assert_int_equal(weir_pipeline_add_last(weir_embedded_pipeline(embedded), &greeter, NULL), 0);
    assert_int_equal(weir_embedded_register(embedded), 0);
    assert_sent(embedded, "PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n");
    assert_sent(embedded, "hello");
    assert_int_equal(weir_pipeline_count(weir_embedded_pipeline(embedded)), 1);
    weir_embedded_release(embedded);
}

TEST(proxy_protocol, a_sender_added_late_sends_at_once)
{
    weir_proxy_header *header = make_header();
    weir_embedded *embedded = NULL;

    assert_int_equal(weir_embedded_create(NULL, &embedded), 0);
    assert_int_equal(weir_proxy_sender_add(weir_embedded_pipeline(embedded), header), 0);
    weir_embedded_run(embedded);
    assert_sent(embedded, "PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n");
    assert_int_equal(weir_pipeline_count(weir_embedded_pipeline(embedded)), 0);
    weir_embedded_release(embedded);
    weir_proxy_header_release(header);
}

/* ---- memory ---- */

TEST(proxy_protocol, the_receiver_survives_allocation_failures)
{
    static const char header[] = V2 "\x21\x11\x00\x13\x7f\x00\x00\x01\x7f\x00\x00\x01\x00\x01"
                                    "\x00\x02\x04\x00\x04xxxx"
                                    "rest";

    fixture_assert_survives(add_receiver, NULL, header, sizeof(header) - 1);
}

/* Without the header nothing may be sent: the channel is aborted. */
TEST(proxy_protocol, the_sender_survives_allocation_failures)
{
    weir_proxy_header *header = make_header();

    for (unsigned n = 1;; n++) {
        bool failed;
        weir_embedded *embedded = NULL;
        weir_msg *sent;

        assert_int_equal(
            weir_embedded_create(WEIR_EMBEDDED_OPTIONS(.register_later = true), &embedded), 0);
        test_memory_fail_at(n);
        if (weir_proxy_sender_add(weir_embedded_pipeline(embedded), header) == 0)
            (void)weir_embedded_register(embedded);
        failed = test_memory_failed();
        test_memory_fail_at(0);
        sent = weir_embedded_read_outbound(embedded);
        assert_true(sent != NULL || failed);
        weir_msg_release(sent);
        weir_embedded_release(embedded);
        if (!failed)
            break;
    }
    weir_proxy_header_release(header);
}
