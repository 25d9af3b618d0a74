/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where in a pipeline a change is made.
 */
#ifndef WEIR_CHANNEL_PIPELINE_CHANGE_H
#define WEIR_CHANNEL_PIPELINE_CHANGE_H

#include "channel/pipeline.h"

#define WEIR__NAME_MAX 128                      /* of a generated name, its 0 included */
#define WEIR__NAME_NUMBER sizeof("#4294967295") /* what such a name needs besides the table's */

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
    bool is_exact;      /* the name was chosen by the user: it must be free */
} weir__position;

/* The loop: links a context and tells its handler. Fails with -ENOENT, -EEXIST, -ENOMEM,
 * WEIR_ECLOSED. */
int weir__pipeline_insert(weir_pipeline *pipeline, weir_ctx *ctx, const weir__position *position);

/* The loop: what the channel has fired has got past this context, of one elsewhere or the ends. */
void weir__pipeline_teardown_after(weir_ctx *ctx);

/* The context that what is added last comes before: the initialiser that runs now, or the ends. */
weir_ctx *weir__initializer_anchor(weir_pipeline *pipeline);

#endif
