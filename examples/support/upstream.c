/* SPDX-License-Identifier: Apache-2.0 */
#include "support/upstream.h"

bool upstreams_add(struct upstreams *upstreams, const char *address)
{
    struct upstream *upstream = &upstreams->list[upstreams->count];

    if (upstreams->count == UPSTREAMS_MAX)
        return false;
    upstream->address = address;
    atomic_store(&upstream->is_up, true);
    upstreams->count++;
    return true;
}

/* ---- choosing ---- */

static bool is_better(enum balance balance, const struct upstream *a, const struct upstream *b)
{
    bool is_up = atomic_load(&a->is_up);

    if (is_up != atomic_load(&b->is_up))
        return is_up;
    return balance == BALANCE_LEAST_CONNECTIONS &&
           atomic_load(&a->connections) < atomic_load(&b->connections);
}

struct upstream *upstreams_choose(struct upstreams *upstreams, uint64_t *tried)
{
    size_t first = atomic_fetch_add(&upstreams->turn, 1) % upstreams->count;
    struct upstream *best = NULL;

    for (size_t i = 0; i < upstreams->count; i++) {
        size_t index = (first + i) % upstreams->count;
        struct upstream *upstream = &upstreams->list[index];

        if ((*tried >> index & 1) != 0)
            continue;
        if (best == NULL || is_better(upstreams->balance, upstream, best))
            best = upstream;
    }
    if (best != NULL)
        *tried |= UINT64_C(1) << (best - upstreams->list);
    return best;
}

/* ---- up and down ---- */

/* Two threads may count at once: then one of them marks it. */
void upstream_note(struct upstream *upstream, int limit, const char *reason)
{
    bool answers = reason == NULL;

    if (answers == atomic_load(&upstream->is_up)) {
        if (atomic_load(&upstream->contrary) != 0)
            atomic_store(&upstream->contrary, 0);
        return;
    }
    if (atomic_fetch_add(&upstream->contrary, 1) + 1 < limit)
        return;
    atomic_store(&upstream->contrary, 0);
    if (atomic_exchange(&upstream->is_up, answers) == answers)
        return;
    if (answers)
        weir_log_write(WEIR_LOG_INFO, "upstream", upstream->address, "up");
    else
        weir_log_write(WEIR_LOG_WARN, "upstream", upstream->address, "down: %s", reason);
}

/* ---- counting ---- */

struct counted {
    struct upstream *upstream;
};

static int count_init(void *state, const void *options)
{
    struct counted *self = state;

    *self = *(const struct counted *)options;
    atomic_fetch_add(&self->upstream->connections, 1);
    return 0;
}

static void count_deinit(void *state)
{
    const struct counted *self = state;

    atomic_fetch_sub(&self->upstream->connections, 1);
}

static const weir_handler counted = {
    .name = "counted",
    .state_size = sizeof(struct counted),
    .init = count_init,
    .deinit = count_deinit,
};

int upstream_count(struct upstream *upstream, weir_pipeline *pipeline)
{
    return weir_pipeline_add_last(pipeline, &counted,
                                  &(const struct counted){.upstream = upstream});
}
