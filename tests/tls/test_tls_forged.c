/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records that are properly sealed, with what OpenSSL itself would not send: much of what is
 * allowed once, what is never allowed, and messages of which only a half comes. They are refused in
 * words, or cost no more than as many bytes of data.
 */
#include <stdio.h>
#include <string.h>

#include <openssl/err.h>

#include <weir/buf.h>
#include <weir/error.h>
#include <weir/tls.h>

#include "base/memory.h"
#include "support/memory.h"
#include "support/tls/openssl_memory.h"
#include "support/tls/pki.h"
#include "support/tls/raw_peer.h"
#include "support/tls/record_forger.h"
#include "tls/openssl/internal.h"
#include "tls/tls.h"

#define MANY 2000
#define FEW 40 /* that are borne of what is refused, at the most */
#define HEARD_MAX 256

/* A handshake that is over; the raw peer's records are forged from there on. */
struct play {
    struct raw_peer raw;
    struct record_forger forger;
};

static void play_begin_with(struct play *play, const struct raw_peer_options *options)
{
    raw_peer_open(&play->raw, options);
    record_forger_prepare(&play->forger, play->raw.ssl);
    raw_peer_run(&play->raw);
    record_forger_begin(&play->forger);
    assert_events(&play->raw.ours.events, "handshake(ok)");
}

static void play_begin(struct play *play, bool is_server, enum weir_tls_version version)
{
    play_begin_with(
        play, &(const struct raw_peer_options){.is_server = is_server, .max_version = version});
}

static void play_end(struct play *play)
{
    record_forger_end(&play->forger);
    raw_peer_close(&play->raw);
}

/* Of both versions, ours as a server and as a client. */
static const struct role {
    bool is_server; /* the raw peer */
    enum weir_tls_version version;
} roles[] = {
    {false, WEIR_TLS_VERSION_1_2},
    {true, WEIR_TLS_VERSION_1_2},
    {false, WEIR_TLS_VERSION_1_3},
    {true, WEIR_TLS_VERSION_1_3},
};

#define each_role(role) \
    for (const struct role *role = roles; role < roles + sizeof(roles) / sizeof(roles[0]); role++)

/* What is in a record. */
struct content {
    uint8_t type;
    const char *bytes;
    size_t length;
};

#define CONTENT(type, bytes)           \
    {                                  \
        type, bytes, sizeof(bytes) - 1 \
    }

static void forge(struct play *play, const struct content *content)
{
    uint8_t record[2048 + RECORD_FORGER_EXTRA];

    assert_true(content->length <= sizeof(record) - RECORD_FORGER_EXTRA);
    raw_peer_inject(
        &play->raw, record,
        record_forger_seal(&play->forger, content->type, content->bytes, content->length, record));
}

static void forge_text(struct play *play, const char *text)
{
    const struct content content = {SSL3_RT_APPLICATION_DATA, text, strlen(text)};

    forge(play, &content);
}

/* All in one piece. */
static void forge_many(struct play *play, const struct content *contents, size_t count)
{
    uint8_t *bytes = weir__alloc((size_t)MANY * (16 + RECORD_FORGER_EXTRA));
    size_t length = 0;

    assert_non_null(bytes);
    for (size_t i = 0; i < MANY; i++) {
        const struct content *content = &contents[i % count];

        assert_true(content->length <= 16);
        length += record_forger_seal(&play->forger, content->type, content->bytes, content->length,
                                     bytes + length);
    }
    raw_peer_inject(&play->raw, bytes, length);
    weir__free(bytes);
}

/* ---- what is refused ---- */

/* Told once, in words, and closed. */
static void assert_refused(struct play *play, const char *words)
{
    struct tls_side *ours = &play->raw.ours;

    if (event_log_count(&ours->events, "error(") != 1 ||
        event_log_count(&ours->events, "inactive") != 1 ||
        event_log_count(&ours->events, "handshake(") != 0 || weir_channel_is_open(ours->channel) ||
        strstr(ours->detail, words) == NULL)
        fail_msg("\"%s\" is not what \"%s\" says: %s", words, ours->detail, ours->events.text);
}

