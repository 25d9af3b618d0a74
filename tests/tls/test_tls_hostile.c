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

/* Only every so many positions where it is slow. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define STRIDE 2
#else
#define STRIDE 1
#endif

#define HEADER 5 /* of a record */

static const char *const wholly = "shaken(ok) read(hello) ended inactive";

/* Of both versions, as a server and as a client. */
struct side {
    const char *name;
    bool is_server; /* the opponent */
    enum weir_tls_version version;
};

static const struct side sides[] = {
    {"a server, TLS 1.2", false, WEIR_TLS_VERSION_1_2},
    {"a server, TLS 1.3", false, WEIR_TLS_VERSION_1_3},
    {"a client, TLS 1.2", true, WEIR_TLS_VERSION_1_2},
    {"a client, TLS 1.3", true, WEIR_TLS_VERSION_1_3},
};

#define each_side(side) \
    for (const struct side *side = sides; side < sides + sizeof(sides) / sizeof(sides[0]); side++)

static struct opponent_options options_of(const struct side *side)
{
    return (struct opponent_options){.is_server = side->is_server, .max_version = side->version};
}

/* One for all conversations of a test. */
static weir_tls_context *context_of(const struct side *side)
{
    struct opponent_options options = options_of(side);

    return opponent_context(&options);
}

/* NULL context: one of its own. */
static void meet(struct opponent *opponent, const struct side *side, weir_tls_context *context)
{
    struct opponent_options options = options_of(side);

    options.context = context;
    opponent_meet(opponent, &options);
}

/* It says hello, and ends. */
static void meet_to_talk(struct opponent *opponent, const struct side *side,
                         weir_tls_context *context)
{
    meet(opponent, side, context);
    opponent->text = "hello";
    opponent->ends = true;
}

/* Told once each, in words, and closed. */
static void check_refused(struct opponent *opponent, const char *what)
{
    struct duettist *ours = &opponent->ours;

    if (event_log_count(&ours->events, "shaken(") != 1 ||
        event_log_count(&ours->events, "error(") != 1 ||
        event_log_count(&ours->events, "inactive") != 1 || ours->detail[0] == '\0' ||
        weir_channel_is_open(ours->channel))
        fail_msg("%s: \"%s\" \"%s\"", what, ours->events.text, ours->detail);
}

/* ---- whole conversations ---- */

TEST(tls_hostile, takes_a_conversation_in_any_pieces)
{
    static const size_t pieces[] = {0, 1, 2, 3, 5, 7, 100};
    struct opponent opponent;

    each_side(side)
    {
        for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
            meet_to_talk(&opponent, side, NULL);
            opponent.piece = pieces[i];
            opponent_play(&opponent);
            opponent_leave(&opponent);
            assert_string_equal(opponent.ours.events.text, wholly);
            opponent_part(&opponent);
        }
    }
}

/* Whether the conversation was longer than that. */
static bool cut_off_at(const struct side *side, weir_tls_context *context, size_t at)
{
    struct opponent opponent;
    char what[80];
    bool is_whole;

    meet_to_talk(&opponent, side, context);
    opponent.cut_at = at;
    opponent_play(&opponent);
    opponent_leave(&opponent);
    is_whole = opponent.brought < at;
    (void)snprintf(what, sizeof(what), "%s, cut off at %zu", side->name, at);
    if (is_whole) {
        assert_string_equal(opponent.ours.events.text, wholly);
    } else if (strcmp(opponent.ours.events.text, wholly) != 0) {
        check_refused(&opponent, what);
        assert_int_equal(event_log_count(&opponent.ours.events, "error(WEIR_ECUTOFF)"), 1);
    }
    opponent_part(&opponent);
    return !is_whole;
}

TEST(tls_hostile, tells_wherever_a_conversation_is_cut_off)
{
    each_side(side)
    {
        weir_tls_context *context = context_of(side);

        for (size_t at = 0; cut_off_at(side, context, at); at += STRIDE) {
        }
        weir_tls_context_release(context);
    }
}

