/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CORS as the Fetch standard defines it. The handler compares origins byte by byte, methods with
 * their case, names of header fields without. A response whose fields depend on the origin says so
 * by "Vary: Origin", also if the request had none: a cache must not give it to another origin.
 */
#include <weir/http_filters.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/memory.h>

#include "base/options.h"
#include "base/refcount.h"
#include "protocol/http/chars.h"
#include "protocol/http/filters.h"
#include "protocol/http/parameters.h"

#define MAX_AGE_DEFAULT 600

static const char *const default_methods[] = {"GET", "HEAD", "POST", NULL};

/* A list as options have it, joined by ", "; data is NULL if there is none. "*" stands alone. */
struct list {
    weir_span text;
    bool is_any;
};

struct weir__http_cors {
    weir__refs refs;
    struct list origins;
    struct list methods;
    struct list headers;
    struct list exposed;
    bool credentials;
    char max_age[16]; /* "" = not sent */
    uint8_t text[];
};

/* ---- settings ---- */

static size_t joined_length(const char *const *list)
{
    size_t length = 0;

    for (; list != NULL && *list != NULL; list++)
        length += strlen(*list) + 2;
    return length;
}

static struct list join(const char *const *list, uint8_t **to)
{
    struct list joined = {.text = {list != NULL ? *to : NULL, 0}};

    for (; list != NULL && *list != NULL; list++) {
        size_t length = strlen(*list);

        joined.is_any = joined.is_any || strcmp(*list, "*") == 0;
        if (*to != joined.text.data) {
            memcpy(*to, ", ", 2);
            *to += 2;
        }
        memcpy(*to, *list, length);
        *to += length;
    }
    if (joined.text.data != NULL)
        joined.text.length = (size_t)(*to - joined.text.data);
    return joined;
}

/* "https://example.org:8443" or "null": no path, no list, nothing that is not visible. */
static bool is_origin(const char *text)
{
    const char *host = strstr(text, "://");

    if (strcmp(text, "*") == 0 || strcmp(text, "null") == 0)
        return true;
    if (host == NULL || host == text || host[3] == '\0')
        return false;
    for (const char *at = text; *at != '\0'; at++)
        if (*at <= ' ' || *at > '~' || *at == ',' || (*at == '/' && at > host + 2))
            return false;
    return true;
}

static int check_tokens(const char *what, const char *const *list)
{
    for (; list != NULL && *list != NULL; list++)
        if (!weir__http_is_token(weir_span_of_text(*list)))
            return weir__options_reject("http", "cors", ".%s: \"%s\" is not a token", what, *list);
    return 0;
}

static int check_options(const weir_http_cors_options *options)
{
    const char *const *origin = options->origins;
    int err = check_tokens("methods", options->methods);

    for (; origin != NULL && *origin != NULL; origin++) {
        if (!is_origin(*origin))
            return weir__options_reject("http", "cors",
                                        "\"%s\" is not an origin: expected \"https://example.org\"",
                                        *origin);
        if (strcmp(*origin, "*") == 0 && options->credentials)
            return weir__options_reject("http", "cors",
                                        ".credentials and origin \"*\" are mutually exclusive");
    }
    if (options->max_age_seconds < WEIR_OFF)
        return weir__options_reject("http", "cors", ".max_age_seconds is negative");
    if (err == 0)
        err = check_tokens("headers", options->headers);
    return err == 0 ? check_tokens("exposed_headers", options->exposed_headers) : err;
}

int weir__http_cors_create(const weir_http_cors_options *options, weir__http_cors **ret_cors)
{
    weir_http_cors_options own;
    weir__http_cors *cors;
    uint8_t *to;
    int err = weir__options_read(&own, sizeof(own), options);

    if (err == 0)
        err = check_options(&own);
    if (err < 0)
        return err;
    if (own.methods == NULL)
        own.methods = default_methods;
    if (own.max_age_seconds == 0)
        own.max_age_seconds = MAX_AGE_DEFAULT;
    cors =
        weir_memory_alloc(sizeof(*cors) + joined_length(own.origins) + joined_length(own.methods) +
                          joined_length(own.headers) + joined_length(own.exposed_headers));
    if (cors == NULL)
        return -ENOMEM;
    *cors = (weir__http_cors){.credentials = own.credentials};
    weir__refs_init(&cors->refs);
    to = cors->text;
    cors->origins = join(own.origins, &to);
    cors->methods = join(own.methods, &to);
    cors->headers = join(own.headers, &to);
    cors->exposed = join(own.exposed_headers, &to);
    if (own.max_age_seconds > 0)
        (void)snprintf(cors->max_age, sizeof(cors->max_age), "%d", own.max_age_seconds);
    *ret_cors = cors;
    return 0;
}

