/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/pipeline.h - the ordered handlers that a channel's events pass through.
 *
 *      socket   read  ->  [tls] -> [decoder] -> [app]   -> tail      in:  head to tail
 *      socket <- write    [tls] <- [encoder] <- [app]                out: tail to head
 *
 * A handler that leaves an event out is skipped. A message belongs to the handler it was passed to:
 * pass it on or release it, once. The tail releases and reports what nobody handled.
 *
 * The pipeline is changed on the channel's loop, or before registration by the thread that made the
 * channel; there a change is made at once. From other threads it is posted: `init` runs and is
 * reported at once, what only the loop can know (a name that is taken, a handler that is not there)
 * is reported by the promise of the ..._later functions, or logged.
 */
#ifndef WEIR_PIPELINE_H
#define WEIR_PIPELINE_H

#include <weir/group.h>
#include <weir/handler.h>
#include <weir/options.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Where and how a handler is added. Zero means default: last, under its own name, on the loop. */
typedef struct weir_place {
    size_t size;
    bool first;
    const char *before; /* the name of a handler */
    const char *after;
    const char *name;   /* must be free; default the table's, with #2, #3 when taken */
    weir_group *group;  /* its slots run on an executor of this group; kept */
    weir_promise *done; /* for other threads: completes when it has been added; kept */
} weir_place;

#define WEIR_PLACE(...) WEIR_OPTIONS(weir_place, __VA_ARGS__)

/*
 * Adds a handler. Its `init` runs now, in the caller; its `added` on its executor: at once if we
 * are there, and the channel is registered, otherwise later.
 * Thread: any.  Lends until it returns: options.  Keeps: group, done.  Fails: -ENOMEM, -EEXIST (the
 * name), -ENOENT (before or after whom), -EINVAL, -ENOTSUP (a group with a thread per channel),
 * WEIR_ECLOSED, or what `init` returned.
 */
WEIR_API int weir_pipeline_add(weir_pipeline *pipeline, const weir_place *place,
                               const weir_handler *handler, const void *options);

/*
 * The usual places.
 * Thread: any.  Lends until it returns: options.  Fails: as weir_pipeline_add.
 */
WEIR_API int weir_pipeline_add_first(weir_pipeline *pipeline, const weir_handler *handler,
                                     const void *options);
WEIR_API int weir_pipeline_add_last(weir_pipeline *pipeline, const weir_handler *handler,
                                    const void *options);
WEIR_API int weir_pipeline_add_before(weir_pipeline *pipeline, const char *before,
                                      const weir_handler *handler, const void *options);
WEIR_API int weir_pipeline_add_after(weir_pipeline *pipeline, const char *after,
                                     const weir_handler *handler, const void *options);
WEIR_API int weir_pipeline_add_last_as(weir_pipeline *pipeline, const char *name,
                                       const weir_handler *handler, const void *options);

/*
 * Adds an initialiser at the tail: it runs once, on the loop, when the channel is registered, adds
 * handlers in its own place, and goes. An error closes the channel.
 * Thread: any.  Lends until it has run: user_data.  Fails: -ENOMEM, WEIR_ECLOSED.
 */
WEIR_API int weir_pipeline_add_initializer(weir_pipeline *pipeline,
                                           int (*init)(weir_channel *channel, void *user_data),
                                           void *user_data);

/*
 * Removes the handler of that name: `removed`, then `deinit`. NULL `done`: nobody waits.
 * Thread: any.  Keeps: done.  Fails: -ENOENT (there is none), -ENOMEM (to be posted).
 */
WEIR_API int weir_pipeline_remove(weir_pipeline *pipeline, const char *name, weir_promise *done);

/*
 * Removes the handler that this context is of; a handler does this to go.
 * Thread: the handler's.
 */
WEIR_API void weir_ctx_remove(weir_ctx *ctx);

/*
 * Puts a handler in the place of another: the new one's `added` before the old one's `removed`.
 * `place` may give its name, group and promise.
 * Thread: any.  Lends until it returns: options.  Fails: -ENOENT, and as weir_pipeline_add.
 */
WEIR_API int weir_pipeline_replace(weir_pipeline *pipeline, const char *old_name,
                                   const weir_place *place, const weir_handler *handler,
                                   const void *options);

/*
 * The context of a handler by name, or of the first one with that table; NULL if there is none.
 * Thread: loop.
 */
WEIR_API weir_ctx *weir_pipeline_find(weir_pipeline *pipeline, const char *name);
WEIR_API weir_ctx *weir_pipeline_find_handler(weir_pipeline *pipeline, const weir_handler *handler);

/*
 * How many handlers there are, head and tail not counted.
 * Thread: loop.
 */
WEIR_API size_t weir_pipeline_count(const weir_pipeline *pipeline);

/*
 * Writes the pipeline in words: "head <-> tls <-> echo <-> tail". Returns what it would need.
 * Thread: loop.
 */
WEIR_API size_t weir_pipeline_dump(const weir_pipeline *pipeline, char *buffer, size_t size);

/*
 * The channel.
 * Thread: any.
 */
WEIR_API weir_channel *weir_pipeline_channel(const weir_pipeline *pipeline);

/*
 * Each sends an event in at the head.
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
