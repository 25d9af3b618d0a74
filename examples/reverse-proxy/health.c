/* SPDX-License-Identifier: Apache-2.0 */
#include "health.h"

#include <stdio.h>

#include <weir/error.h>

static void note(struct check *check, const char *reason)
{
    const struct health *health = check->health;

    upstream_note(check->upstream, reason == NULL ? health->rise : health->fall, reason);
}

static void note_status(struct check *check, int status)
{
    char reason[64];

    (void)snprintf(reason, sizeof(reason), "the check was answered with %d", status);
    note(check, status < 500 ? NULL : reason);
}

/* The loop or the client ends: not a failure of the upstream. */
static bool is_our_end(int err)
{
    return err == WEIR_ECANCELED || err == WEIR_ECLOSED || err == WEIR_EREJECTED;
}

static void on_checked(weir_promise *fetching, void *user_data)
{
    struct check *check = user_data;
    const weir_http_full *full = weir_promise_value(fetching);

    check->is_under_way = false;
    if (full != NULL)
        note_status(check, weir_http_response_status(weir_http_full_response(full)));
    else if (!is_our_end(weir_promise_result(fetching)))
        note(check, weir_promise_detail(fetching));
    weir_promise_release(fetching);
}

static void check_one(struct check *check)
{
    const struct health *health = check->health;
    weir_promise *fetching;
    char url[512];
    int err;

    (void)snprintf(url, sizeof(url), "%s%s", check->upstream->address, health->path);
    err = weir_http_client_fetch(
        health->client,
        WEIR_HTTP_FETCH_OPTIONS(.url = url, .max_redirects = WEIR_OFF, .executor = health->loop),
        &fetching);
    if (err) {
        note(check, weir_error_text(err));
        return;
    }
    check->is_under_way = true;
    check->listener = (weir_listener){.fn = on_checked, .user_data = check};
    weir_promise_listen(fetching, &check->listener);
}

static void check_all(void *arg, int status)
{
    struct health *health = arg;

    if (status < 0)
        return; /* the last check */
    for (size_t i = 0; i < health->upstreams->count; i++)
        if (!health->checks[i].is_under_way)
            check_one(&health->checks[i]);
}

int health_start(struct health *health)
{
    for (size_t i = 0; i < health->upstreams->count; i++)
        health->checks[i] =
            (struct check){.health = health, .upstream = &health->upstreams->list[i]};
    return weir_schedule_with_fixed_delay(health->loop, 0, health->interval_ns, check_all, health,
                                          NULL);
}