/* Whether there was such a byte. */
static bool damaged_at(const struct side *side, weir_tls_context *context, size_t at, uint8_t mask,
                       size_t *unseen)
{
    struct opponent opponent;
    bool was_there;
    char what[80];

    meet_to_talk(&opponent, side, context);
    opponent.flip_at = at;
    opponent.flip_mask = mask;
    opponent_play(&opponent);
    opponent_leave(&opponent);
    was_there = opponent.brought > at;
    (void)snprintf(what, sizeof(what), "%s, byte %zu, bits %#x", side->name, at, (unsigned)mask);
    if (!was_there || strcmp(opponent.ours.events.text, wholly) == 0)
        *unseen += was_there;
    else
        check_refused(&opponent, what);
    assert_true(opponent.ours.received == 0 || opponent.ours.received == 5);
    opponent_part(&opponent);
    return was_there;
}

/* Some versions mean nothing: of records in clear. A changed bit of these is all that may pass. */
TEST(tls_hostile, sees_every_byte_that_was_damaged)
{
    each_side(side)
    {
        weir_tls_context *context = context_of(side);
        size_t unseen = 0;

        for (size_t at = 0; damaged_at(side, context, at, 1, &unseen); at += STRIDE) {
        }
        assert_in_range(unseen, 0, 4);
        weir_tls_context_release(context);
    }
}

/* The first record, of each side: of its header each bit. */
TEST(tls_hostile, sees_every_bit_of_a_header_that_was_damaged)
{
    each_side(side)
    {
        weir_tls_context *context = context_of(side);
        size_t unseen = 0;

        for (size_t bit = 0; bit < HEADER * 8; bit++)
            assert_true(damaged_at(side, context, bit / 8, (uint8_t)(1 << bit % 8), &unseen));
        assert_in_range(unseen, 0, 8);
        weir_tls_context_release(context);
    }
}

/* ---- what is not TLS ---- */

static void throw_at(const struct side *side, weir_tls_context *context, const void *bytes,
                     size_t length, const char *what)
{
    struct opponent opponent;

    meet(&opponent, side, context);
    opponent_throw(&opponent, bytes, length);
    opponent_leave(&opponent);
    check_refused(&opponent, what);
    opponent_part(&opponent);
}

TEST(tls_hostile, says_what_it_was_that_came_before_a_hello)
{
    static const struct {
        const char *bytes;
        size_t length;
        const char *words;
    } others[] = {
        {"GET / HTTP/1.1\r\n\r\n", 18, "this is not TLS: an HTTP request has come"},
        {"SSH-2.0-OpenSSH_9.2\r\n", 21, "this is not TLS: SSH has come"},
        {"\x80\x0c\x01\x00\x02\x00\x03\x00\x00\x00\x00\x01\x00\x80", 14,
         "this is not TLS: something else has come"}, /* a hello of SSL 2 */
        {"\x16\x02\x00\x00\x01\x01", 6, "this is not TLS: something else has come"},
    };
    struct opponent opponent;

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        for (size_t piece = 0; piece < 2; piece++) {
            meet(&opponent, &sides[1], NULL);
            opponent.piece = piece;
            opponent_throw(&opponent, others[i].bytes, others[i].length);
            assert_string_equal(opponent.ours.detail, others[i].words);
            assert_events(&opponent.ours.events,
                          "shaken(WEIR_ENOTTLS) error(WEIR_ENOTTLS) inactive");
            opponent_part(&opponent);
        }
    }
}

TEST(tls_hostile, refuses_any_bytes)
{
    weir__random random;
    uint8_t bytes[600];

    weir__random_init(&random, 8);

    each_side(side)
    {
        weir_tls_context *context = context_of(side);

        for (size_t i = 0; i < 300 / STRIDE; i++) {
            size_t length = 1 + weir__random_below(&random, sizeof(bytes));

            for (size_t j = 0; j < length; j++)
                bytes[j] = (uint8_t)weir__random_below(&random, 256);
            if (i % 2 == 0) { /* a record, at least */
                const uint8_t header[HEADER] = {(uint8_t)(20 + i / 2 % 4), 3, 3, 0, 60};

                memcpy(bytes, header, length < HEADER ? length : HEADER);
            }
            throw_at(side, context, bytes, length, "random bytes");
        }
        weir_tls_context_release(context);
    }
}

