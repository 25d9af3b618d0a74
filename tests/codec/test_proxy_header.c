/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PROXY headers: creating, writing, and parsing again.
 */
#include "codec/proxy_header.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/buf.h>

#include "support/memory.h"
#include "support/property.h"
#include "support/test.h"

#define MAX (16 + UINT16_MAX)

static weir_address address(const char *text)
{
    weir_address address;

    assert_int_equal(weir_address_parse(text, &address), 0);
    return address;
}

static weir_buf *written(const weir_proxy_header_options *options)
{
    weir_proxy_header *header = NULL;
    weir_buf *buf = NULL;

    assert_int_equal(weir_proxy_header_create(options, &header), 0);
    assert_int_equal(weir_buf_create(0, 0, &buf), 0);
    assert_int_equal(weir_proxy_header_write(header, buf), 0);
    weir_proxy_header_release(header);
    return buf;
}

static void assert_written(const weir_proxy_header_options *options, const void *bytes,
                           size_t length)
{
    weir_buf *buf = written(options);

    assert_int_equal(weir_buf_readable(buf), length);
    assert_memory_equal(weir_buf_bytes(buf), bytes, length);
    weir_buf_release(buf);
}

TEST(proxy_header, of_version_1_is_a_line)
{
    weir_address a4 = address("192.0.2.1:56324"), b4 = address("198.51.100.2:443");
    weir_address a6 = address("[2001:db8::1%3]:1"), b6 = address("[::ffff:1.2.3.4]:65535");
    const char *line4 = "PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\r\n";
    const char *line6 = "PROXY TCP6 2001:db8::1 ::ffff:1.2.3.4 1 65535\r\n";

    assert_written(WEIR_PROXY_HEADER_OPTIONS(.version = 1, .source = &a4, .destination = &b4),
                   line4, strlen(line4));
    assert_written(WEIR_PROXY_HEADER_OPTIONS(.version = 1, .source = &a6, .destination = &b6),
                   line6, strlen(line6));
    assert_written(WEIR_PROXY_HEADER_OPTIONS(.version = 1), "PROXY UNKNOWN\r\n", 15);
}

TEST(proxy_header, of_version_2_is_binary)
{
    weir_address a = address("192.0.2.1:56324"), b = address("198.51.100.2:443");
    const weir_proxy_tlv tlv = {WEIR_PROXY_AUTHORITY, {(const uint8_t *)"a.test", 6}};

    assert_written(
        WEIR_PROXY_HEADER_OPTIONS(.source = &a, .destination = &b, .tlvs = &tlv, .tlv_count = 1),
        "\r\n\r\n\0\r\nQUIT\n\x21\x11\x00\x15\xc0\x00\x02\x01\xc6\x33\x64\x02\xdc\x04"
        "\x01\xbb\x02\x00\x06"
        "a.test",
        37);
    assert_written(WEIR_PROXY_HEADER_OPTIONS(.is_local = true),
                   "\r\n\r\n\0\r\nQUIT\n\x20\x00\x00\x00", 16);
    assert_written(NULL, "\r\n\r\n\0\r\nQUIT\n\x21\x00\x00\x00", 16);
}

TEST(proxy_header, rejects_invalid_options)
{
    weir_address v4 = address("192.0.2.1:1"), v6 = address("[::1]:1"), un = address("unix:/x");
    weir_address inproc = address("inproc:x");
    static const uint8_t long_value[UINT16_MAX];
    const weir_proxy_tlv crc = {WEIR_PROXY_CRC32C, {long_value, 4}};
    const weir_proxy_tlv ssl = {WEIR_PROXY_SSL, {long_value, 4}};
    const weir_proxy_tlv too_long = {WEIR_PROXY_NOOP, {long_value, UINT16_MAX - 14}};
    const weir_proxy_tlv noop = {WEIR_PROXY_NOOP, {NULL, 0}};
    weir_proxy_header *header = NULL;

#define REFUSED(err, ...) \
    assert_int_equal(weir_proxy_header_create(WEIR_PROXY_HEADER_OPTIONS(__VA_ARGS__), &header), err)
    REFUSED(-EINVAL, .version = 3);
    REFUSED(-EINVAL, .source = &v4);
    REFUSED(-EINVAL, .destination = &v4);
    REFUSED(-EINVAL, .source = &v4, .destination = &v6);
    REFUSED(-EINVAL, .source = &inproc, .destination = &inproc);
    REFUSED(-EINVAL, .source = &v4, .destination = &v4, .is_local = true);
    REFUSED(-EINVAL, .version = 1, .is_local = true);
    REFUSED(-EINVAL, .version = 1, .source = &un, .destination = &un);
    REFUSED(-EINVAL, .version = 1, .source = &v4, .destination = &v4, .is_datagram = true);
    REFUSED(-EINVAL, .version = 1, .source = &v4, .destination = &v4, .checksum = true);
    REFUSED(-EINVAL, .tlvs = &noop, .tlv_count = 1);
    REFUSED(-EINVAL, .source = &v4, .destination = &v4, .tlvs = &crc, .tlv_count = 1);
    REFUSED(-EINVAL, .source = &v4, .destination = &v4, .tlvs = &ssl, .tlv_count = 1);
    REFUSED(-EMSGSIZE, .source = &v4, .destination = &v4, .tlvs = &too_long, .tlv_count = 1);
#undef REFUSED
}

