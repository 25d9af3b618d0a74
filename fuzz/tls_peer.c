/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An arbitrary TLS peer against the TLS handler, as a server or as a client. The peer is OpenSSL,
 * so it gets beyond the hello; the input may modify its records on a simulated wire. Random numbers
 * and keys are fixed, so that runs are reproducible.
 *
 *      OpenSSL  ->  wire: flip, drop, repeat, swap, insert, cut  ->  handler  ->  witness
 *      OpenSSL  <-------------------------------------------------  handler  <-  writes
 *
 * Input: the configuration (see `begin`), then actions, each a letter with its numbers (see `act`).
 * For every input: the result of the handshake is reported exactly once, an error at most once and
 * with a detail; the plain text received is a prefix of what the peer sent; every write completes;
 * our output is bounded by our input, and pending bytes by our writes; the channel closes, and
 * nothing leaks. A run without modifications succeeds.
 */
#define OPENSSL_SUPPRESS_DEPRECATED /* RAND_METHOD: a RAND provider takes a hundred lines */
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>

#include <weir/buf.h>
#include <weir/embedded.h>
#include <weir/pool.h>
#include <weir/promise.h>
#include <weir/tls.h>

#define WIRE_SIZE ((size_t)128 * 1024)
#define FLIGHTS_MAX ((size_t)16 * 1024)  /* of a handshake, and of the end */
#define RENEWALS_MAX 24                  /* more may be rejected as a flood of empty records */
#define ANSWERS_MAX ((int64_t)64 * 1024) /* pending, in addition to writes */
#define NARROW 4096                      /* capacity of a socket whose peer does not read */
#define RECORD_HEADER 5
#define SHORT_RECORD 512 /* the minimum that OpenSSL can be configured to send, */
#define LONG_TICKET 1500 /* and a ticket that is longer, so that it is fragmented */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool holds)
{
    if (!holds)
        abort();
}

/* ---- who they are ---- */

/* Certificate and authority. Ed25519, because its signatures have one length. */
static const char identity[] = "-----BEGIN PRIVATE KEY-----\n"
                               "MC4CAQAwBQYDK2VwBCIEIF7y70Zj3IY8yNCp2LHLfwzlkcFpta7QMuEo9vEx7H2F\n"
                               "-----END PRIVATE KEY-----\n"
                               "-----BEGIN CERTIFICATE-----\n"
                               "MIIBHjCB0aADAgECAgEBMAUGAytlcDAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwHhcN\n"
                               "MjAwMTAxMDAwMDAwWhcNNDkxMjMxMjM1OTU5WjAUMRIwEAYDVQQDDAlsb2NhbGhv\n"
                               "c3QwKjAFBgMrZXADIQBjxKQcyjY7gIkgK9lPj1PRua3hK1Tzw38+XbTVWe0ibqNI\n"
                               "MEYwDwYDVR0TAQH/BAUwAwEB/zAUBgNVHREEDTALgglsb2NhbGhvc3QwHQYDVR0O\n"
                               "BBYEFHvqgy5VaWWECX5W3MqayhRzXectMAUGAytlcANBAG+3mAEvaZO2K9YoUZfv\n"
                               "ZkTz5xhtNc48mjwDo9n2ODCE1ebkG8eEUZhUAfr+CXsU/2MqLSkMnndGD5KvzJ0C\n"
                               "Mwo=\n"
                               "-----END CERTIFICATE-----\n";

static uint64_t chance;

static int fixed_bytes(unsigned char *bytes, int length)
{
    for (int i = 0; i < length; i++) {
        chance = chance * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        bytes[i] = (unsigned char)(chance >> 56);
    }
    return 1;
}

static int is_seeded(void)
{
    return 1;
}

static const RAND_METHOD fixed_chance = {
    .bytes = fixed_bytes, .pseudorand = fixed_bytes, .status = is_seeded};

/* ---- the play ---- */

struct play {
    SSL *peer;
    BIO *to_peer, *from_peer; /* of the peer */
    weir_tls_context *context;
    weir_embedded *ours;
    weir_channel *channel;

    uint8_t *wire; /* in flight to the handler */
    size_t length;
    size_t piece; /* bytes per read; 0 = all */

    size_t handshakes, errors, ends;
    size_t heard, said;       /* plain text sent by the peer */
    size_t written, answered; /* plain text sent by the handler, and received by the peer */
    size_t received, sent;    /* sent by the handler, on the wire */
    size_t writes, completed;
    int result; /* of the handshake */
    bool is_server, is_tls_1_2, has_half_closure, is_narrow, has_long_tickets;
    bool is_changed; /* the handler does not receive what the peer sent, */
    bool is_closed;  /* or not all of it: the handler closes, */
    unsigned renewals;
    bool is_unusual; /* or the peer does something that may be rejected */
};

