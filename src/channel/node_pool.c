/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stack of free nodes per thread, POOL_MAX at most. Nodes that are allocated on one thread and
 * freed on another collect there until the stack is full, and are then freed.
 */
#include "channel/node_pool.h"

#include <weir/thread.h>

#include "base/memory.h"

#define POOL_MAX 256

_Thread_local weir__node_pool weir__nodes __attribute__((tls_model("initial-exec")));

/* on_thread_end will be called. */
static _Thread_local bool ends_with_thread __attribute__((tls_model("initial-exec")));

void *weir__node_alloc_new(void)
{
    return weir__alloc(WEIR__NODE_SIZE);
}

static void on_thread_end(void *arg)
{
    weir__free_node *node = weir__nodes.first, *next;

    (void)arg;
    weir__nodes = (weir__node_pool){0};
    ends_with_thread = false;
    for (; node != NULL; node = next) {
        next = node->next;
        weir__free(node);
    }
}

/* The pool is full, or empty and without room because this is the first node that is freed. */
void weir__node_free_slowly(void *node)
{
    if (ends_with_thread || weir_thread_on_exit(on_thread_end, NULL) < 0) {
        weir__free(node);
        return;
    }
    ends_with_thread = true;
    weir__nodes.room = POOL_MAX;
    weir__node_free(node);
}