TEST(proxy_header, is_a_message)
{
    static const weir_msg_type other = {.name = "other"};
    weir_proxy_header *header = NULL;
    weir_msg msg;

    assert_int_equal(weir_proxy_header_create(NULL, &header), 0);
    assert_ptr_equal(weir_proxy_header_of(weir_proxy_header_msg(header)), header);
    weir_msg_init(&msg, &other);
    assert_null(weir_proxy_header_of(&msg));
    weir_proxy_header_release(weir_proxy_header_retain(header));
    weir_proxy_header_release(header);
    weir_proxy_header_release(NULL);
}

TEST(proxy_header, has_tlvs_and_nested_ones)
{
    weir_address v4 = address("192.0.2.1:1");
    const uint8_t tls[] = {7, 0, 0, 0, 0, WEIR_PROXY_SSL_VERSION, 0, 3, '1', '.', '3'};
    const weir_proxy_tlv tlvs[] = {{WEIR_PROXY_SSL, {tls, sizeof(tls)}},
                                   {WEIR_PROXY_ALPN, {(const uint8_t *)"h2", 2}}};
    weir_proxy_header *header = NULL;
    weir_span found;

    assert_int_equal(
        weir_proxy_header_create(WEIR_PROXY_HEADER_OPTIONS(.source = &v4, .destination = &v4,
                                                           .tlvs = tlvs, .tlv_count = 2),
                                 &header),
        0);
    assert_true(weir_proxy_tlv_find(weir_proxy_header_tlvs(header), WEIR_PROXY_ALPN, &found));
    assert_int_equal(found.length, 2);
    assert_memory_equal(found.data, "h2", 2);
    assert_true(weir_proxy_tlv_find(weir_proxy_header_tlvs(header), WEIR_PROXY_SSL, &found));
    found.data += WEIR_PROXY_SSL_TLVS;
    found.length -= WEIR_PROXY_SSL_TLVS;
    assert_true(weir_proxy_tlv_find(found, WEIR_PROXY_SSL_VERSION, &found));
    assert_memory_equal(found.data, "1.3", 3);
    assert_false(weir_proxy_tlv_find(weir_proxy_header_tlvs(header), 0xee, &found));
    weir_proxy_header_release(header);
}

/* ---- what is written is read again ---- */

static bool is_same(const weir_address *a, const weir_address *b)
{
    return weir_address_equal(a, b);
}

static bool read_again(const weir_proxy_header *header, const weir_buf *buf)
{
    weir_span tlvs = weir_proxy_header_tlvs(header), found;
    weir_proxy_header *again = NULL;
    const char *detail = NULL;
    size_t need;
    ssize_t taken =
        weir__proxy_read(weir_buf_bytes(buf), weir_buf_readable(buf), MAX, &again, &need, &detail);

    PROPERTY(taken == (ssize_t)weir_buf_readable(buf));
    found = weir_proxy_header_tlvs(again);
    PROPERTY(weir_proxy_header_version(again) == weir_proxy_header_version(header));
    PROPERTY(weir_proxy_header_is_local(again) == weir_proxy_header_is_local(header));
    PROPERTY(weir_proxy_header_is_datagram(again) ==
             (weir_proxy_header_is_datagram(header) && header->source.length > 0));
    PROPERTY(is_same(&again->source, &header->source));
    PROPERTY(is_same(&again->destination, &header->destination));
    PROPERTY(found.length == tlvs.length + (header->checksum ? 7 : 0));
    PROPERTY(memcmp(found.data, tlvs.data, tlvs.length) == 0);
    weir_proxy_header_release(again);
    return true;
}

/* Every prefix is incomplete, and nothing else. */
static bool waits_for_all(const weir_buf *buf)
{
    weir_proxy_header *header = NULL;
    const char *detail = NULL;
    size_t need;

    for (size_t i = 0; i < weir_buf_readable(buf); i++)
        PROPERTY(weir__proxy_read(weir_buf_bytes(buf), i, MAX, &header, &need, &detail) == 0 &&
                 need <= weir_buf_readable(buf));
    return true;
}

