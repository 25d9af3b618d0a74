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
    WEIR__INSTEAD,
};

typedef struct weir__spot {
    int kind;
    const char *anchor; /* the name of a handler; NULL for LAST and FIRST */
    bool exactly;       /* the name was chosen by the user: it must be free */
} weir__spot;

/* The loop: links a context and tells its handler. Fails with -ENOENT, -EEXIST, WEIR_ECLOSED. */
int weir__pipeline_insert(weir_pipeline *pipeline, weir_ctx *ctx, const weir__spot *spot);

/* The loop: the executor of a removed handler is through with it. */
void weir__pipeline_gone(weir_ctx *ctx);

/* The loop: what the channel has fired has got past this context, of one elsewhere or the ends. */
void weir__pipeline_end_behind(weir_ctx *ctx);

/* The context that what is added last comes before: the initialiser that runs now, or the ends. */
weir_ctx *weir__initializer_place(weir_pipeline *pipeline);

#endif
