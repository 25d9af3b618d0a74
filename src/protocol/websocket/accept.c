/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir_ws_accept: the opening handshake of a server, by the upgrade of an exchange.
 */
#include <errno.h>
#include <string.h>

#include <weir/error.h>
#include <weir/memory.h>

#include "protocol/http/exchange.h"
#include "protocol/websocket/websocket.h"

/* From the 101 until the handler is added. */
struct acceptance {
    weir_ws_options options;
    weir__ws_agreed agreed;
    weir_http_request *request; /* retained */
    char protocol[];            /* that agreed.protocol points to */
};

static int create_acceptance(weir_http_exchange *exchange, const weir_ws_options *options,
                             struct acceptance **ret_acceptance)
{
    struct acceptance *acceptance;
    weir__ws_agreed agreed;
    size_t size;

    weir__ws_agree(exchange->request, options, &agreed);
    size = agreed.protocol != NULL ? strlen(agreed.protocol) + 1 : 0;
    acceptance = weir_memory_alloc(sizeof(*acceptance) + size);
    if (acceptance == NULL)
        return -ENOMEM;
    acceptance->options = *options;
    acceptance->options.protocols = NULL; /* the caller's */
    acceptance->options.origins = NULL;
    acceptance->agreed = agreed;
    acceptance->request = exchange->request;
    (void)weir_msg_retain(weir_http_request_msg(exchange->request));
    if (size > 0) {
        memcpy(acceptance->protocol, agreed.protocol, size);
        acceptance->agreed.protocol = acceptance->protocol;
    }
    *ret_acceptance = acceptance;
    return 0;
}

static void free_acceptance(struct acceptance *acceptance)
{
    weir_msg_release(weir_http_request_msg(acceptance->request));
    weir_memory_free(acceptance);
}

/* On the loop, after the 101. */
static int open_websocket(weir_channel *channel, void *user_data)
{
    struct acceptance *acceptance = user_data;
    int err = WEIR_ECLOSED;

    if (weir_channel_is_active(channel))
        err = weir__ws_open(channel, &(weir__ws_setup){.options = &acceptance->options,
                                                       .agreed = &acceptance->agreed,
                                                       .request = acceptance->request});
    free_acceptance(acceptance);
    return err;
}

static int refuse(weir_http_exchange *exchange, int status, const char *detail)
{
    int err = 0;

    if (status == 426 && weir_http_exchange_headers(exchange) != NULL)
        err = weir__ws_add_version(weir_http_exchange_headers(exchange));
    if (err == 0)
        err = weir_http_respond_error(exchange, status, detail);
    return err < 0 ? err : WEIR_EMALFORMED;
}

int weir_ws_accept(weir_http_exchange *exchange, const weir_ws_options *options)
{
    const weir_http_request *request = exchange->request;
    weir_http_headers *headers;
    struct acceptance *acceptance;
    const char *detail;
    weir_ws_options own;
    int err = weir__ws_read_options(options, &own);
    int status;

    if (err < 0)
        return err;
    status = weir__ws_check_request(request, own.origins, &detail);
    if (status != 0)
        return refuse(exchange, status, detail);
    headers = weir_http_exchange_headers(exchange);
    if (headers == NULL)
        return -EALREADY;
    err = create_acceptance(exchange, &own, &acceptance);
    if (err < 0)
        return err;
    err = weir__ws_add_response_fields(headers, request, &acceptance->agreed);
    if (err == 0)
        err = weir_http_exchange_upgrade(exchange, open_websocket, acceptance);
    if (err < 0)
        free_acceptance(acceptance);
    return err;
}
