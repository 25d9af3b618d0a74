/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peers that mean no good, and bytes that were damaged. Whatever comes: how the handshake went is
 * told once, what is wrong once and in words, the channel closes, nothing is left, and what is done
 * and kept is bounded by what has come.
 */
#include <stdio.h>
#include <string.h>

#include <weir/buf.h>
#include <weir/error.h>
#include <weir/tls.h>

#include "os/random.h"
#include "support/tls/raw_peer.h"
#include "tls/tls.h"

/* Skips positions where it is slow. */
#if defined(__SANITIZE_THREAD__)
#define STRIDE 29
#elif defined(__SANITIZE_ADDRESS__)
#define STRIDE 11
#else
#define STRIDE 3
#endif

#define HEADER 5 /* of a record */

static const char *const wholly = "handshake(ok) read(hello) ended inactive";

/* Of both versions, as a server and as a client. */
struct role {
    const char *name;
    bool is_server; /* the raw peer */
    enum weir_tls_version version;
};

static const struct role roles[] = {
    {"a server, TLS 1.2", false, WEIR_TLS_VERSION_1_2},
    {"a server, TLS 1.3", false, WEIR_TLS_VERSION_1_3},
    {"a client, TLS 1.2", true, WEIR_TLS_VERSION_1_2},
    {"a client, TLS 1.3", true, WEIR_TLS_VERSION_1_3},
};

#define each_role(role) \
    for (const struct role *role = roles; role < roles + sizeof(roles) / sizeof(roles[0]); role++)

static struct raw_peer_options options_of(const struct role *role)
{
    return (struct raw_peer_options){.is_server = role->is_server, .max_version = role->version};
}

/* One for all conversations of a test. */
static weir_tls_context *context_of(const struct role *role)
{
    struct raw_peer_options options = options_of(role);

    return raw_peer_context(&options);
}

/* NULL context: one of its own. */
static void meet(struct raw_peer *raw, const struct role *role, weir_tls_context *context)
{
    struct raw_peer_options options = options_of(role);

    options.context = context;
    raw_peer_open(raw, &options);
}

/* It says hello, and ends. */
static void meet_to_talk(struct raw_peer *raw, const struct role *role, weir_tls_context *context)
{
    meet(raw, role, context);
    raw->text = "hello";
    raw->ends = true;
}

/* Told once each, in words, and closed. */
static void check_refused(struct raw_peer *raw, const char *what)
{
    struct tls_side *ours = &raw->ours;

    if (event_log_count(&ours->events, "handshake(") != 1 ||
        event_log_count(&ours->events, "error(") != 1 ||
        event_log_count(&ours->events, "inactive") != 1 || ours->detail[0] == '\0' ||
        weir_channel_is_open(ours->channel))
        fail_msg("%s: \"%s\" \"%s\"", what, ours->events.text, ours->detail);
}

/* ---- whole conversations ---- */

TEST(tls_hostile, takes_a_conversation_in_any_pieces)
{
    static const size_t pieces[] = {0, 1, 2, 3, 5, 7, 100};
    struct raw_peer raw;

    each_role(role)
    {
        for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
            meet_to_talk(&raw, role, NULL);
            raw.piece = pieces[i];
            raw_peer_run(&raw);
            raw_peer_end_stream(&raw);
            assert_string_equal(raw.ours.events.text, wholly);
            raw_peer_close(&raw);
        }
    }
}

/* Whether the conversation was longer than that. */
static bool cut_off_at(const struct role *role, weir_tls_context *context, size_t at)
{
    struct raw_peer raw;
    char what[80];
    bool is_whole;

    meet_to_talk(&raw, role, context);
    raw.cut_at = at;
    raw_peer_run(&raw);
    raw_peer_end_stream(&raw);
    is_whole = raw.delivered < at;
    (void)snprintf(what, sizeof(what), "%s, cut off at %zu", role->name, at);
    if (is_whole) {
        assert_string_equal(raw.ours.events.text, wholly);
    } else if (strcmp(raw.ours.events.text, wholly) != 0) {
        check_refused(&raw, what);
        assert_int_equal(event_log_count(&raw.ours.events, "error(WEIR_ECUTOFF)"), 1);
    }
    raw_peer_close(&raw);
    return !is_whole;
}