/* Positions in both directions. */
static uint8_t plain_at(size_t position)
{
    return (uint8_t)(position * 31 + position / 256);
}

/* ---- the witness ---- */

static struct play *play_of(weir_ctx *ctx)
{
    return *(struct play **)weir_ctx_state(ctx);
}

static int witness_init(void *state, const void *play)
{
    *(struct play **)state = *(struct play *const *)play;
    return 0;
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    struct play *play = play_of(ctx);
    const weir_buf *buf = weir_buf_of(msg);
    size_t length = weir_buf_readable(buf);

    expect(play->handshakes == 1 && play->result == 0 && play->ends == 0);
    expect(length > 0 && length <= play->said - play->heard);
    for (size_t i = 0; i < length; i++)
        expect(weir_buf_bytes(buf)[i] == plain_at(play->heard++));
    weir_msg_release(msg);
}

static void on_event(weir_ctx *ctx, weir_msg *event)
{
    const weir_tls_handshake *handshake = weir_tls_handshake_of(event);
    struct play *play = play_of(ctx);

    if (handshake != NULL) {
        play->handshakes++;
        play->result = weir_tls_handshake_result(handshake);
        expect((play->result == 0) == (*weir_tls_handshake_detail(handshake) == '\0'));
    } else if (event == weir_event_tls_closed()) {
        expect(play->handshakes == 1 && play->result == 0);
        play->ends++;
    }
    weir_msg_release(event);
}

static void on_error(weir_ctx *ctx, int err, const char *detail)
{
    struct play *play = play_of(ctx);

    expect(err < 0 && (detail == NULL || *detail != '\0'));
    expect(play->handshakes == 1);
    play->errors++;
}

static const weir_handler witness = {
    .name = "witness",
    .state_size = sizeof(struct play *),
    .init = witness_init,
    .read = on_read,
    .event = on_event,
    .error = on_error,
};

/* ---- its beginning and its end ---- */

static int on_ticket(SSL *ssl, void *unused)
{
    static const uint8_t zeros[LONG_TICKET];
    const struct play *play = SSL_get_app_data(ssl);

    (void)unused;
    return !play->has_long_tickets ||
           SSL_SESSION_set1_ticket_appdata(SSL_get_session(ssl), zeros, sizeof(zeros)) == 1;
}

static SSL_CTX *create_peer_context(const struct play *play)
{
    SSL_CTX *ctx = SSL_CTX_new(play->is_server ? TLS_client_method() : TLS_server_method());
    BIO *bio = BIO_new_mem_buf(identity, -1);
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL);
    X509 *certificate = PEM_read_bio_X509(bio, NULL, NULL, NULL);

    expect(SSL_CTX_use_certificate(ctx, certificate) == 1 && SSL_CTX_use_PrivateKey(ctx, key) == 1);
    (void)SSL_CTX_clear_options(ctx, SSL_OP_NO_RENEGOTIATION);
    (void)SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    (void)SSL_CTX_set_session_ticket_cb(ctx, on_ticket, NULL, NULL);
    X509_free(certificate);
    EVP_PKEY_free(key);
    BIO_free(bio);
    return ctx;
}

/* Created once, since this takes longer than a run. It keeps no sessions. */
static SSL_CTX *peer_context(const struct play *play)
{
    static SSL_CTX *contexts[2];
    SSL_CTX **context = &contexts[play->is_server];

    if (*context == NULL)
        *context = create_peer_context(play);
    return *context;
}

static void create_peer(struct play *play)
{
    play->peer = SSL_new(peer_context(play));
    play->to_peer = BIO_new(BIO_s_mem());
    play->from_peer = BIO_new(BIO_s_mem());
    expect(play->peer != NULL && play->to_peer != NULL && play->from_peer != NULL);
    SSL_set_bio(play->peer, play->to_peer, play->from_peer);
    expect(SSL_set_app_data(play->peer, play) == 1);
    if (play->has_long_tickets)
        expect(SSL_set_max_send_fragment(play->peer, SHORT_RECORD) == 1);
    if (play->is_server)
        SSL_set_connect_state(play->peer);
    else
        SSL_set_accept_state(play->peer);
}

