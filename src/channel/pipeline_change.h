/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The position of a change in a pipeline.
 */
#ifndef WEIR_CHANNEL_PIPELINE_CHANGE_H
#define WEIR_CHANNEL_PIPELINE_CHANGE_H

#include "channel/pipeline.h"

#define WEIR__NAME_MAX 128                      /* size of a generated name, with its 0 */
#define WEIR__NAME_NUMBER sizeof("#4294967295") /* what it needs besides the table's name */

enum {
    WEIR__LAST,
    WEIR__FIRST,
    WEIR__BEFORE,
    WEIR__AFTER,
    WEIR__REPLACE,
};

typedef struct weir__position {
    int kind;
    const char *anchor; /* the name of a handler; NULL for LAST and FIRST */
    weir_group *group;  /* where it runs; NULL: where its neighbours do */
    bool is_exact;      /* the name was given by the user: it must not be in use */
    bool is_cure;       /* the group is that for handlers that block: it is only preferred */
} weir__position;

/* The loop: links a context and calls `added`. Fails with -ENOENT, -EEXIST, -ENOMEM, -EINVAL
 * (another group than the border's), -ENOTSUP, WEIR_ECLOSED. */
int weir__pipeline_insert(weir_pipeline *pipeline, weir_ctx *ctx, const weir__position *position);

/* The context before which handlers are added last: the running initializer, or head_tail. */
weir_ctx *weir__initializer_anchor(weir_pipeline *pipeline);

#endif
