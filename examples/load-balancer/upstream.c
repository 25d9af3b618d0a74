/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream.h"

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