void weir__http_cors_release(weir__http_cors *cors)
{
    if (cors != NULL && weir__refs_release(&cors->refs))
        weir_memory_free(cors);
}

/* ---- decisions ---- */

static bool has(const struct list *list, weir_span wanted, bool ignores_case)
{
    weir_span rest = list->text, element;

    if (list->is_any)
        return true;
    while (rest.data != NULL && weir__http_list_next(&rest, &element))
        if (ignores_case ? weir__http_same_text(element, wanted) : weir_span_equal(element, wanted))
            return true;
    return false;
}

static bool allows_headers(const weir__http_cors *cors, const weir_http_headers *headers)
{
    weir_span rest, name;
    size_t index = 0;

    while (weir_http_headers_next(headers, WEIR_HTTP_ACCESS_CONTROL_REQUEST_HEADERS, &index, &rest))
        while (weir__http_list_next(&rest, &name))
            if (!weir__http_is_token(name) ||
                (cors->headers.text.data != NULL && !has(&cors->headers, name, true)))
                return false;
    return true;
}

static bool is_preflight(const weir_http_request *request)
{
    const weir_http_headers *headers = weir_http_request_headers(request);

    return weir_http_request_method(request) == WEIR_HTTP_METHOD_OPTIONS &&
           weir_http_headers_get(headers, WEIR_HTTP_ORIGIN).data != NULL &&
           weir_http_headers_get(headers, WEIR_HTTP_ACCESS_CONTROL_REQUEST_METHOD).data != NULL;
}

/* ---- the handler ---- */

struct state {
    weir__http_cors *cors;
    weir_http_request *request; /* retained for its Origin; NULL = none, or not allowed */
    weir__http_local_reply reply;
};

static int init(void *state, const void *options)
{
    weir__http_cors *cors = *(weir__http_cors *const *)options;

    weir__refs_retain(&cors->refs);
    ((struct state *)state)->cors = cors;
    return 0;
}

static void forget_request(struct state *state)
{
    if (state->request != NULL)
        weir_msg_release(weir_http_request_msg(state->request));
    state->request = NULL;
}

static void deinit(void *memory)
{
    struct state *state = memory;

    forget_request(state);
    weir__http_cors_release(state->cors);
}

/* The fields that preflights and other responses have in common. */
static int allow_origin(const weir__http_cors *cors, const weir_http_request *request,
                        weir_http_headers *headers)
{
    weir_span origin =
        cors->origins.is_any
            ? weir_span_of_text("*")
            : weir_http_headers_get(weir_http_request_headers(request), WEIR_HTTP_ORIGIN);
    int err = weir_http_headers_set(headers, WEIR_HTTP_ACCESS_CONTROL_ALLOW_ORIGIN, origin);

    if (err == 0 && cors->credentials)
        err =
            weir_http_headers_set_text(headers, WEIR_HTTP_ACCESS_CONTROL_ALLOW_CREDENTIALS, "true");
    return err;
}

/* Without a list, or with "*", those that were asked for: "*" has no effect with credentials. */
static int allow_headers(const weir__http_cors *cors, const weir_http_headers *asked,
                         weir_http_headers *headers)
{
    weir_span names;
    size_t index = 0;
    int err = 0;

    if (cors->headers.text.length > 0 && !cors->headers.is_any)
        return weir_http_headers_add(headers, WEIR_HTTP_ACCESS_CONTROL_ALLOW_HEADERS,
                                     cors->headers.text);
    while (err == 0 &&
           weir_http_headers_next(asked, WEIR_HTTP_ACCESS_CONTROL_REQUEST_HEADERS, &index, &names))
        if (names.length > 0)
            err = weir_http_headers_add(headers, WEIR_HTTP_ACCESS_CONTROL_ALLOW_HEADERS, names);
    return err;
}

static int allow_method(const weir__http_cors *cors, const weir_http_headers *asked,
                        weir_http_headers *headers)
{
    weir_span method = cors->methods.text;

    if (cors->methods.is_any)
        method = weir_http_headers_get(asked, WEIR_HTTP_ACCESS_CONTROL_REQUEST_METHOD);
    return weir_http_headers_add(headers, WEIR_HTTP_ACCESS_CONTROL_ALLOW_METHODS, method);
}

