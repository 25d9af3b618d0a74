/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever a client sends as Forwarded and X-Forwarded-For: behind a proxy that forwards it, the
 * server finds the address of this client. Input: a Forwarded, a newline, an X-Forwarded-For.
 */
#include <stdlib.h>
#include <string.h>

#include <weir/embedded.h>

#include "protocol/http/client_address.h"
#include "protocol/http/forwarded.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool holds)
{
    if (!holds)
        abort();
}

static weir_channel *open_from(const char *remote, weir_embedded **ret_embedded)
{
    expect(weir_embedded_create(WEIR_EMBEDDED_OPTIONS(.remote = remote), ret_embedded) == 0);
    return weir_embedded_channel(*ret_embedded);
}

static weir_http_request *create_request(weir_span forwarded, weir_span x_forwarded_for)
{
    weir_http_request *request = NULL;

    expect(weir_http_request_create("GET", "/", &request) == 0);
    if (weir_http_headers_add(weir_http_request_headers(request), WEIR_HTTP_FORWARDED, forwarded) <
            0 ||
        weir_http_headers_add(weir_http_request_headers(request), WEIR_HTTP_X_FORWARDED_FOR,
                              x_forwarded_for) < 0) {
        weir_msg_release(weir_http_request_msg(request));
        return NULL; /* no field values */
    }
    return request;
}

/* As a server sees it that trusts the proxy. */
static void check_address(weir_channel *behind, const weir_http_request *request,
                          const char *expected)
{
    static const char *const proxies[] = {"10.0.0.0/8", NULL};
    char text[WEIR_ADDRESS_TEXT_SIZE];
    weir__http_trust *trust = NULL;
    weir_address address;

    expect(weir__http_trust_create(proxies, WEIR_HTTP_OTHER, &trust) == 0);
    expect(weir__http_trust_set(behind, trust) == 0);
    expect(weir__http_client_address(behind, request, &address) == 0);
    if (expected != NULL)
        expect(strcmp(weir_address_format(&address, text, sizeof(text)), expected) == 0);
    weir__http_trust_release(trust);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *newline = size > 0 ? memchr(data, '\n', size) : NULL;
    size_t length = newline != NULL ? (size_t)(newline - data) : size;
    weir_embedded *front = NULL, *back = NULL;
    weir_channel *proxy, *behind;
    weir_http_request *request;

    if (size > 4096)
        return 0;
    request =
        create_request(weir_span_of(data, length), weir_span_of(data + length + (newline != NULL),
                                                                size - length - (newline != NULL)));
    if (request == NULL)
        return 0;
    proxy = open_from("[2001:db8::1]:1000", &front);
    behind = open_from("10.0.0.1:1000", &back);
    check_address(behind, request, NULL); /* as if the client were a proxy */
    expect(weir__http_forwarded_add(weir_http_request_headers(request), request, proxy, "weir") ==
           0);
    check_address(behind, request, "[2001:db8::1]:0");
    weir_msg_release(weir_http_request_msg(request));
    weir_embedded_release(front);
    weir_embedded_release(back);
    return 0;
}