static void create_ours(struct play *play, bool is_mutual)
{
    const weir_tls_context_options *options =
        WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = identity, .ca_pem = identity,
                                 .verify =
                                     is_mutual ? WEIR_TLS_VERIFY_REQUIRED : WEIR_TLS_VERIFY_DEFAULT,
                                 .max_version = play->is_tls_1_2 ? WEIR_TLS_VERSION_1_2
                                                                 : WEIR_TLS_VERSION_1_3);
    const weir_channel_options *channel =
        WEIR_CHANNEL_OPTIONS(.half_closure = play->has_half_closure);
    weir_pipeline *pipeline;
    int err = play->is_server ? weir_tls_server_create(options, &play->context)
                              : weir_tls_client_create(options, &play->context);

    expect(err == 0);
    expect(weir_embedded_create(WEIR_EMBEDDED_OPTIONS(.channel = channel, .register_later = true,
                                                      .socket_space = play->is_narrow ? NARROW : 0),
                                &play->ours) == 0);
    play->channel = weir_embedded_channel(play->ours);
    pipeline = weir_embedded_pipeline(play->ours);
    expect(weir_tls_add_with(pipeline, play->context,
                             WEIR_TLS_OPTIONS(.server_name = "localhost")) == 0);
    expect(weir_pipeline_add_last(pipeline, &witness, &play) == 0);
    expect(weir_embedded_register(play->ours) == 0);
}

/* The first byte is the configuration, the second the size of reads. */
static void begin(struct play *play, const uint8_t *header)
{
    chance = 1;
    *play = (struct play){
        .is_server = (header[0] & 1) != 0,
        .is_tls_1_2 = (header[0] & 2) != 0,
        .has_half_closure = (header[0] & 4) != 0,
        .is_narrow = (header[0] & 16) != 0,
        .has_long_tickets = (header[0] & 32) != 0,
        .piece = header[1],
    };
    play->wire = malloc(WIRE_SIZE);
    expect(play->wire != NULL);
    create_peer(play);
    create_ours(play, (header[0] & 8) != 0);
}

static void end(struct play *play)
{
    weir_embedded_release(play->ours);
    weir_tls_context_release(play->context);
    SSL_free(play->peer);
    ERR_clear_error();
    free(play->wire);
}

/* ---- the peer ---- */

/* Delivers the handler's output. */
static void hand_over(struct play *play)
{
    weir_msg *msg;

    while ((msg = weir_embedded_read_outbound(play->ours)) != NULL) {
        const weir_buf *buf = weir_buf_of(msg);

        play->sent += weir_buf_readable(buf);
        (void)BIO_write(play->to_peer, weir_buf_bytes(buf), (int)weir_buf_readable(buf));
        weir_msg_release(msg);
    }
}

/* Puts the peer's output on the wire. What exceeds it is lost. */
static void collect(struct play *play)
{
    int length =
        BIO_read(play->from_peer, play->wire + play->length, (int)(WIRE_SIZE - play->length));

    if (length > 0)
        play->length += (size_t)length;
    if (BIO_pending(play->from_peer) > 0) {
        (void)BIO_reset(play->from_peer);
        play->is_changed = true;
    }
}

static void let_peer_think(struct play *play)
{
    uint8_t bytes[4096];
    size_t length;

    hand_over(play);
    ERR_clear_error();
    if (!SSL_is_init_finished(play->peer))
        (void)SSL_do_handshake(play->peer);
    while (SSL_is_init_finished(play->peer) &&
           SSL_read_ex(play->peer, bytes, sizeof(bytes), &length) == 1) {
        expect(length <= play->written - play->answered);
        for (size_t i = 0; i < length; i++)
            expect(bytes[i] == plain_at(play->answered++));
    }
    collect(play);
}

static void let_peer_say(struct play *play, size_t length)
{
    uint8_t bytes[4096];
    size_t taken;

    if (length == 0 || length > sizeof(bytes) || !SSL_is_init_finished(play->peer))
        return;
    for (size_t i = 0; i < length; i++)
        bytes[i] = plain_at(play->said + i);
    if (SSL_write_ex(play->peer, bytes, length, &taken) == 1)
        play->said += taken;
    collect(play);
}

/* A key update or a ticket in TLS 1.3, a renegotiation in TLS 1.2. */
static void let_peer_renew(struct play *play, unsigned how)
{
    if (!SSL_is_init_finished(play->peer))
        return;
    play->renewals++;
    play->is_unusual |= play->is_tls_1_2 || play->is_narrow || play->renewals > RENEWALS_MAX;
    if (play->is_tls_1_2)
        (void)SSL_renegotiate(play->peer);
    else if (how % 3 == 2)
        (void)SSL_new_session_ticket(play->peer);
    else
        (void)SSL_key_update(play->peer, how % 3 == 0 ? SSL_KEY_UPDATE_NOT_REQUESTED
                                                      : SSL_KEY_UPDATE_REQUESTED);
    (void)SSL_do_handshake(play->peer);
    collect(play);
}

