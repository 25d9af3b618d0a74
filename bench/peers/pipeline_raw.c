/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The least that a chain of handlers can be: contexts in a list, and a function pointer called for
 * the next one. Nobody is skipped, and nothing is asked.
 */
#include <stdlib.h>

#include "pipeline/cases.h"

struct context {
    struct context *prev;
    struct context *next;
    void (*read)(struct context *context, void *message);
    void (*write)(struct context *context, void *message, void *done);
};

static struct context *contexts;
static int64_t context_count;
static void *volatile kept;

static void pass_read(struct context *context, void *message)
{
    context->next->read(context->next, message);
}

static void pass_write(struct context *context, void *message, void *done)
{
    context->prev->write(context->prev, message, done);
}

static void keep_read(struct context *context, void *message)
{
    (void)context;
    kept = message;
}

static void keep_written(struct context *context, void *message, void *done)
{
    (void)context;
    (void)done;
    kept = message;
}

/* As many that pass, between two that keep. */
static void chain_open(int64_t handlers)
{
    context_count = handlers + 2;
    contexts = bench_alloc((size_t)context_count, sizeof(*contexts));
    for (int64_t i = 0; i < context_count; i++) {
        contexts[i] = (struct context){.read = pass_read, .write = pass_write};
        contexts[i].prev = &contexts[i > 0 ? i - 1 : i];
        contexts[i].next = &contexts[i + 1 < context_count ? i + 1 : i];
    }
    contexts[0].write = keep_written;
    contexts[context_count - 1].read = keep_read;
}

static void chain_close(void)
{
    bench_free(contexts);
}

static void chain_read(int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        pass_read(&contexts[0], kept);
}

static void chain_write(int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        pass_write(&contexts[context_count - 1], kept, NULL);
}