static int fill_preflight(const weir__http_cors *cors, const weir_http_request *request,
                          weir_http_response *response)
{
    const weir_http_headers *asked = weir_http_request_headers(request);
    weir_http_headers *headers = weir_http_response_headers(response);
    int err = weir_http_headers_add_text(headers, WEIR_HTTP_VARY,
                                         "Origin, Access-Control-Request-Method, "
                                         "Access-Control-Request-Headers");

    if (err < 0 || weir_http_response_status(response) != 204)
        return err;
    err = allow_origin(cors, request, headers);
    if (err == 0)
        err = allow_method(cors, asked, headers);
    if (err == 0)
        err = allow_headers(cors, asked, headers);
    if (err == 0 && cors->max_age[0] != '\0')
        err = weir_http_headers_add_text(headers, WEIR_HTTP_ACCESS_CONTROL_MAX_AGE, cors->max_age);
    return err;
}

static void answer_preflight(weir_ctx *ctx, struct state *state, weir_http_request *request,
                             bool is_allowed)
{
    const weir_http_headers *asked = weir_http_request_headers(request);
    weir_http_response *response = NULL;
    int err;

    is_allowed = is_allowed && allows_headers(state->cors, asked) &&
                 has(&state->cors->methods,
                     weir_http_headers_get(asked, WEIR_HTTP_ACCESS_CONTROL_REQUEST_METHOD), false);
    err = weir__http_local_reply_create(request, is_allowed ? 204 : 403, &response);
    if (err == 0)
        err = fill_preflight(state->cors, request, response);
    if (err < 0 && response != NULL) {
        weir_msg_release(weir_http_response_msg(response));
        response = NULL;
    }
    weir__http_local_reply_send(ctx, &state->reply, response, request);
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    struct state *state = weir_ctx_state(ctx);
    weir_http_request *request = weir_http_request_of(msg);
    weir_span origin;
    bool is_allowed;

    if (weir__http_local_reply_discards(&state->reply, msg))
        return;
    if (request == NULL) {
        weir_fire_read(ctx, msg);
        return;
    }
    forget_request(state);
    origin = weir_http_headers_get(weir_http_request_headers(request), WEIR_HTTP_ORIGIN);
    is_allowed = origin.data != NULL && has(&state->cors->origins, origin, false);
    if (is_preflight(request)) {
        answer_preflight(ctx, state, request, is_allowed);
        return;
    }
    if (is_allowed) {
        (void)weir_msg_retain(msg);
        state->request = request;
    }
    weir_fire_read(ctx, msg);
}

static void on_read_complete(weir_ctx *ctx)
{
    weir__http_local_reply_read_complete(ctx, &((struct state *)weir_ctx_state(ctx))->reply);
}

static int change_response(const struct state *state, weir_http_headers *headers)
{
    const weir__http_cors *cors = state->cors;
    int err = 0;

    if (weir_http_headers_get(headers, WEIR_HTTP_ACCESS_CONTROL_ALLOW_ORIGIN).data != NULL)
        return 0; /* the application's own */
    if (!cors->origins.is_any)
        err = weir__http_vary_add(headers, "Origin");
    if (err == 0 && state->request != NULL)
        err = allow_origin(cors, state->request, headers);
    if (err == 0 && state->request != NULL && cors->exposed.text.length > 0)
        err = weir_http_headers_add(headers, WEIR_HTTP_ACCESS_CONTROL_EXPOSE_HEADERS,
                                    cors->exposed.text);
    return err;
}

static void on_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    struct state *state = weir_ctx_state(ctx);
    weir_http_response *response = weir_http_response_of(msg);

    if (response != NULL && !weir__http_is_interim(response)) {
        int err = change_response(state, weir_http_response_headers(response));

        forget_request(state);
        if (err < 0) {
            weir__http_fail_write(ctx, msg, done, err);
            return;
        }
    }
    weir_write(ctx, msg, done);
}

const weir_handler weir__http_cors_handler = {
    .name = "http-cors",
    .state_size = sizeof(struct state),
    .init = init,
    .deinit = deinit,
    .read = on_read,
    .read_complete = on_read_complete,
    .write = on_write,
};

int weir__http_cors_add(weir_pipeline *pipeline, weir__http_cors *cors)
{
    return weir_pipeline_add_last(pipeline, &weir__http_cors_handler, &cors);
}

int weir_http_cors_add(weir_pipeline *pipeline, const weir_http_cors_options *options)
{
    weir__http_cors *cors = NULL;
    int err = weir__http_cors_create(options, &cors);

    if (err == 0)
        err = weir__http_cors_add(pipeline, cors);
    weir__http_cors_release(cors);
    return err;
}