TEST(tls_hostile, reports_wherever_a_conversation_is_cut_off)
{
    each_role(role)
    {
        weir_tls_context *context = context_of(role);

        for (size_t at = 0; cut_off_at(role, context, at); at += STRIDE) {
        }
        weir_tls_context_release(context);
    }
}

/* Whether there was such a byte. */
static bool damaged_at(const struct role *role, weir_tls_context *context, size_t at, uint8_t mask,
                       size_t *unseen)
{
    struct raw_peer raw;
    bool was_there;
    char what[80];

    meet_to_talk(&raw, role, context);
    raw.flip_at = at;
    raw.flip_mask = mask;
    raw_peer_run(&raw);
    raw_peer_end_stream(&raw);
    was_there = raw.delivered > at;
    (void)snprintf(what, sizeof(what), "%s, byte %zu, bits %#x", role->name, at, (unsigned)mask);
    if (!was_there || strcmp(raw.ours.events.text, wholly) == 0)
        *unseen += was_there;
    else
        check_refused(&raw, what);
    assert_true(raw.ours.received == 0 || raw.ours.received == 5);
    raw_peer_close(&raw);
    return was_there;
}

/* Some versions mean nothing: of records in clear. A changed bit of these is all that may pass. */
TEST(tls_hostile, sees_every_byte_that_was_damaged)
{
    each_role(role)
    {
        weir_tls_context *context = context_of(role);
        size_t unseen = 0;

        for (size_t at = 0; damaged_at(role, context, at, 1, &unseen); at += STRIDE) {
        }
        assert_in_range(unseen, 0, 4);
        weir_tls_context_release(context);
    }
}

/* The first record, of each side: of its header each bit. */
TEST(tls_hostile, sees_every_bit_of_a_header_that_was_damaged)
{
    each_role(role)
    {
        weir_tls_context *context = context_of(role);
        size_t unseen = 0;

        for (size_t bit = 0; bit < HEADER * 8; bit++)
            assert_true(damaged_at(role, context, bit / 8, (uint8_t)(1 << bit % 8), &unseen));
        assert_in_range(unseen, 0, 8);
        weir_tls_context_release(context);
    }
}

/* ---- what is not TLS ---- */

static void throw_at(const struct role *role, weir_tls_context *context, const void *bytes,
                     size_t length, const char *what)
{
    struct raw_peer raw;

    meet(&raw, role, context);
    raw_peer_inject(&raw, bytes, length);
    raw_peer_end_stream(&raw);
    check_refused(&raw, what);
    raw_peer_close(&raw);
}

TEST(tls_hostile, says_what_it_was_that_came_before_a_hello)
{
    static const struct {
        const char *bytes;
        size_t length;
        const char *words;
    } others[] = {
        {"GET / HTTP/1.1\r\n\r\n", 18, "not TLS: received an HTTP request"},
        {"SSH-2.0-OpenSSH_9.2\r\n", 21, "not TLS: received SSH"},
        {"\x80\x0c\x01\x00\x02\x00\x03\x00\x00\x00\x00\x01\x00\x80", 14,
         "not TLS: received unknown bytes"}, /* a hello of SSL 2 */
        {"\x16\x02\x00\x00\x01\x01", 6, "not TLS: received unknown bytes"},
    };
    struct raw_peer raw;

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        for (size_t piece = 0; piece < 2; piece++) {
            meet(&raw, &roles[1], NULL);
            raw.piece = piece;
            raw_peer_inject(&raw, others[i].bytes, others[i].length);
            assert_string_equal(raw.ours.detail, others[i].words);
            assert_events(&raw.ours.events, "handshake(WEIR_ENOTTLS) error(WEIR_ENOTTLS) inactive");
            raw_peer_close(&raw);
        }
    }
}

TEST(tls_hostile, rejects_any_bytes)
{
    weir__random random;
    uint8_t bytes[600];

    weir__random_init(&random, 8);

    each_role(role)
    {
        weir_tls_context *context = context_of(role);

        for (size_t i = 0; i < 300 / STRIDE; i++) {
            size_t length = 1 + weir__random_below(&random, sizeof(bytes));

            for (size_t j = 0; j < length; j++)
                bytes[j] = (uint8_t)weir__random_below(&random, 256);
            if (i % 2 == 0) { /* a record, at least */
                const uint8_t header[HEADER] = {(uint8_t)(20 + i / 2 % 4), 3, 3, 0, 60};

                memcpy(bytes, header, length < HEADER ? length : HEADER);
            }
            throw_at(role, context, bytes, length, "random bytes");
        }
        weir_tls_context_release(context);
    }
}

