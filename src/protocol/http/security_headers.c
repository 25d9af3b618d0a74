/* SPDX-License-Identifier: Apache-2.0 */
#include <weir/http_filters.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/memory.h>

#include "base/options.h"
#include "base/refcount.h"
#include "protocol/http/filters.h"

#define FIELDS_MAX 5
#define HSTS_MAX_AGE_DEFAULT (INT64_C(365) * 24 * 3600)

struct field {
    enum weir_http_name name;
    weir_span value; /* in `text` */
};

struct weir__http_security {
    weir__refs refs;
    size_t count;
    struct field fields[FIELDS_MAX];
    uint8_t text[];
};

struct draft {
    size_t count;
    struct field fields[FIELDS_MAX];
    char hsts[64];
};

static void add_field(struct draft *draft, enum weir_http_name name, const char *value)
{
    if (value[0] != '\0')
        draft->fields[draft->count++] = (struct field){name, weir_span_of_text(value)};
}

static const char *or_default(const char *value, const char *by_default)
{
    return value != NULL ? value : by_default;
}

static void make_draft(const weir_http_security_options *options, struct draft *draft)
{
    int64_t max_age = options->hsts_max_age != 0 ? options->hsts_max_age : HSTS_MAX_AGE_DEFAULT;

    add_field(draft, WEIR_HTTP_X_CONTENT_TYPE_OPTIONS, "nosniff");
    add_field(draft, WEIR_HTTP_X_FRAME_OPTIONS, or_default(options->frame_options, "DENY"));
    add_field(draft, WEIR_HTTP_REFERRER_POLICY,
              or_default(options->referrer_policy, "strict-origin-when-cross-origin"));
    add_field(draft, WEIR_HTTP_CONTENT_SECURITY_POLICY, or_default(options->content_security, ""));
    if (!options->is_tls || max_age < 0)
        return;
    (void)snprintf(draft->hsts, sizeof(draft->hsts), "max-age=%lld%s", (long long)max_age,
                   options->hsts_subdomains ? "; includeSubDomains" : "");
    add_field(draft, WEIR_HTTP_STRICT_TRANSPORT_SECURITY, draft->hsts);
}

/* Values that the headers would reject when a response is written. */
static int check_fields(const struct draft *draft)
{
    for (size_t i = 0; i < draft->count; i++)
        for (size_t at = 0; at < draft->fields[i].value.length; at++)
            if (draft->fields[i].value.data[at] < ' ' || draft->fields[i].value.data[at] == 0x7f)
                return weir__options_reject("http", weir_http_name_text(draft->fields[i].name),
                                            "control character in a value");
    return 0;
}

static weir__http_security *copy_draft(const struct draft *draft)
{
    weir__http_security *security;
    size_t length = 0;
    uint8_t *to;

    for (size_t i = 0; i < draft->count; i++)
        length += draft->fields[i].value.length;
    security = weir_memory_alloc(sizeof(*security) + length);
    if (security == NULL)
        return NULL;
    weir__refs_init(&security->refs);
    security->count = draft->count;
    to = security->text;
    for (size_t i = 0; i < draft->count; i++) {
        struct field field = draft->fields[i];

        memcpy(to, field.value.data, field.value.length);
        field.value.data = to;
        security->fields[i] = field;
        to += field.value.length;
    }
    return security;
}

int weir__http_security_create(const weir_http_security_options *options,
                               weir__http_security **ret_security)
{
    weir_http_security_options own;
    struct draft draft = {0};
    int err = weir__options_read(&own, sizeof(own), options);

    if (err == 0 && own.hsts_max_age < WEIR_OFF)
        err = weir__options_reject("http", "security", ".hsts_max_age is negative");
    if (err == 0) {
        make_draft(&own, &draft);
        err = check_fields(&draft);
    }
    if (err < 0)
        return err;
    *ret_security = copy_draft(&draft);
    return *ret_security != NULL ? 0 : -ENOMEM;
}

void weir__http_security_release(weir__http_security *security)
{
    if (security != NULL && weir__refs_release(&security->refs))
        weir_memory_free(security);
}

/* ---- the handler ---- */

struct state {
    weir__http_security *security;
};

static int init(void *state, const void *options)
{
    weir__http_security *security = *(weir__http_security *const *)options;

    weir__refs_retain(&security->refs);
    ((struct state *)state)->security = security;
    return 0;
}

static void deinit(void *state)
{
    weir__http_security_release(((struct state *)state)->security);
}

static int add_fields(const weir__http_security *security, weir_http_headers *headers)
{
    int err = 0;

    for (size_t i = 0; err == 0 && i < security->count; i++)
        if (weir_http_headers_get(headers, security->fields[i].name).data == NULL)
            err =
                weir_http_headers_add(headers, security->fields[i].name, security->fields[i].value);
    return err;
}

static void on_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    struct state *state = weir_ctx_state(ctx);
    weir_http_response *response = weir_http_response_of(msg);

    if (response != NULL && !weir__http_is_interim(response)) {
        int err = add_fields(state->security, weir_http_response_headers(response));

        if (err < 0) {
            weir__http_fail_write(ctx, msg, done, err);
            return;
        }
    }
    weir_write(ctx, msg, done);
}

const weir_handler weir__http_security_handler = {
    .name = "http-security",
    .state_size = sizeof(struct state),
    .init = init,
    .deinit = deinit,
    .write = on_write,
};

int weir__http_security_add(weir_pipeline *pipeline, weir__http_security *security)
{
    return weir_pipeline_add_last(pipeline, &weir__http_security_handler, &security);
}

int weir_http_security_add(weir_pipeline *pipeline, const weir_http_security_options *options)
{
    weir__http_security *security = NULL;
    int err = weir__http_security_create(options, &security);

    if (err == 0)
        err = weir__http_security_add(pipeline, security);
    weir__http_security_release(security);
    return err;
}
