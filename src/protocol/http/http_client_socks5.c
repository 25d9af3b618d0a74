/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tunnel through a SOCKS5 proxy (RFC 1928, with the password of RFC 1929). Names are resolved by
 * the proxy.
 *
 *      -> 5, 1, method              <- 5, method
 *      -> 1, user, password         <- 1, 0                        if the method is 2
 *      -> 5, 1, 0, address, port    <- 5, 0, 0, address, port
 *
 * Each message is sent after the answer to the one before. The handlers behind see the connection
 * become active after the last one; then this handler removes itself.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/address.h>
#include <weir/channel.h>
#include <weir/error.h>

#include "protocol/http/http_client.h"

#define TIMEOUT_NS weir_seconds(10)
#define MAX_TEXT 255 /* bytes of a name, a user or a password */

enum { METHOD_NONE = 0, METHOD_PASSWORD = 2 };
enum { ADDRESS_IPV4 = 1, ADDRESS_NAME = 3, ADDRESS_IPV6 = 4 };

struct setup {
    const char *host;
    uint16_t port;
    weir_span userinfo; /* "user:password", decoded; data is NULL if there is none */
};

enum step { METHOD, PASSWORD, CONNECT, OPEN };

struct socks5 {
    enum step step;
    bool has_password;
    size_t length; /* of the answer so far */
    uint8_t answer[4 + 1 + MAX_TEXT + 2];
    uint16_t credentials_length;
    uint16_t request_length;
    uint8_t credentials[3 + 2 * MAX_TEXT];
    uint8_t request[4 + 1 + MAX_TEXT + 2];
    weir_timer timer;
};

/* ---- messages ---- */

static size_t put_text(uint8_t *to, weir_span text)
{
    to[0] = (uint8_t)text.length;
    memcpy(to + 1, text.data, text.length);
    return 1 + text.length;
}

static int make_credentials(struct socks5 *socks, weir_span userinfo)
{
    ssize_t colon = weir_span_find(userinfo, ':');
    size_t user = colon >= 0 ? (size_t)colon : userinfo.length;
    size_t skipped = colon >= 0 ? user + 1 : user;
    weir_span password = weir_span_of(userinfo.data + skipped, userinfo.length - skipped);
    size_t length = 1;

    if (user > MAX_TEXT || password.length > MAX_TEXT)
        return -EINVAL;
    socks->credentials[0] = 1;
    length += put_text(socks->credentials + length, weir_span_of(userinfo.data, user));
    length += put_text(socks->credentials + length, password);
    socks->credentials_length = (uint16_t)length;
    socks->has_password = true;
    return 0;
}

/* Linux: the bytes of sockaddr_in are at 4, those of sockaddr_in6 at 8. */
static size_t put_address(uint8_t *to, const weir_address *address, const char *host)
{
    bool is_ipv4 = weir_address_family(address) == AF_INET;
    size_t length = is_ipv4 ? 4 : 16;

    if (!is_ipv4 && weir_address_family(address) != AF_INET6) {
        to[0] = ADDRESS_NAME;
        return 1 + put_text(to + 1, weir_span_of_text(host));
    }
    to[0] = is_ipv4 ? ADDRESS_IPV4 : ADDRESS_IPV6;
    memcpy(to + 1, (const uint8_t *)weir_address_sockaddr(address) + (is_ipv4 ? 4 : 8), length);
    return 1 + length;
}

static int make_request(struct socks5 *socks, const struct setup *setup)
{
    bool is_ipv6 = strchr(setup->host, ':') != NULL;
    weir_address address;
    char text[MAX_TEXT + 16];
    size_t length = 3;

    if (strlen(setup->host) > MAX_TEXT)
        return -EINVAL;
    (void)snprintf(text, sizeof(text), is_ipv6 ? "[%s]:%u" : "%s:%u", setup->host,
                   (unsigned)setup->port);
    if (weir_address_parse(text, &address) < 0)
        memset(&address, 0, sizeof(address));
    memcpy(socks->request, (const uint8_t[]){5, 1, 0}, length);
    length += put_address(socks->request + length, &address, setup->host);
    weir_store_u16(socks->request + length, setup->port);
    socks->request_length = (uint16_t)(length + 2);
    return 0;
}

static int init(void *state, const void *options)
{
    struct socks5 *socks = state;
    const struct setup *setup = options;
    int err = make_request(socks, setup);

    if (err == 0 && setup->userinfo.data != NULL)
        err = make_credentials(socks, setup->userinfo);
    return err;
}

/* ---- the exchange ---- */

static void fail(weir_ctx *ctx, int err, const char *detail)
{
    weir_fire_error(ctx, err, detail);
    if (!weir_ctx_is_removed(ctx))
        weir_close(ctx, NULL);
}

static void on_timer(weir_ctx *ctx, weir_timer *timer)
{
    (void)timer;
    fail(ctx, -ETIMEDOUT, "the SOCKS5 proxy did not answer in time");
}

static void send_bytes(weir_ctx *ctx, const void *bytes, size_t length)
{
    weir_buf *buf;
    int err = weir_buf_create_from(bytes, length, &buf);

    if (err < 0)
        fail(ctx, err, NULL);
    else
        weir_write_and_flush(ctx, weir_buf_msg(buf), NULL);
}