/* Flips one bit under the checksum. In the first bytes, other errors may result. */
static bool sum_sees(weir_buf *buf, uint32_t number)
{
    size_t at = 16 + number % (weir_buf_readable(buf) - 16);
    uint8_t *byte = (uint8_t *)(uintptr_t)weir_buf_bytes(buf) + at;
    weir_proxy_header *header = NULL;
    const char *detail = NULL;
    size_t need;

    *byte ^= (uint8_t)(1u << number % 8);
    if (weir__proxy_read(weir_buf_bytes(buf), weir_buf_readable(buf), MAX, &header, &need,
                         &detail) > 0) {
        weir_span checksum; /* the TLV of the checksum has become another one */

        PROPERTY(
            !weir_proxy_tlv_find(weir_proxy_header_tlvs(header), WEIR_PROXY_CRC32C, &checksum));
        weir_proxy_header_release(header);
    }
    return true;
}

static weir_address random_address(uint32_t number, int which)
{
    static const char *const texts[3][4] = {
        {"0.0.0.0:0", "255.255.255.255:65535", "192.0.2.1:80", "10.0.0.1:1234"},
        {"[::]:0", "[2001:db8::ffff]:65535", "[::ffff:10.0.0.1]:80", "[fe80::1]:9"},
        {"unix:/run/a", "unix:@abstract", "unix:/very/long/path/of/a/socket/that/is/somewhere",
         "unix:@x"},
    };
    weir_address parsed = {0};

    (void)weir_address_parse(texts[which][number % 4], &parsed);
    return parsed;
}

static bool try_one(void *state, const struct property_step *step)
{
    uint32_t number = step->numbers[0];
    int which = (int)(number % 4);
    weir_address source, destination;
    uint8_t bytes[600];
    const weir_proxy_tlv tlvs[2] = {
        {(uint8_t)(0xe0 + number % 16), {bytes, step->numbers[1] % sizeof(bytes)}},
        {WEIR_PROXY_NOOP, {bytes, step->numbers[2] % 3}}};
    weir_proxy_header_options options = {.size = sizeof(options)};
    weir_proxy_header *header = NULL;
    weir_buf *buf = NULL;
    bool holds;

    (void)state;
    memset(bytes, (int)(number >> 8), sizeof(bytes));
    options.version = number % 3 == 0 && which != 2 ? 1 : 2;
    if (which < 3) {
        source = random_address(number >> 4, which);
        destination = random_address(number >> 6, which);
        options.source = &source;
        options.destination = &destination;
        options.is_datagram = options.version == 2 && number % 5 == 0;
        options.checksum = options.version == 2 && number % 2 == 0;
        options.tlvs = tlvs;
        options.tlv_count = options.version == 2 ? (number >> 9) % 3 : 0;
    } else {
        options.is_local = options.version == 2 && number % 2 == 0;
    }
    PROPERTY(weir_proxy_header_create(&options, &header) == 0);
    PROPERTY(weir_buf_create(0, 0, &buf) == 0);
    holds =
        weir_proxy_header_write(header, buf) == 0 && read_again(header, buf) && waits_for_all(buf);
    if (holds && options.checksum)
        holds = sum_sees(buf, step->numbers[1]);
    weir_proxy_header_release(header);
    weir_buf_release(buf);
    return holds;
}

static void begin(void *state)
{
    *(int *)state = 0;
}

static void describe(const struct property_step *step, char *text, size_t size)
{
    (void)snprintf(text, size, "header %u %u %u", step->numbers[0], step->numbers[1],
                   step->numbers[2]);
}

TEST(proxy_header, round_trips)
{
    static const struct property property = {
        .name = "proxy_header",
        .state_size = sizeof(int),
        .kinds = 1,
        .begin = begin,
        .step = try_one,
        .describe = describe,
        .end = begin,
    };

    property_check(&property, 40, 50);
}

TEST(proxy_header, survives_allocation_failures)
{
    weir_address v4 = address("192.0.2.1:1");

    for (unsigned n = 1;; n++) {
        bool failed;
        weir_proxy_header *header = NULL;
        weir_buf *buf = NULL;
        int err;

        assert_int_equal(weir_buf_create(1, 0, &buf), 0);
        test_memory_fail_at(n);
        err = weir_proxy_header_create(
            WEIR_PROXY_HEADER_OPTIONS(.source = &v4, .destination = &v4, .checksum = true),
            &header);
        if (err == 0)
            err = weir_proxy_header_write(header, buf);
        failed = test_memory_failed();
        test_memory_fail_at(0);
        assert_true(err == 0 || weir_buf_readable(buf) == 0);
        weir_proxy_header_release(header);
        weir_buf_release(buf);
        if (!failed)
            break;
        assert_true(err == 0 || err == -ENOMEM);
    }
}
