/* SPDX-License-Identifier: Apache-2.0 */
#include "top/source.h"

#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <weir/weir.h>

#include "support/tls.h"

#define TIMEOUT_S 5

bool source_open(struct source *source, const char *url, const char *token,
                 const struct settings *settings)
{
    *source = (struct source){.url = url, .arrived = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    if (token[0] != '\0')
        (void)snprintf(source->authorization, sizeof(source->authorization), "Bearer %s", token);
    if (source->arrived < 0 || tls_make_client(settings, &source->tls) < 0 ||
        weir_group_create(WEIR_GROUP_OPTIONS(.name = "top", .threads = 1), &source->group) < 0 ||
        weir_http_client_create(
            WEIR_HTTP_CLIENT_OPTIONS(.group = source->group, .tls = source->tls,
                                     .add_tls = source->tls != NULL ? tls_add_client : NULL,
                                     .timeout_ns = weir_seconds(TIMEOUT_S)),
            &source->client) < 0) {
        fprintf(stderr, "top: cannot create a client%s\n",
                settings->ca != NULL ? ": invalid --ca" : "");
        source_close(source);
        return false;
    }
    return true;
}

static void on_arrived(weir_promise *fetching, void *arrived)
{
    (void)fetching;
    (void)eventfd_write(*(const int *)arrived, 1);
}

void source_request(struct source *source)
{
    const char *fields[] = {"Accept", "application/json", "Authorization", source->authorization,
                            NULL};
    int err;

    if (source->fetching != NULL)
        return;
    if (source->authorization[0] == '\0')
        fields[2] = NULL;
    err =
        weir_http_client_fetch(source->client,
                               WEIR_HTTP_FETCH_OPTIONS(.url = source->url, .fields = fields,
                                                       .executor = weir_group_at(source->group, 0)),
                               &source->fetching);
    if (!err)
        err = weir_promise_add_listener(source->fetching, on_arrived, &source->arrived);
    if (err) {
        weir_promise_release(source->fetching);
        source->fetching = NULL;
        (void)snprintf(source->error, sizeof(source->error), "%s: %s", source->url,
                       weir_error_text(err));
        (void)eventfd_write(source->arrived, 1);
    }
}

/* NULL if it has no metrics, with `error`. */
static struct snapshot *read_response(struct source *source, const weir_http_full *full)
{
    int status = weir_http_response_status(weir_http_full_response(full));
    weir_span content = weir_buf_span(weir_http_full_content(full));
    struct snapshot *snapshot = status == 200 ? snapshot_parse(content.data, content.length) : NULL;

    if (status != 200)
        (void)snprintf(source->error, sizeof(source->error), "%s: status %d, expected 200",
                       source->url, status);
    else if (snapshot == NULL)
        (void)snprintf(source->error, sizeof(source->error),
                       "%s: not the JSON of weir_metrics_route", source->url);
    return snapshot;
}

struct snapshot *source_take(struct source *source)
{
    struct snapshot *snapshot = NULL;
    eventfd_t ignored;

    (void)eventfd_read(source->arrived, &ignored);
    if (source->fetching == NULL)
        return NULL; /* `error` says why */
    source->error[0] = '\0';
    if (weir_promise_sync(source->fetching, WEIR_NEVER) < 0) /* it is complete */
        (void)snprintf(source->error, sizeof(source->error), "%s",
                       weir_promise_detail(source->fetching));
    else
        snapshot = read_response(source, weir_promise_value(source->fetching));
    weir_promise_release(source->fetching);
    source->fetching = NULL;
    return snapshot;
}

void source_close(struct source *source)
{
    if (source->client != NULL) {
        weir_http_client_close(source->client);
        (void)weir_promise_sync(weir_http_client_closed(source->client), weir_seconds(5));
    }
    weir_http_client_release(source->client); /* NULL is ignored, here and below */
    if (source->group != NULL) {
        (void)weir_group_shutdown(source->group, 0, weir_seconds(5));
        (void)weir_group_await_termination(source->group, weir_seconds(5));
    }
    weir_promise_release(source->fetching);
    weir_group_release(source->group);
    tls_release(source->tls);
    if (source->arrived >= 0)
        (void)close(source->arrived);
    *source = (struct source){.arrived = -1};
}