static void on_active(weir_ctx *ctx)
{
    struct socks5 *socks = weir_ctx_state(ctx);
    const uint8_t hello[] = {5, 1, socks->has_password ? METHOD_PASSWORD : METHOD_NONE};

    (void)weir_ctx_timer_start(ctx, &socks->timer, TIMEOUT_NS, on_timer);
    send_bytes(ctx, hello, sizeof(hello));
}

/* The length of the answer that is expected, as far as it is known. */
static size_t needed(const struct socks5 *socks)
{
    uint8_t kind = socks->answer[3];

    if (socks->step != CONNECT)
        return 2;
    if (socks->length < 5)
        return 5;
    if (kind == ADDRESS_NAME)
        return 4 + 1 + (size_t)socks->answer[4] + 2;
    return kind == ADDRESS_IPV4 ? 4 + 4 + 2 : kind == ADDRESS_IPV6 ? 4 + 16 + 2 : 5;
}

static const char *refusal(uint8_t code)
{
    static const char *const texts[] = {NULL,
                                        "general failure",
                                        "connection not allowed",
                                        "network unreachable",
                                        "host unreachable",
                                        "connection refused",
                                        "TTL expired",
                                        "command not supported",
                                        "address type not supported"};

    return code < sizeof(texts) / sizeof(texts[0]) ? texts[code] : "unknown error";
}

static int error_of(uint8_t code)
{
    return code == 2   ? -EACCES
           : code == 3 ? -ENETUNREACH
           : code == 4 ? -EHOSTUNREACH
           : code == 6 ? -ETIMEDOUT
                       : -ECONNREFUSED;
}

static void send_request(weir_ctx *ctx, struct socks5 *socks)
{
    socks->step = CONNECT;
    send_bytes(ctx, socks->request, socks->request_length);
}

static void on_method(weir_ctx *ctx, struct socks5 *socks)
{
    uint8_t expected = socks->has_password ? METHOD_PASSWORD : METHOD_NONE;

    if (socks->answer[0] != 5) {
        fail(ctx, WEIR_EMALFORMED, "the proxy does not speak SOCKS5");
    } else if (socks->answer[1] != expected) {
        fail(ctx, -EACCES,
             socks->has_password ? "the SOCKS5 proxy does not accept a password"
                                 : "the SOCKS5 proxy asks for a password");
    } else if (socks->has_password) {
        socks->step = PASSWORD;
        send_bytes(ctx, socks->credentials, socks->credentials_length);
    } else {
        send_request(ctx, socks);
    }
}

static void on_connected(weir_ctx *ctx, struct socks5 *socks)
{
    uint8_t kind = socks->answer[3];
    char detail[96];

    if (socks->answer[0] != 5 ||
        (kind != ADDRESS_IPV4 && kind != ADDRESS_NAME && kind != ADDRESS_IPV6)) {
        fail(ctx, WEIR_EMALFORMED, "malformed answer of the SOCKS5 proxy");
    } else if (socks->answer[1] != 0) {
        (void)snprintf(detail, sizeof(detail), "the SOCKS5 proxy answered: %s",
                       refusal(socks->answer[1]));
        fail(ctx, error_of(socks->answer[1]), detail);
    } else {
        socks->step = OPEN;
        (void)weir_timer_stop(&socks->timer);
    }
}

static void on_answer(weir_ctx *ctx, struct socks5 *socks)
{
    socks->length = 0;
    if (socks->step == METHOD)
        on_method(ctx, socks);
    else if (socks->step == CONNECT)
        on_connected(ctx, socks);
    else if (socks->answer[1] == 0)
        send_request(ctx, socks);
    else
        fail(ctx, -EACCES, "the SOCKS5 proxy rejects user and password");
}

/* ---- inbound ---- */

static void open_tunnel(weir_ctx *ctx, weir_buf *rest)
{
    weir_fire_active(ctx);
    if (!weir_ctx_is_removed(ctx) && weir_buf_readable(rest) > 0)
        weir_fire_read(ctx, weir_msg_retain(weir_buf_msg(rest)));
    if (!weir_ctx_is_removed(ctx))
        weir_ctx_remove(ctx);
}

/* An answer is taken byte by byte, as it is short and sets its own length. */
static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    struct socks5 *socks = weir_ctx_state(ctx);
    weir_buf *buf = weir_buf_of(msg);

    if (buf == NULL) {
        weir_fire_read(ctx, msg);
        return;
    }
    while (!weir_ctx_is_removed(ctx) && socks->step != OPEN && weir_buf_readable(buf) > 0 &&
           weir_channel_is_open(weir_ctx_channel(ctx))) {
        (void)weir_buf_read_u8(buf, &socks->answer[socks->length]);
        socks->length++;
        if (socks->length == needed(socks))
            on_answer(ctx, socks);
    }
    if (!weir_ctx_is_removed(ctx) && socks->step == OPEN)
        open_tunnel(ctx, buf);
    weir_msg_release(msg);
}

static const weir_handler handler = {
    .name = "socks5",
    .stays_on_loop = true,
    .state_size = sizeof(struct socks5),
    .init = init,
    .active = on_active,
    .read = on_read,
};

int weir__http_socks5_add(weir_pipeline *pipeline, const char *host, uint16_t port,
                          weir_span userinfo)
{
    return weir_pipeline_add_last(pipeline, &handler, &(const struct setup){host, port, userinfo});
}
