/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small nodes for writes, posted calls and queued events. Each thread keeps some free ones, so a
 * write on the loop allocates nothing.
 */
#ifndef WEIR_CHANNEL_NODE_POOL_H
#define WEIR_CHANNEL_NODE_POOL_H

#include <stddef.h>

#define WEIR__NODE_SIZE 72 /* malloc uses 80 bytes */

/* WEIR__NODE_SIZE bytes, not zeroed; NULL without memory. */
void *weir__node_alloc(void);

/* Any thread. */
void weir__node_free(void *node);

#endif