/* ---- records as they may not be ---- */

TEST(tls_hostile, refuses_records_that_are_too_long)
{
    static const size_t lengths[] = {16384 + 257, 16384 + 2049, 65535};
    static uint8_t record[HEADER + 65535];

    each_side(side)
    {
        for (size_t i = 0; i < 3 * sizeof(lengths) / sizeof(lengths[0]); i++) {
            size_t length = lengths[i / 3];

            record[0] = (uint8_t)(21 + i % 3);
            record[1] = record[2] = 3;
            record[3] = (uint8_t)(length >> 8);
            record[4] = (uint8_t)length;
            throw_at(side, NULL, record, HEADER + length, "a record that is too long");
        }
    }
}

/* A hello, each of its bytes in a record. */
TEST(tls_hostile, takes_a_hello_in_records_of_one_byte)
{
    struct opponent opponent;
    char *hello;
    long length;

    for (size_t i = 0; i < 2; i++) {
        meet_to_talk(&opponent, &sides[i], NULL);
        (void)SSL_do_handshake(opponent.ssl);
        length = BIO_get_mem_data(SSL_get_wbio(opponent.ssl), &hello);
        assert_true(length > HEADER);
        for (long j = HEADER; j < length; j++) {
            const uint8_t record[HEADER + 1] = {22, 3, 1, 0, 1, (uint8_t)hello[j]};

            opponent_throw(&opponent, record, sizeof(record));
        }
        (void)BIO_reset(SSL_get_wbio(opponent.ssl));
        opponent_play(&opponent);
        opponent_leave(&opponent);
        assert_string_equal(opponent.ours.events.text, wholly);
        opponent_part(&opponent);
    }
}

TEST(tls_hostile, takes_no_data_before_the_handshake_is_over)
{
    static const uint8_t data[HEADER + 40] = {23, 3, 3, 0, 40};
    struct opponent opponent;

    each_side(side)
    {
        throw_at(side, NULL, data, sizeof(data), "data before all");
        meet(&opponent, side, NULL);
        (void)SSL_do_handshake(opponent.ssl);
        opponent_bring(&opponent); /* a client's hello; a server has said nothing yet */
        opponent_throw(&opponent, data, sizeof(data));
        opponent_leave(&opponent);
        check_refused(&opponent, "data after the hello");
        opponent_part(&opponent);
    }
}

TEST(tls_hostile, takes_an_end_in_the_middle_of_the_handshake_for_a_refusal)
{
    static const uint8_t end[HEADER + 2] = {21, 3, 3, 0, 2, 1, 0};
    struct opponent opponent;

    each_side(side)
    {
        meet(&opponent, side, NULL);
        (void)SSL_do_handshake(opponent.ssl);
        opponent_bring(&opponent);
        opponent_throw(&opponent, end, sizeof(end));
        assert_string_equal(opponent.ours.detail, "the peer has ended TLS before it had begun");
        assert_events(&opponent.ours.events,
                      "shaken(WEIR_ETLSREFUSED) error(WEIR_ETLSREFUSED) inactive");
        opponent_part(&opponent);
    }
}

/* With half closure the channel stays: what comes is dropped all the same. */
TEST(tls_hostile, drops_what_comes_after_the_end)
{
    static uint8_t data[50000] = {23, 3, 3, 0, 40};
    struct opponent opponent;

    each_side(side)
    {
        opponent_meet(
            &opponent,
            &(const struct opponent_options){
                .is_server = side->is_server,
                .max_version = side->version,
                .text = "hello",
                .ends = true,
                .channel =
                    WEIR_EMBEDDED_OPTIONS(.channel = WEIR_CHANNEL_OPTIONS(.half_closure = true))});
        opponent_play(&opponent);
        for (int i = 0; i < 100; i++)
            opponent_throw(&opponent, data, sizeof(data));
        assert_events(&opponent.ours.events, "shaken(ok) read(hello) ended input-closed");
        weir_channel_close(opponent.ours.channel, NULL);
        opponent_leave(&opponent);
        assert_events(&opponent.ours.events, "inactive");
        opponent_part(&opponent);
    }
}
