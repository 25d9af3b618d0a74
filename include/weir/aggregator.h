/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/aggregator.h - the base of handlers that make one message of many: a start, parts, an end.
 *
 *      static unsigned classify(const weir_msg *msg)
 *      {
 *          if (weir_msg_is(msg, &head_type))
 *              return WEIR_AGGREGATOR_START;
 *          return weir_msg_is(msg, &chunk_type)
 *                     ? WEIR_AGGREGATOR_CONTENT | (is_last(msg) ? WEIR_AGGREGATOR_LAST : 0) : 0;
 *      }
 *
 *      struct wholes { weir_aggregator_state aggregator; };
 *      static int init(void *state, const void *options)
 *      {
 *          weir_aggregator_set_max_length(state, 65536);
 *          return 0;
 *      }
 *      static const weir_aggregator wholes = {
 *          .handler = {.name = "wholes", .init = init, WEIR_AGGREGATOR_SLOTS(struct wholes)},
 *          .classify = classify, .begin = begin, .append = append};
 *
 * A message over the limit is an error, WEIR_ETOOLONG; the rest of it is dropped as it comes, and
 * the next one is put together again.
 */
#ifndef WEIR_AGGREGATOR_H
#define WEIR_AGGREGATOR_H

#include <weir/handler.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a message is; several may hold. None: it is not a part, and is passed on. */
enum {
    WEIR_AGGREGATOR_START = 1 << 0,
    WEIR_AGGREGATOR_CONTENT = 1 << 1, /* counts against the limit */
    WEIR_AGGREGATOR_LAST = 1 << 2,
};

/* What becomes of a message after the reply to its start. */
enum weir_aggregator_action {
    WEIR_AGGREGATOR_CONTINUE, /* it is put together */
    WEIR_AGGREGATOR_SKIP,     /* it is dropped as it comes */
    WEIR_AGGREGATOR_CLOSE,    /* and the channel is closed when the reply has been sent */
};

/* All messages are lent, but for what is given in ret_... . An error goes through the pipeline, and
 * the rest of the message is dropped. */
typedef struct weir_aggregator {
    weir_handler handler; /* {.name = ..., WEIR_AGGREGATOR_SLOTS(state), init, further slots} */
    unsigned (*classify)(const weir_msg *msg);

    /* Makes the whole of its start, and of the content if it has some. */
    int (*begin)(weir_ctx *ctx, weir_msg *start, weir_msg **ret_whole);
    /* Adds a part: one that is only the end has no content. */
    int (*append)(weir_ctx *ctx, weir_msg *whole, weir_msg *part);
    /* All of it is there. NULL = nothing to do. */
    int (*end)(weir_ctx *ctx, weir_msg *whole);

    /* How many bytes of content a part has; NULL = weir_msg_size. */
    int64_t (*size)(const weir_msg *part);
    /* How much content a start announces; negative if it does not. NULL = never. */
    int64_t (*announced_length)(const weir_msg *start);
    /* A reply to the start, if it wants one before it goes on: NULL in *ret_reply if not. It is
     * asked before the announced_length length is looked at, which the reply may be about. */
    enum weir_aggregator_action (*reply)(weir_ctx *ctx, weir_msg *start, int64_t max_length,
                                         weir_msg **ret_reply);
    /* It is over the limit: `msg` is the start, or what has been put together. NULL = fires the
     * error. */
    void (*too_long)(weir_ctx *ctx, weir_msg *msg);

    void (*removed)(weir_ctx *ctx); /* the handler's own */
    void *reserved[4];              /* NULL */
} weir_aggregator;

/* The first member of an aggregator's state. Private. */
typedef struct weir_aggregator_state {
    weir_demand demand; /* first */
    int64_t max_length;
    weir_msg *whole;
    int64_t length; /* of its content */
    void *reserved[2];
} weir_aggregator_state;

/*
 * Says how many bytes of content a message may have: for the handler's `init`. Without it there is
 * no limit.
 * Thread: any.
 */
WEIR_API void weir_aggregator_set_max_length(weir_aggregator_state *state, int64_t max_length);

/* What the base has of a handler. Its init and deinit are the aggregator's own. */
#define WEIR_AGGREGATOR_SLOTS(state)                                                \
    .state_size = sizeof(state), .removed = weir_aggregator_removed,                \
    .inactive = weir_aggregator_inactive, .read = weir_aggregator_read,             \
    .read_complete = weir_aggregator_read_complete, .event = weir_aggregator_event, \
    .request_read = weir_aggregator_request_read, .buffers_reads = true

/*
 * These slots. An aggregator with slots of its own in their place calls them.
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