static const struct refused {
    struct content content;
    const char *words_1_2;
    const char *words_1_3;
} refused[] = {
    {CONTENT(SSL3_RT_ALERT, "\1\x70"), "too many warn alerts",
     "rejected by the peer: unrecognized"},
    {CONTENT(SSL3_RT_ALERT, "\1\x5a"), "too many warn alerts", "too many warn alerts"},
    {CONTENT(SSL3_RT_ALERT, "\1\xff"), "too many warn alerts", "rejected by the peer: unknown"},
    {CONTENT(SSL3_RT_ALERT, "\1\x64"), "no renegotiation", "no renegotiation"},
    {CONTENT(SSL3_RT_ALERT, "\1\x5a\1\x5a"), "invalid alert", "invalid alert"},
    {CONTENT(SSL3_RT_ALERT, "\1"), "invalid alert", "invalid alert"},
    {CONTENT(SSL3_RT_ALERT, ""), "invalid alert", "bad length"},
    {CONTENT(SSL3_RT_APPLICATION_DATA, ""), "record too small", "record too small"},
    {CONTENT(SSL3_RT_HANDSHAKE, ""), "record too small", "bad length"},
    {CONTENT(SSL3_RT_CHANGE_CIPHER_SPEC, "\1"), "ccs received early", "bad record type"},
    {CONTENT(SSL3_RT_CHANGE_CIPHER_SPEC, ""), "rejected by us", "rejected by us"},
    {CONTENT(0, ""), "unexpected record", "bad record type"},         /* only padding, to TLS 1.3 */
    {CONTENT(24, "\1\0\1x"), "unexpected record", "bad record type"}, /* a heartbeat */
    {CONTENT(SSL3_RT_HANDSHAKE, "\x14\0\0\1x"), "unexpected message", "unexpected message"},
    {CONTENT(SSL3_RT_HANDSHAKE, "\x18\0\0\1\7"), "unexpected message", "bad key update"},
    {CONTENT(SSL3_RT_HANDSHAKE, "\1\xff\xff\xff"), "rejected by us",
     "unexpected message"}, /* long */
};

#define each_refused(row)                     \
    for (const struct refused *row = refused; \
         row < refused + sizeof(refused) / sizeof(refused[0]); row++)

static const char *words_of(const struct refused *row, const struct role *role)
{
    return role->version == WEIR_TLS_VERSION_1_2 ? row->words_1_2 : row->words_1_3;
}

TEST(tls_forged, floods_are_rejected_after_a_few)
{
    struct play play;
    int count;

    each_role(role)
    {
        each_refused(row)
        {
            play_begin(&play, role->is_server, role->version);
            for (count = 0; count <= FEW && weir_channel_is_open(play.raw.ours.channel); count++)
                forge(&play, &row->content);
            assert_refused(&play, words_of(row, role));
            play_end(&play);
        }
    }
}

TEST(tls_forged, floods_in_one_piece_are_rejected)
{
    struct play play;

    each_role(role)
    {
        each_refused(row)
        {
            play_begin(&play, role->is_server, role->version);
            forge_many(&play, &row->content, 1);
            assert_refused(&play, words_of(row, role));
            play_end(&play);
        }
    }
}

/* In clear, after the handshake. To TLS 1.3 a change of the cipher means nothing, to others it is
 * not even one. */
TEST(tls_forged, what_comes_in_clear_is_rejected)
{
    static const uint8_t clear[][7] = {{20, 3, 3, 0, 1, 1}, {21, 3, 3, 0, 2, 1, 90}};
    struct play play;

    each_role(role)
    {
        for (size_t i = 0; i < 2; i++) {
            play_begin(&play, role->is_server, role->version);
            for (int j = 0; j < FEW; j++)
                raw_peer_inject(&play.raw, clear[i], 6 + i);
            assert_refused(&play, "rejected by us");
            play_end(&play);
        }
    }
}

/* TLS 1.3 has no levels. */
TEST(tls_forged, a_fatal_close_notify_is_an_error_before_tls_1_3)
{
    static const struct content fatal = CONTENT(SSL3_RT_ALERT, "\2\0");
    struct play play;

    each_role(role)
    {
        play_begin(&play, role->is_server, role->version);
        forge(&play, &fatal);
        if (role->version == WEIR_TLS_VERSION_1_2)
            assert_refused(&play, "rejected by the peer: close notify");
        else
            assert_int_equal(event_log_count(&play.raw.ours.events, "error("), 0);
        assert_false(weir_channel_is_open(play.raw.ours.channel));
        play_end(&play);
    }
}