/* ---- the wire ---- */

static void bring(struct play *play, size_t length)
{
    size_t done = 0;

    if (length > play->length)
        length = play->length;
    while (done < length) {
        size_t piece = play->piece > 0 && play->piece < length - done ? play->piece : length - done;
        weir_buf *buf;

        expect(weir_buf_create_from(play->wire + done, piece, &buf) == 0);
        (void)weir_embedded_write_inbound(play->ours, weir_buf_msg(buf));
        done += piece;
    }
    play->received += length;
    memmove(play->wire, play->wire + length, play->length - length);
    play->length -= length;
}

static void drop(struct play *play, size_t at, size_t length)
{
    if (at >= play->length || length == 0)
        return;
    if (length > play->length - at)
        length = play->length - at;
    memmove(play->wire + at, play->wire + at + length, play->length - at - length);
    play->length -= length;
    play->is_changed = true;
}

/* NULL = zeros. */
static void insert(struct play *play, size_t at, const uint8_t *bytes, size_t length)
{
    if (at > play->length)
        at = play->length;
    if (length == 0 || length > WIRE_SIZE - play->length)
        return;
    memmove(play->wire + at + length, play->wire + at, play->length - at);
    if (bytes != NULL)
        memcpy(play->wire + at, bytes, length);
    else
        memset(play->wire + at, 0, length);
    play->length += length;
    play->is_changed = true;
}

/* The end of the record at `at`; the end of the wire if the record is longer. */
static size_t record_end(const struct play *play, size_t at)
{
    size_t left = play->length - at, length;

    if (left < RECORD_HEADER)
        return play->length;
    length = RECORD_HEADER + (size_t)play->wire[at + 3] * 256 + play->wire[at + 4];
    return length > left ? play->length : at + length;
}

static void repeat(struct play *play, size_t times)
{
    size_t length = record_end(play, 0);
    uint8_t *record = malloc(length + 1);

    expect(record != NULL);
    memcpy(record, play->wire, length);
    for (; times > 0; times--)
        insert(play, 0, record, length);
    free(record);
}

/* Swaps the first two records. */
static void swap(struct play *play)
{
    size_t first = record_end(play, 0);
    size_t second = record_end(play, first) - first;
    uint8_t *record = malloc(first + 1);

    expect(record != NULL);
    memcpy(record, play->wire, first);
    memmove(play->wire, play->wire + first, second);
    memcpy(play->wire + second, record, first);
    free(record);
    play->is_changed = true;
}

static void flip(struct play *play, size_t at, uint8_t mask)
{
    if (play->length == 0 || mask == 0)
        return;
    play->wire[at % play->length] ^= mask;
    play->is_changed = true;
}

static void insert_record(struct play *play, uint8_t type, size_t length)
{
    uint8_t header[RECORD_HEADER] = {type, 3, 3, (uint8_t)(length >> 8), (uint8_t)length};

    insert(play, 0, NULL, length);
    insert(play, 0, header, sizeof(header));
}

/* ---- ours ---- */

static void on_written(weir_promise *promise, void *user_data)
{
    struct play *play = user_data;

    (void)promise;
    play->completed++;
}

static void write_ours(struct play *play, size_t length)
{
    weir_promise *promise;
    weir_buf *buf;

    expect(weir_buf_create(length + 1, 0, &buf) == 0);
    for (size_t i = 0; i < length; i++)
        weir_buf_space(buf)[i] = plain_at(play->written + i);
    (void)weir_buf_advance(buf, length);
    expect(weir_promise_create(weir_channel_executor(play->channel), &promise) == 0);
    expect(weir_promise_add_listener(promise, on_written, play) == 0);
    play->writes++;
    play->written += length;
    weir_channel_write_and_flush(play->channel, weir_buf_msg(buf), promise);
    weir_embedded_run(play->ours);
    weir_promise_release(promise);
}

static void close_ours(struct play *play, bool is_abrupt)
{
    play->is_closed = true;
    if (is_abrupt)
        weir_channel_abort(play->channel, NULL);
    else
        weir_channel_close(play->channel, NULL);
    weir_embedded_run(play->ours);
}

/* ---- what happens ---- */