/* ---- records as they may not be ---- */

TEST(tls_hostile, rejects_records_that_are_too_long)
{
    static const size_t lengths[] = {16384 + 257, 16384 + 2049, 65535};
    static uint8_t record[HEADER + 65535];

    each_role(role)
    {
        for (size_t i = 0; i < 3 * sizeof(lengths) / sizeof(lengths[0]); i++) {
            size_t length = lengths[i / 3];

            record[0] = (uint8_t)(21 + i % 3);
            record[1] = record[2] = 3;
            record[3] = (uint8_t)(length >> 8);
            record[4] = (uint8_t)length;
            throw_at(role, NULL, record, HEADER + length, "a record that is too long");
        }
    }
}

/* A hello, each of its bytes in a record. */
TEST(tls_hostile, takes_a_hello_in_records_of_one_byte)
{
    struct raw_peer raw;
    char *hello;
    long length;

    for (size_t i = 0; i < 2; i++) {
        meet_to_talk(&raw, &roles[i], NULL);
        (void)SSL_do_handshake(raw.ssl);
        length = BIO_get_mem_data(SSL_get_wbio(raw.ssl), &hello);
        assert_true(length > HEADER);
        for (long j = HEADER; j < length; j++) {
            const uint8_t record[HEADER + 1] = {22, 3, 1, 0, 1, (uint8_t)hello[j]};

            raw_peer_inject(&raw, record, sizeof(record));
        }
        (void)BIO_reset(SSL_get_wbio(raw.ssl));
        raw_peer_run(&raw);
        raw_peer_end_stream(&raw);
        assert_string_equal(raw.ours.events.text, wholly);
        raw_peer_close(&raw);
    }
}

TEST(tls_hostile, takes_no_data_before_the_handshake_is_over)
{
    static const uint8_t data[HEADER + 40] = {23, 3, 3, 0, 40};
    struct raw_peer raw;

    each_role(role)
    {
        throw_at(role, NULL, data, sizeof(data), "data before all");
        meet(&raw, role, NULL);
        (void)SSL_do_handshake(raw.ssl);
        raw_peer_transfer(&raw); /* a client's hello; a server has said nothing yet */
        raw_peer_inject(&raw, data, sizeof(data));
        raw_peer_end_stream(&raw);
        check_refused(&raw, "data after the hello");
        raw_peer_close(&raw);
    }
}

TEST(tls_hostile, takes_an_end_in_the_middle_of_the_handshake_for_a_refusal)
{
    static const uint8_t end[HEADER + 2] = {21, 3, 3, 0, 2, 1, 0};
    struct raw_peer raw;

    each_role(role)
    {
        meet(&raw, role, NULL);
        (void)SSL_do_handshake(raw.ssl);
        raw_peer_transfer(&raw);
        raw_peer_inject(&raw, end, sizeof(end));
        assert_string_equal(raw.ours.detail, "the peer closed TLS during the handshake");
        assert_events(&raw.ours.events,
                      "handshake(WEIR_ETLSREFUSED) error(WEIR_ETLSREFUSED) inactive");
        raw_peer_close(&raw);
    }
}

/* With half closure the channel stays: what comes is dropped all the same. */
TEST(tls_hostile, drops_what_comes_after_the_end)
{
    static uint8_t data[50000] = {23, 3, 3, 0, 40};
    struct raw_peer raw;

    each_role(role)
    {
        raw_peer_open(
            &raw,
            &(const struct raw_peer_options){
                .is_server = role->is_server,
                .max_version = role->version,
                .text = "hello",
                .ends = true,
                .channel =
                    WEIR_EMBEDDED_OPTIONS(.channel = WEIR_CHANNEL_OPTIONS(.half_closure = true))});
        raw_peer_run(&raw);
        for (int i = 0; i < 100; i++)
            raw_peer_inject(&raw, data, sizeof(data));
        assert_events(&raw.ours.events, "handshake(ok) read(hello) ended input-closed");
        weir_channel_close(raw.ours.channel, NULL);
        raw_peer_end_stream(&raw);
        assert_events(&raw.ours.events, "inactive");
        raw_peer_close(&raw);
    }
}