/* ---- what is borne ---- */

/* Returns how many bytes ours has sent. */
static size_t drop_answers(struct play *play)
{
    size_t length = 0;
    weir_msg *msg;

    while ((msg = weir_embedded_read_outbound(play->raw.ours.embedded)) != NULL) {
        length += weir_buf_readable(weir_buf_of(msg));
        weir_msg_release(msg);
    }
    return length;
}

/* The alert that ours has sent, as the raw peer hears it. */
static int hear_alert(struct play *play)
{
    weir_msg *msg;
    char byte;
    size_t length;

    while ((msg = weir_embedded_read_outbound(play->raw.ours.embedded)) != NULL) {
        weir_buf *buf = weir_buf_of(msg);

        (void)BIO_write(SSL_get_rbio(play->raw.ssl), weir_buf_bytes(buf),
                        (int)weir_buf_readable(buf));
        weir_msg_release(msg);
    }
    ERR_clear_error();
    while (SSL_read_ex(play->raw.ssl, &byte, 1, &length) == 1) {
    }
    return ERR_GET_REASON(ERR_peek_error()) - SSL_AD_REASON_OFFSET;
}

/* Data still gets through. */
static void assert_unharmed(struct play *play)
{
    forge_text(play, "hello");
    assert_events(&play->raw.ours.events, "read(hello)");
}

/* Many, again and again: answers are no longer than what came, and nothing piles up. */
static void assert_borne(struct play *play, const struct content *contents, size_t count)
{
    size_t bytes = 0, blocks = 0, delivered = play->raw.delivered, answers = 0;

    play->raw.ours.is_long = true;
    for (int i = 0; i < 4; i++) {
        forge_many(play, contents, count);
        answers += drop_answers(play);
        if (i == 0) {
            bytes = test_openssl_bytes();
            blocks = test_memory_live();
        }
    }
    assert_true(answers <= play->raw.delivered - delivered);
    assert_true(test_openssl_bytes() <= bytes + 1024);
    assert_true(test_memory_live() <= blocks);
    event_log_clear(&play->raw.ours.events); /* a long message */
    play->raw.ours.is_long = false;
    assert_unharmed(play);
}

TEST(tls_forged, a_few_among_data_are_borne)
{
    static const struct content warnings[] = {CONTENT(SSL3_RT_ALERT, "\1\x5a"),
                                              CONTENT(SSL3_RT_APPLICATION_DATA, "x")};
    static const struct content empties[] = {CONTENT(SSL3_RT_APPLICATION_DATA, ""),
                                             CONTENT(SSL3_RT_APPLICATION_DATA, ""),
                                             CONTENT(SSL3_RT_APPLICATION_DATA, "x")};
    struct play play;

    each_role(role)
    {
        play_begin(&play, role->is_server, role->version);
        assert_borne(&play, warnings, 2);
        assert_borne(&play, empties, 3);
        assert_int_equal(play.raw.ours.received, 4 * (MANY / 2 + MANY / 3) + 10);
        play_end(&play);
    }
}

/* Another handshake of TLS 1.2: a client begins one, a server asks for one. */
static const struct content another[] = {CONTENT(SSL3_RT_HANDSHAKE, "\1\0\0\4\3\3xx"),
                                         CONTENT(SSL3_RT_HANDSHAKE, "\0\0\0\0")};

static const struct content data = CONTENT(SSL3_RT_APPLICATION_DATA, "x");

/* Each is answered by an alert. What comes between data costs no more than the data. */
TEST(tls_forged, demands_for_another_handshake_among_data_are_borne)
{
    struct play play;

    for (int i = 0; i < 2; i++) {
        const struct content mix[] = {another[i], data, data, data, data, data, data, data, data};

        play_begin(&play, i == 1, WEIR_TLS_VERSION_1_2);
        assert_borne(&play, mix, sizeof(mix) / sizeof(mix[0]));
        play_end(&play);
    }
}

