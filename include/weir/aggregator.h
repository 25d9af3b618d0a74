/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/aggregator.h - the base of handlers that combine several messages into one: a start, content
 * parts, and an end.
 *
 *      static unsigned classify(const weir_msg *msg)
 *      {
 *          if (weir_msg_is(msg, &head_type))
 *              return WEIR_AGGREGATOR_START;
 *          if (!weir_msg_is(msg, &chunk_type))
 *              return 0;
 *          return WEIR_AGGREGATOR_CONTENT | (is_last(msg) ? WEIR_AGGREGATOR_LAST : 0);
 *      }
 *
 *      struct requests { weir_aggregator_state aggregator; };
 *      static int init(void *state, const void *options)
 *      {
 *          weir_aggregator_set_max_length(state, 65536);
 *          return 0;
 *      }
 *      static const weir_aggregator requests = {
 *          .handler = {.name = "requests", .init = init, WEIR_AGGREGATOR_SLOTS(struct requests)},
 *          .classify = classify, .begin = begin, .append = append};
 *
 * A message over the limit fires WEIR_ETOOLONG. Its remaining parts are released as they arrive;
 * aggregation continues with the next message.
 */
#ifndef WEIR_AGGREGATOR_H
#define WEIR_AGGREGATOR_H

#include <weir/handler.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The role of a message, as a set of flags. 0: not a part; the message is passed on. */
enum {
    WEIR_AGGREGATOR_START = 1 << 0,
    WEIR_AGGREGATOR_CONTENT = 1 << 1, /* counts against the limit */
    WEIR_AGGREGATOR_LAST = 1 << 2,
};

/* What to do with a message after the reply to its start. */
enum weir_aggregator_action {
    WEIR_AGGREGATOR_CONTINUE, /* aggregate it */
    WEIR_AGGREGATOR_SKIP,     /* release its parts as they arrive */
    WEIR_AGGREGATOR_CLOSE,    /* skip it, and close the channel once the reply is sent */
};

/* The callbacks borrow their messages and give the ones in ret_... to the base. An error is fired
 * through the pipeline, and the rest of the message is skipped. */
typedef struct weir_aggregator {
    weir_handler handler; /* {.name = ..., WEIR_AGGREGATOR_SLOTS(state), init, further slots} */
    unsigned (*classify)(const weir_msg *msg);

    /* Creates the aggregate from the start, including the start's own content. */
    int (*begin)(weir_ctx *ctx, weir_msg *start, weir_msg **ret_whole);
    /* Appends a part. A part that is LAST but not CONTENT has nothing to append. */
    int (*append)(weir_ctx *ctx, weir_msg *whole, weir_msg *part);
    /* Called when the aggregate is complete. Optional. */
    int (*end)(weir_ctx *ctx, weir_msg *whole);

    /* Content length of a part in bytes. NULL = weir_msg_size. */
    int64_t (*size)(const weir_msg *part);
    /* Content length that a start announces, negative if unknown. NULL = always unknown. */
    int64_t (*announced_length)(const weir_msg *start);
    /* Stores an interim reply to the start in *ret_reply, or leaves it NULL. Called before the
     * announced length is checked, so that the reply can reject it. Optional. */
    enum weir_aggregator_action (*reply)(weir_ctx *ctx, weir_msg *start, int64_t max_length,
                                         weir_msg **ret_reply);
    /* Called when the limit is exceeded: `msg` is the start, or the incomplete aggregate. NULL =
     * fire WEIR_ETOOLONG. */
    void (*too_long)(weir_ctx *ctx, weir_msg *msg);

    void (*removed)(weir_ctx *ctx); /* the handler's own `removed` */
    void *reserved[4];              /* NULL */
} weir_aggregator;

/* The first member of an aggregator's state. Private. */
typedef struct weir_aggregator_state {
    weir_demand demand; /* first */
    int64_t max_length;
    weir_msg *whole;
    int64_t length; /* of the content so far */
    void *reserved[2];
} weir_aggregator_state;

/*
 * Sets the maximum content length of a message in bytes, 0 = unlimited (the default). To be called
 * by the handler's `init`.
 * Thread: any.
 */
WEIR_API void weir_aggregator_set_max_length(weir_aggregator_state *state, int64_t max_length);

/* The slots that the base provides. `init` and `deinit` stay the handler's own. */
#define WEIR_AGGREGATOR_SLOTS(state)                                                \
    .state_size = sizeof(state), .removed = weir_aggregator_removed,                \
    .inactive = weir_aggregator_inactive, .read = weir_aggregator_read,             \
    .read_complete = weir_aggregator_read_complete, .event = weir_aggregator_event, \
    .request_read = weir_aggregator_request_read, .buffers_reads = true

/*
 * The functions behind these slots. A handler that overrides one of the slots calls its function.
 * Thread: the handler's.  Takes: msg, event.
 */
WEIR_API void weir_aggregator_removed(weir_ctx *ctx);
WEIR_API void weir_aggregator_inactive(weir_ctx *ctx);
WEIR_API void weir_aggregator_read(weir_ctx *ctx, weir_msg *msg);
WEIR_API void weir_aggregator_read_complete(weir_ctx *ctx);
WEIR_API void weir_aggregator_event(weir_ctx *ctx, weir_msg *event);
WEIR_API void weir_aggregator_request_read(weir_ctx *ctx);

#ifdef __cplusplus
}
#endif

#endif
