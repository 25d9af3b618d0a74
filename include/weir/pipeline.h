/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/pipeline.h - the ordered list of a channel's handlers.
 *
 *      socket   read  ->  [tls] -> [decoder] -> [app]   -> tail      inbound:  head to tail
 *      socket <- write    [tls] <- [encoder] <- [app]                outbound: tail to head
 *
 * A handler without the slot of an event is skipped. A handler owns the message it is passed: it
 * passes the message on or releases it, once. The tail releases unhandled messages and logs them.
 *
 * On the channel's loop a change takes effect at once, and so it does before the registration on
 * the thread that created the channel. Other threads post the change: `init` still runs at once and
 * its error is returned, but errors that only the loop can find (a name in use, an unknown handler)
 * complete the promise, `done`, or are logged if that is NULL.
 *
 * A handler that is added with a group sets a border:
 *
 *      [tls] -> [decoder] -> | -> [database] -> [log]
 *      on the channel's loop | on one executor of the group
 *
 * All handlers behind the border run there, in order, whether they were added with the group or
 * without; those in front of it run on the loop. A pipeline has one border. If the handler comes in
 * front of others that run on the loop, the border moves there when none of them is running or in
 * use; until then the new handler gets no events. The border goes away with the last handler behind
 * it.
 */
#ifndef WEIR_PIPELINE_H
#define WEIR_PIPELINE_H

#include <weir/group.h>
#include <weir/handler.h>
#include <weir/options.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The position of a new handler. Zero means default: last, with its table's name, on the loop. */
typedef struct weir_place {
    size_t size;
    bool first;
    const char *before; /* the name of a handler; only one of first, before and after */
    const char *after;
    const char *name;   /* must not be in use; default the table's, with #2, #3, ... if that is */
    weir_group *group;  /* this handler and all behind it run on an executor of it; retained */
    weir_promise *done; /* completes when the handler is added; retained */
} weir_place;

#define WEIR_PLACE(...) WEIR_OPTIONS(weir_place, __VA_ARGS__)

/*
 * Adds a handler. Its `init` runs in the caller. Its `added` runs on its executor: before this
 * returns if the caller is on it and the channel is registered, otherwise later. A group is refused
 * with -EINVAL if other handlers of the pipeline run on another one, and with -ENOTSUP if it has a
 * thread per channel, or if a handler that `stays_on_loop` would be behind the border.
 * Thread: any.  Lends until it returns: options.  Keeps: group, done.  Fails: -ENOMEM, -EEXIST (the
 * name is in use), -ENOENT (no handler `before` or `after`), -EINVAL, -ENOTSUP, WEIR_ECLOSED, or
 * the error of `init`.
 */
WEIR_API WEIR_MUST_USE int weir_pipeline_add(weir_pipeline *pipeline, const weir_place *place,
                                             const weir_handler *handler, const void *options);

/*
 * weir_pipeline_add for the usual positions.
 * Thread: any.  Lends until it returns: options.  Fails: as weir_pipeline_add.
 */
WEIR_API WEIR_MUST_USE int
weir_pipeline_add_first(weir_pipeline *pipeline, const weir_handler *handler, const void *options);
WEIR_API WEIR_MUST_USE int weir_pipeline_add_last(weir_pipeline *pipeline,
                                                  const weir_handler *handler, const void *options);
WEIR_API WEIR_MUST_USE int weir_pipeline_add_before(weir_pipeline *pipeline, const char *before,
                                                    const weir_handler *handler,
                                                    const void *options);
WEIR_API WEIR_MUST_USE int weir_pipeline_add_after(weir_pipeline *pipeline, const char *after,
                                                   const weir_handler *handler,
                                                   const void *options);
WEIR_API WEIR_MUST_USE int weir_pipeline_add_last_as(weir_pipeline *pipeline, const char *name,
                                                     const weir_handler *handler,
                                                     const void *options);

/*
 * Adds an initializer: a handler that calls `init` once, on the loop, when the channel is
 * registered, and then removes itself. Handlers that `init` adds last take its position. Its error
 * closes the channel.
 * Thread: any.  Lends until it has run: user_data.  Fails: -ENOMEM, WEIR_ECLOSED.
 */
WEIR_API WEIR_MUST_USE int
weir_pipeline_add_initializer(weir_pipeline *pipeline,
                              int (*init)(weir_channel *channel, void *user_data), void *user_data);

/*
 * Removes a handler by name: calls `removed`, then `deinit`. `done` may be NULL.
 * Thread: any.  Keeps: done.  Fails: -ENOENT (no such handler), -ENOMEM (cannot be posted).
 */
WEIR_API int weir_pipeline_remove(weir_pipeline *pipeline, const char *name, weir_promise *done);

/*
 * Removes the handler of this context. A handler removes itself with it.
 * Thread: the handler's.
 */
WEIR_API void weir_ctx_remove(weir_ctx *ctx);

/*
 * Replaces a handler: `added` of the new one runs before `removed` of the old one. Of `place` only
 * name, group and done may be set.
 * Thread: any.  Lends until it returns: options.  Fails: -ENOENT, and as weir_pipeline_add.
 */
WEIR_API WEIR_MUST_USE int weir_pipeline_replace(weir_pipeline *pipeline, const char *old_name,
                                                 const weir_place *place,
                                                 const weir_handler *handler, const void *options);

/*
 * Finds the context of a handler by name, or the first one with that table. NULL if there is none.
 * Thread: loop.
 */
WEIR_API weir_ctx *weir_pipeline_find(weir_pipeline *pipeline, const char *name);
WEIR_API weir_ctx *weir_pipeline_find_handler(weir_pipeline *pipeline, const weir_handler *handler);

/*
 * The number of handlers, without head and tail.
 * Thread: loop.
 */
WEIR_API size_t weir_pipeline_count(const weir_pipeline *pipeline);

/*
 * Writes the pipeline as text: "head <-> tls <-> echo <-> tail". Returns the length of the whole
 * text, as snprintf.
 * Thread: loop.
 */
WEIR_API size_t weir_pipeline_dump(const weir_pipeline *pipeline, char *buffer, size_t size);

/*
 * The channel, borrowed.
 * Thread: any.
 */
WEIR_API weir_channel *weir_pipeline_channel(const weir_pipeline *pipeline);

/*
 * Each fires an inbound event at the head.
 * Thread: loop.  Takes: msg, event.
 */
WEIR_API void weir_pipeline_fire_read(weir_pipeline *pipeline, weir_msg *msg);
WEIR_API void weir_pipeline_fire_read_complete(weir_pipeline *pipeline);
WEIR_API void weir_pipeline_fire_event(weir_pipeline *pipeline, weir_msg *event);
WEIR_API void weir_pipeline_fire_error(weir_pipeline *pipeline, int err, const char *detail);

#ifdef __cplusplus
}
#endif

#endif