/* ---- what is refused if there is much of it, and no data ---- */

#define USELESS "too many records without data"
#define MESSAGES_MAX (WEIR__OPENSSL_DATALESS_MAX / WEIR__OPENSSL_MESSAGE_COST)

/* In pieces of one record, and in one piece: accepted so often, and refused then. */
static void assert_capped(const struct role *role, const struct content *content, bool renews,
                          bool is_joined)
{
    uint8_t *bytes = weir__alloc((size_t)MANY * (16 + RECORD_FORGER_EXTRA));
    size_t length = 0;
    struct play play;

    assert_non_null(bytes);
    play_begin(&play, role->is_server, role->version);
    for (int i = 0; i < MANY; i++) {
        size_t size = record_forger_seal(&play.forger, content->type, content->bytes,
                                         content->length, bytes + length);

        if (renews)
            record_forger_update_keys(&play.forger);
        if (is_joined) {
            length += size;
            continue;
        }
        assert_int_equal(weir_channel_is_open(play.raw.ours.channel), i <= MESSAGES_MAX);
        raw_peer_inject(&play.raw, bytes, size);
    }
    if (is_joined)
        raw_peer_inject(&play.raw, bytes, length);
    assert_refused(&play, USELESS);
    assert_true(drop_answers(&play) <= (MESSAGES_MAX + 2) * (size_t)64);
    play_end(&play);
    weir__free(bytes);
}

