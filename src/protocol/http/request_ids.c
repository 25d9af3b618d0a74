/* SPDX-License-Identifier: Apache-2.0 */
#include <weir/http_filters.h>

#include <stdint.h>
#include <string.h>

#include <weir/random.h>

#include "protocol/http/chars.h"
#include "protocol/http/filters.h"

#define ID_MAX 128
#define RANDOM_BYTES 16

struct request_ids {
    uint8_t length; /* 0 = no request yet */
    char id[ID_MAX];
};

/* A-Z a-z 0-9 - _ . */
static bool is_valid(weir_span id)
{
    if (id.length == 0 || id.length > ID_MAX)
        return false;
    for (size_t i = 0; i < id.length; i++)
        if (id.data[i] == '~' || !weir__http_char_is(id.data[i], WEIR__HTTP_UNRESERVED))
            return false;
    return true;
}

static void make_id(struct request_ids *ids)
{
    static const char digits[] = "0123456789abcdef";
    uint8_t bytes[RANDOM_BYTES];

    weir_random_bytes(bytes, sizeof(bytes));
    for (size_t i = 0; i < sizeof(bytes); i++) {
        ids->id[2 * i] = digits[bytes[i] >> 4];
        ids->id[2 * i + 1] = digits[bytes[i] & 15];
    }
    ids->length = 2 * RANDOM_BYTES;
}

static int set_id(const struct request_ids *ids, weir_http_headers *headers)
{
    return weir_http_headers_set(headers, WEIR_HTTP_X_REQUEST_ID,
                                 weir_span_of(ids->id, ids->length));
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    struct request_ids *ids = weir_ctx_state(ctx);
    weir_http_request *request = weir_http_request_of(msg);
    weir_http_headers *headers;
    weir_span id;

    if (request != NULL) {
        headers = weir_http_request_headers(request);
        id = weir_http_headers_get(headers, WEIR_HTTP_X_REQUEST_ID);
        if (is_valid(id)) {
            memcpy(ids->id, id.data, id.length);
            ids->length = (uint8_t)id.length;
        } else {
            make_id(ids);
        }
        /* Also removes further lines. Without memory the request goes on without an id. */
        (void)set_id(ids, headers);
    }
    weir_fire_read(ctx, msg);
}

static void on_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    struct request_ids *ids = weir_ctx_state(ctx);
    weir_http_response *response = weir_http_response_of(msg);

    if (response != NULL && ids->length > 0 && !weir__http_is_interim(response)) {
        int err = set_id(ids, weir_http_response_headers(response));

        if (err < 0) {
            weir__http_fail_write(ctx, msg, done, err);
            return;
        }
    }
    weir_write(ctx, msg, done);
}

const weir_handler weir__http_request_ids_handler = {
    .name = "http-request-ids",
    .state_size = sizeof(struct request_ids),
    .read = on_read,
    .write = on_write,
};

int weir_http_request_ids_add(weir_pipeline *pipeline)
{
    return weir_pipeline_add_last(pipeline, &weir__http_request_ids_handler, NULL);
}