struct script {
    const uint8_t *data;
    size_t size;
};

static uint8_t next_byte(struct script *script)
{
    if (script->size == 0)
        return 0;
    script->size--;
    return *script->data++;
}

static size_t next_number(struct script *script)
{
    size_t high = next_byte(script);

    return high * 256 + next_byte(script);
}

static void act_on_wire(struct play *play, uint8_t letter, struct script *script)
{
    size_t at = letter == 'f' || letter == 'd' || letter == 'i' ? next_number(script) : 0;
    size_t length = next_byte(script);

    switch (letter) {
    case 'f':
        flip(play, at, (uint8_t)length);
        break;
    case 'd':
        drop(play, at, length);
        break;
    case 'i':
        length = length < script->size ? length : script->size;
        insert(play, at, script->data, length);
        script->data += length;
        script->size -= length;
        break;
    case 'r':
        repeat(play, length);
        break;
    case 'R':
        insert_record(play, (uint8_t)length, next_number(script));
        break;
    default:
        swap(play);
    }
}

static void act_by_themselves(struct play *play, uint8_t letter, struct script *script)
{
    switch (letter) {
    case 's':
        let_peer_say(play, next_number(script) % 4097);
        break;
    case 'k':
        let_peer_renew(play, next_byte(script));
        break;
    case 'e':
        (void)SSL_shutdown(play->peer);
        play->is_closed = true;
        collect(play);
        break;
    case 'w':
        write_ours(play, next_number(script));
        break;
    case 'c':
        close_ours(play, next_byte(script) % 4 == 3);
        break;
    case 't':
        weir_embedded_advance(play->ours, weir_ms((int64_t)next_byte(script) * 100));
        play->is_unusual = true;
        break;
    case 'm':
        weir_embedded_make_space(play->ours, (int64_t)next_number(script));
        break;
    case 'E':
        weir_embedded_end_input(play->ours);
        play->is_changed = true;
        break;
    case 'a':
        weir_channel_set_auto_read(play->channel, next_byte(script) % 2 == 0);
        weir_embedded_run(play->ours);
        break;
    default:
        break;
    }
}

static void act(struct play *play, struct script *script)
{
    uint8_t letter = next_byte(script);

    if (letter == 'b')
        bring(play, next_number(script));
    else if (letter == 'B')
        bring(play, SIZE_MAX);
    else if (letter == 'p')
        let_peer_think(play);
    else if (letter != '\0' && strchr("fdirRx", letter) != NULL)
        act_on_wire(play, letter, script);
    else
        act_by_themselves(play, letter, script);
}

/* Delivers everything in flight; then the peer leaves, and all timeouts expire. */
static void finish(struct play *play)
{
    size_t before;

    weir_channel_set_auto_read(play->channel, true);
    if (play->is_narrow)
        weir_embedded_make_space(play->ours, INT32_MAX);
    weir_embedded_run(play->ours);
    do {
        before = play->received + play->sent;
        let_peer_think(play);
        bring(play, SIZE_MAX);
    } while (play->received + play->sent != before);
    if (play->is_changed || play->is_closed || play->is_unusual)
        return;
    expect(play->handshakes == 1 && play->result == 0 && play->errors == 0);
    expect(play->heard == play->said && play->answered == play->written);
}

static void go(struct play *play)
{
    weir_embedded_end_input(play->ours);
    if (play->has_half_closure)
        weir_channel_close(play->channel, NULL);
    weir_embedded_advance(play->ours, weir_seconds(20));
    hand_over(play);
    expect(!weir_channel_is_open(play->channel));
    expect(play->handshakes == 1 && play->errors <= 1 && play->ends <= 1);
    expect(play->result == 0 || play->errors == 1 || play->is_closed);
    expect(play->completed == play->writes);
    expect(play->sent <= FLIGHTS_MAX + 2 * (play->received + play->written));
}

static uint64_t bytes_in_use(void)
{
    weir_pool_stats stats;

    weir_pool_read_stats(&stats);
    return stats.in_use_bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t before = bytes_in_use();
    struct script script = {data + 2, size - 2};
    struct play play;

    if (size < 2)
        return 0;
    expect(RAND_set_rand_method(&fixed_chance) == 1);
    begin(&play, data);
    while (script.size > 0) {
        act(&play, &script);
        expect(weir_channel_pending_bytes(play.channel) <= ANSWERS_MAX + 2 * (int64_t)play.written);
    }
    finish(&play);
    go(&play);
    end(&play);
    expect(bytes_in_use() == before);
    return 0;
}
