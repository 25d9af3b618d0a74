/* SPDX-License-Identifier: Apache-2.0 */
#include "health.h"

#include "announce.h"

/* `reason` is NULL if the upstream has answered. */
static void note(struct check *check, const char *reason)
{
    upstream_note(check->upstream, reason == NULL ? check->health->rise : check->health->fall,
                  reason);
}

/* The loop ends and cancels the attempt: not a failure of the upstream. */
static bool is_our_end(int err)
{
    return err == WEIR_ECANCELED || err == WEIR_ECLOSED || err == WEIR_EREJECTED;
}

/* doc:begin check */
static void on_checked(weir_promise *connecting, void *user_data)
{
    struct check *check = user_data;
    weir_channel *channel = weir_promise_value(connecting);

    check->is_under_way = false;
    if (channel != NULL) {
        note(check, NULL);
        weir_channel_close(channel, NULL);
    } else if (!is_our_end(weir_promise_result(connecting))) {
        note(check, weir_promise_detail(connecting));
    }
    weir_promise_release(connecting);
}

static int init_check(weir_channel *channel, void *user_data)
{
    const struct health *health = user_data;

    return announce(weir_channel_pipeline(channel), health->proxy_version, NULL);
}

static void check_one(struct check *check)
{
    struct health *health = check->health;
    weir_promise *connecting;
    int err = weir_client_connect(
        WEIR_CLIENT_OPTIONS(.loop = health->loop, .address = check->upstream->address,
                            .init = init_check, .user_data = health,
                            .options =
                                WEIR_CHANNEL_OPTIONS(.connect_timeout_ns = health->timeout_ns)),
        &connecting);

    if (err) {
        note(check, weir_error_text(err));
        return;
    }
    check->is_under_way = true;
    check->listener = (weir_listener){.fn = on_checked, .user_data = check};
    weir_promise_listen(connecting, &check->listener);
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
/* doc:end */

int health_start(struct health *health)
{
    for (size_t i = 0; i < health->upstreams->count; i++)
        health->checks[i] =
            (struct check){.health = health, .upstream = &health->upstreams->list[i]};
    return weir_schedule_with_fixed_delay(health->loop, 0, health->interval_ns, check_all, health,
                                          NULL);
}
