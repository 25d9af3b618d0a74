/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small nodes for writes, posted calls and queued events. Each thread keeps some free ones, so a
 * write on the loop allocates nothing.
 */
#ifndef WEIR_CHANNEL_NODE_POOL_H
#define WEIR_CHANNEL_NODE_POOL_H

#include <stddef.h>

#define WEIR__NODE_SIZE 72 /* malloc uses 80 bytes */

/* The free nodes of a thread: a stack. */
typedef struct weir__free_node {
    struct weir__free_node *next;
} weir__free_node;

typedef struct weir__node_pool {
    weir__free_node *first;
    size_t room; /* further nodes that it may keep; 0 before the first one is freed */
} weir__node_pool;

extern _Thread_local weir__node_pool weir__nodes __attribute__((tls_model("initial-exec")));

/* Without a free node; without room for one. */
void *weir__node_alloc_new(void);
void weir__node_free_slowly(void *node);

/* weir__node_alloc from the pool only: NULL if it is empty. */
static inline void *weir__node_pop(void)
{
    weir__free_node *node = weir__nodes.first;

    if (node != NULL) {
        weir__nodes.first = node->next;
        weir__nodes.room++;
    }
    return node;
}

/* WEIR__NODE_SIZE bytes, not zeroed; NULL without memory. */
static inline void *weir__node_alloc(void)
{
    void *node = weir__node_pop();

    return node != NULL ? node : weir__node_alloc_new();
}

/* Any thread. */
static inline void weir__node_free(void *node)
{
    weir__free_node *free_node = node;

    if (weir__nodes.room == 0) {
        weir__node_free_slowly(node);
        return;
    }
    free_node->next = weir__nodes.first;
    weir__nodes.first = free_node;
    weir__nodes.room--;
}

#endif
