/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small nodes for what is written, called and passed on: each thread keeps some of those that it
 * gives back, so that a write of the loop's own costs no allocation.
 */
#ifndef WEIR_CHANNEL_NODE_POOL_H
#define WEIR_CHANNEL_NODE_POOL_H

#include <stddef.h>

#define WEIR__NODE_SIZE 72 /* what malloc gives in 80 bytes */

/* Memory of WEIR__NODE_SIZE bytes, not zeroed; NULL if there is none. */
void *weir__node_alloc(void);

/* Any thread. */
void weir__node_free(void *node);

#endif
