/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool in the metric registry: what is mapped, as long as there is a heap, and each heap's part
 * in it.
 */
#ifndef WEIR_BUFFER_POOL_METRICS_H
#define WEIR_BUFFER_POOL_METRICS_H

#include "buffer/heap.h"

/* Each fails with -ENOMEM, and has done nothing then. A name that is taken is left out. */
int weir__pool_metrics_begin(void);
int weir__pool_metrics_add(weir__heap *heap);

void weir__pool_metrics_end(void);
void weir__pool_metrics_remove(weir__heap *heap);

#endif