TEST(tls_forged, a_flood_of_messages_of_the_handshake_is_rejected)
{
    static const struct {
        struct role role;
        struct content content;
        bool renews;
    } rows[] = {
        {{false, WEIR_TLS_VERSION_1_3}, CONTENT(SSL3_RT_HANDSHAKE, "\x18\0\0\1\0"), true},
        {{true, WEIR_TLS_VERSION_1_3}, CONTENT(SSL3_RT_HANDSHAKE, "\x18\0\0\1\0"), true},
        {{false, WEIR_TLS_VERSION_1_3}, CONTENT(SSL3_RT_HANDSHAKE, "\x18\0\0\1\1"), true},
        {{true, WEIR_TLS_VERSION_1_3}, CONTENT(SSL3_RT_HANDSHAKE, "\x18\0\0\1\1"), true},
        {{false, WEIR_TLS_VERSION_1_2}, CONTENT(SSL3_RT_HANDSHAKE, "\1\0\0\4\3\3xx"), false},
        {{true, WEIR_TLS_VERSION_1_2}, CONTENT(SSL3_RT_HANDSHAKE, "\0\0\0\0"), false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_capped(&rows[i].role, &rows[i].content, rows[i].renews, false);
        assert_capped(&rows[i].role, &rows[i].content, rows[i].renews, true);
    }
}

/* OpenSSL has a limit of 32 empty records, or 5 warnings, in a row: a byte between them passes it.
 */
TEST(tls_forged, a_flood_of_empty_records_with_few_data_is_rejected)
{
    struct play play;
    int rounds;

    each_role(role)
    {
        play_begin(&play, role->is_server, role->version);
        play.raw.ours.is_long = true;
        for (rounds = 0; rounds < MANY && weir_channel_is_open(play.raw.ours.channel); rounds++) {
            static const struct content empty = CONTENT(SSL3_RT_APPLICATION_DATA, "");

            for (int i = 0; i < 30; i++)
                forge(&play, &empty);
            forge(&play, &data);
        }
        assert_true(rounds > 1 && rounds <= WEIR__OPENSSL_DATALESS_MAX / 28 + 1);
        assert_refused(&play, USELESS);
        play_end(&play);
    }
}

/* The alert that a peer of TLS 1.3 gets. */
TEST(tls_forged, a_flood_is_answered_by_an_alert)
{
    static const struct content update = CONTENT(SSL3_RT_HANDSHAKE, "\x18\0\0\1\0");
    struct play play;

    play_begin(&play, false, WEIR_TLS_VERSION_1_3);
    for (int i = 0; i <= MESSAGES_MAX; i++) {
        forge(&play, &update);
        record_forger_update_keys(&play.forger);
    }
    assert_int_equal(hear_alert(&play), SSL_AD_UNEXPECTED_MESSAGE);
    assert_refused(&play, USELESS);
    play_end(&play);
}

TEST(tls_forged, demands_for_another_handshake_whose_answers_nobody_takes_are_rejected)
{
    const weir_embedded_options *channel =
        WEIR_EMBEDDED_OPTIONS(.socket_space = 8192,
                              .channel = WEIR_CHANNEL_OPTIONS(.high_mark = 16384));
    struct play play;

    for (int i = 0; i < 2; i++) {
        play_begin_with(&play, &(const struct raw_peer_options){.is_server = i == 1,
                                                                .max_version = WEIR_TLS_VERSION_1_2,
                                                                .channel = channel});
        play.raw.ours.is_long = true;
        for (int j = 0; j < 9 * MANY && weir_channel_is_open(play.raw.ours.channel); j++) {
            forge(&play, j % 9 == 8 ? &another[i] : &data);
            assert_true(weir_channel_pending_bytes(play.raw.ours.channel) <= 2 * 16384);
        }
        raw_peer_end_stream(&play.raw);
        assert_refused(&play, "the peer requests replies and does not read them");
        play_end(&play);
    }
}

/* All in one piece: new keys, and data. */
TEST(tls_forged, new_keys_among_data_are_borne)
{
    static const struct content update = CONTENT(SSL3_RT_HANDSHAKE, "\x18\0\0\1\1");
    struct play play;

    for (int i = 0; i < 2; i++) {
        uint8_t *bytes = weir__alloc((size_t)MANY * (16 + RECORD_FORGER_EXTRA));
        size_t length = 0;

        assert_non_null(bytes);
        play_begin(&play, i == 1, WEIR_TLS_VERSION_1_3);
        play.raw.ours.is_long = true;
        for (int j = 0; j < MANY; j++) {
            const struct content *content = j % 9 == 8 ? &update : &data;

            length += record_forger_seal(&play.forger, content->type, content->bytes,
                                         content->length, bytes + length);
            if (content == &update)
                record_forger_update_keys(&play.forger);
        }
        raw_peer_inject(&play.raw, bytes, length);
        assert_true(drop_answers(&play) <= length);
        event_log_clear(&play.raw.ours.events);
        play.raw.ours.is_long = false;
        assert_unharmed(&play);
        play_end(&play);
        weir__free(bytes);
    }
}

/* Lifetime, age, a nonce, the ticket, no extensions. */
static struct content make_ticket(char bytes[1024], unsigned number)
{
    static const uint8_t begin[] = {4, 0, 3, 0xfc, 0, 0, 0x0e, 0x10, 0, 0, 0, 0, 4};

    memset(bytes, 'x', 1024);
    memcpy(bytes, begin, sizeof(begin));
    memcpy(bytes + sizeof(begin), &number, 4);
    bytes[sizeof(begin) + 4] = (char)((1024 - sizeof(begin) - 8) >> 8);
    bytes[sizeof(begin) + 5] = (char)((1024 - sizeof(begin) - 8) & 0xff);
    memcpy(bytes + sizeof(begin) + 6, &number, sizeof(number));
    bytes[1022] = bytes[1023] = 0;
    return (struct content){SSL3_RT_HANDSHAKE, bytes, 1024};
}

/* A client remembers some, of which each pushes another out. */
TEST(tls_forged, tickets_are_borne_and_most_forgotten)
{
    struct raw_peer_options options = {.is_server = true, .max_version = WEIR_TLS_VERSION_1_3};
    size_t bytes = 0, blocks = 0;
    struct play play;
    char text[1024];

    assert_int_equal(
        weir_tls_client_create(WEIR_TLS_CONTEXT_OPTIONS(.ca_pem = pki()->ca), &options.context), 0);
    play_begin_with(&play, &options);
    play.raw.ours.is_long = true;
    for (unsigned i = 0; i < MANY / 4; i++) {
        struct content ticket = make_ticket(text, i);

        forge(&play, &ticket);
        for (int j = 0; j < 8; j++)
            forge(&play, &data);
        if (i == 20) {
            bytes = test_openssl_bytes();
            blocks = test_memory_live();
        }
    }
    assert_true(test_openssl_bytes() <= bytes + 1024);
    assert_true(test_memory_live() <= blocks);
    play.raw.ours.is_long = false;
    assert_unharmed(&play);
    play_end(&play);
    weir_tls_context_release(options.context);
}

/* ---- of which only a half comes ---- */

/* Messages that are allowed after the handshake, in two records: a ticket, new keys, and (refused
 * when it is whole) the first of another handshake. */
static const struct halves {
    struct role role;
    struct content first;
    struct content second;
    bool renews;
} halves[] = {
    {{true, WEIR_TLS_VERSION_1_3},
     CONTENT(SSL3_RT_HANDSHAKE, "\4\0\0\x0f\0\0\0\x10"),
     CONTENT(SSL3_RT_HANDSHAKE, "\0\0\0\0\1n\0\1t\0\0"),
     false},
    {{true, WEIR_TLS_VERSION_1_3},
     CONTENT(SSL3_RT_HANDSHAKE, "\x18\0\0\1"),
     CONTENT(SSL3_RT_HANDSHAKE, "\0"),
     true},
    {{false, WEIR_TLS_VERSION_1_3},
     CONTENT(SSL3_RT_HANDSHAKE, "\x18\0\0\1"),
     CONTENT(SSL3_RT_HANDSHAKE, "\1"),
     true},
    {{false, WEIR_TLS_VERSION_1_2},
     CONTENT(SSL3_RT_HANDSHAKE, "\1\0\0\4\3\3"),
     CONTENT(SSL3_RT_HANDSHAKE, "xx"),
     false},
};

#define each_halves(row)                                                                       \
    for (const struct halves *row = halves; row < halves + sizeof(halves) / sizeof(halves[0]); \
         row++)

static void begin_half(struct play *play, const struct halves *row)
{
    play_begin(play, row->role.is_server, row->role.version);
    forge(play, &row->first);
}

static void forge_second(struct play *play, const struct halves *row)
{
    forge(play, &row->second);
    if (row->renews)
        record_forger_update_keys(&play->forger);
}

static void write_text(struct play *play, const char *text, const char *name)
{
    weir_buf *buf = NULL;

    assert_int_equal(weir_buf_create_from(text, strlen(text), &buf), 0);
    tls_side_write(&play->raw.ours, weir_buf_msg(buf), name);
    weir_channel_flush(play->raw.ours.channel);
    weir_embedded_run(play->raw.ours.embedded);
}

/*
 * What the raw peer reads of ours, and whether it ends TLS behind it. One of TLS 1.2 that was
 * refused another handshake does not read on: it has not begun any itself.
 */
static void assert_end_events(struct play *play, const char *text, bool ends)
{
    SSL *ssl = play->raw.ssl;
    char received[HEARD_MAX + 1];
    size_t length = 0, count;
    weir_msg *msg;

    while ((msg = weir_embedded_read_outbound(play->raw.ours.embedded)) != NULL) {
        weir_buf *buf = weir_buf_of(msg);

        (void)BIO_write(SSL_get_rbio(ssl), weir_buf_bytes(buf), (int)weir_buf_readable(buf));
        weir_msg_release(msg);
    }
    while (SSL_read_ex(ssl, received + length, HEARD_MAX - length, &count) == 1)
        length += count;
    if (!play->forger.is_1_3)
        return;
    received[length] = '\0';
    assert_string_equal(received, text);
    assert_int_equal(SSL_get_shutdown(ssl) & SSL_RECEIVED_SHUTDOWN,
                     ends ? SSL_RECEIVED_SHUTDOWN : 0);
}

TEST(tls_forged, writes_wait_for_the_other_half)
{
    struct play play;

    each_halves(row)
    {
        begin_half(&play, row);
        write_text(&play, "one", "one");
        write_text(&play, "two", "two");
        assert_events(&play.raw.ours.events, "");
        assert_true(weir_channel_pending_bytes(play.raw.ours.channel) >= 6);
        forge_second(&play, row);
        assert_events(&play.raw.ours.events, "one=ok two=ok");
        assert_end_events(&play, "onetwo", false);
        write_text(&play, "three", "three");
        assert_events(&play.raw.ours.events, "three=ok");
        assert_end_events(&play, "three", false);
        assert_unharmed(&play);
        play_end(&play);
    }
}

TEST(tls_forged, a_close_waits_for_the_other_half)
{
    struct play play;

    each_halves(row)
    {
        for (int i = 0; i < 2; i++) {
            begin_half(&play, row);
            if (i == 1)
                write_text(&play, "one", "one");
            weir_channel_close(play.raw.ours.channel, NULL);
            weir_embedded_run(play.raw.ours.embedded);
            assert_events(&play.raw.ours.events, "");
            forge_second(&play, row);
            assert_events(&play.raw.ours.events, i == 1 ? "one=ok inactive" : "inactive");
            assert_end_events(&play, i == 1 ? "one" : "", true);
            play_end(&play);
        }
    }
}

/* As long as it takes: the channel is open, and it is its handlers' to close it. */
TEST(tls_forged, a_half_closure_waits_for_the_other_half)
{
    struct play play;

    each_halves(row)
    {
        for (int i = 0; i < 2; i++) {
            begin_half(&play, row);
            if (i == 1)
                write_text(&play, "one", "one");
            weir_channel_shutdown_output(play.raw.ours.channel, NULL);
            weir_embedded_advance(play.raw.ours.embedded, weir_seconds(100));
            assert_events(&play.raw.ours.events, "");
            forge_second(&play, row);
            assert_int_equal(event_log_count(&play.raw.ours.events, "one=ok"), i);
            assert_end_events(&play, i == 1 ? "one" : "", true);
            play_end(&play);
        }
    }
}

TEST(tls_forged, a_close_waits_for_the_other_half_as_long_as_it_may)
{
    struct play play;

    each_halves(row)
    {
        begin_half(&play, row);
        write_text(&play, "one", "one");
        weir_channel_close(play.raw.ours.channel, NULL);
        weir_embedded_advance(play.raw.ours.embedded, weir_seconds(3) - 1);
        assert_events(&play.raw.ours.events, "");
        weir_embedded_advance(play.raw.ours.embedded, 1);
        assert_events(&play.raw.ours.events, "one=ETIMEDOUT error(ETIMEDOUT) inactive");
        assert_string_equal(play.raw.ours.detail,
                            "close timeout: the peer did not complete its message");
        play_end(&play);
    }
}

/* Where reads are on demand somebody has to ask for the other half: those behind have got what they
 * asked for. */
TEST(tls_forged, the_other_half_is_asked_for)
{
    uint8_t records[2 * (16 + RECORD_FORGER_EXTRA)];
    struct play play;
    size_t length;

    each_halves(row)
    {
        for (int i = 0; i < 2; i++) {
            play_begin(&play, row->role.is_server, row->role.version);
            weir_channel_set_auto_read(play.raw.ours.channel, false);
            weir_channel_request_read(play.raw.ours.channel);
            length = record_forger_seal(&play.forger, SSL3_RT_APPLICATION_DATA, "data", 4, records);
            length += record_forger_seal(&play.forger, row->first.type, row->first.bytes,
                                         row->first.length, records + length);
            raw_peer_inject(&play.raw, records, length);
            assert_events(&play.raw.ours.events, "read(data)");
            if (i == 0)
                write_text(&play, "one", "one");
            else
                weir_channel_close(play.raw.ours.channel, NULL);
            weir_embedded_run(play.raw.ours.embedded);
            forge_second(&play, row);
            assert_events(&play.raw.ours.events, i == 0 ? "one=ok" : "inactive");
            play_end(&play);
        }
    }
}

/* What is between the halves is refused, the end of TLS as well. */
TEST(tls_forged, something_else_than_the_other_half_is_rejected)
{
    static const struct content end = CONTENT(SSL3_RT_ALERT, "\1\0");
    struct play play;

    each_halves(row)
    {
        begin_half(&play, row);
        write_text(&play, "one", NULL);
        forge_text(&play, "data");
        assert_refused(&play, "rejected by us");
        play_end(&play);

        begin_half(&play, row);
        write_text(&play, "one", NULL);
        forge(&play, &end);
        assert_refused(&play, "the peer closed TLS in the middle of a message");
        play_end(&play);
    }
}
