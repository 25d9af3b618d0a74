/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stack of free nodes per thread, POOL_MAX at most. Nodes that are allocated on one thread and
 * freed on another collect there until the stack is full, and are then freed.
 */
#include "channel/node_pool.h"

#include <weir/thread.h>

#include "base/memory.h"

#define POOL_MAX 256

struct spare {
    struct spare *next;
};

static _Thread_local struct {
    struct spare *first;
    unsigned count;
    bool ends_with_thread; /* on_thread_end will be called */
} spares __attribute__((tls_model("initial-exec")));

void *weir__node_alloc(void)
{
    struct spare *node = spares.first;

    if (node == NULL)
        return weir__alloc(WEIR__NODE_SIZE);
    spares.first = node->next;
    spares.count--;
    return node;
}

static void on_thread_end(void *arg)
{
    struct spare *node = spares.first, *next;

    (void)arg;
    spares.first = NULL;
    spares.count = 0;
    spares.ends_with_thread = false;
    for (; node != NULL; node = next) {
        next = node->next;
        weir__free(node);
    }
}

static bool may_pool(void)
{
    if (spares.count >= POOL_MAX)
        return false;
    if (!spares.ends_with_thread)
        spares.ends_with_thread = weir_thread_on_exit(on_thread_end, NULL) == 0;
    return spares.ends_with_thread;
}

void weir__node_free(void *node)
{
    struct spare *spare = node;

    if (!may_pool()) {
        weir__free(node);
        return;
    }
    spare->next = spares.first;
    spares.first = spare;
    spares.count++;
}
