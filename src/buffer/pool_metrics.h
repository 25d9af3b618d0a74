/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics of the pool: totals, while there is a heap, and those of each heap.
 */
#ifndef WEIR_BUFFER_POOL_METRICS_H
#define WEIR_BUFFER_POOL_METRICS_H

#include "buffer/heap.h"

/* Fail with -ENOMEM without effect. Names that are taken are skipped. */
int weir__pool_metrics_begin(void);
int weir__pool_metrics_add(weir__heap *heap);

void weir__pool_metrics_end(void);
void weir__pool_metrics_remove(weir__heap *heap);

#endif
