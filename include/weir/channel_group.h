/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/channel_group.h - a set of channels, such as all connections of a server or a chat room.
 *
 *      weir_channel_group_create(NULL, &room);
 *      weir_channel_group_add(room, channel);               a closed channel leaves by itself
 *      weir_channel_group_write_and_flush(room, msg, NULL,  to all but one
 *                                         weir_match_is_not, sender);
 *
 * A group retains its members until they leave. An operation on a group applies to the channels
 * that are members at that moment, in any order. It posts one task per loop, and no lock is held
 * while it runs.
 *
 * A message is not copied: each member gets its own by weir_msg_share, with its own read position.
 * Handlers see read-only bytes. A message type without `share` must be immutable.
 *
 * The promise of an operation completes when all members have: with their number as its value, a
 * uintptr_t; or, if some failed, with the first error and the text "3 of 17 failed: ...". The
 * members that did not fail have succeeded nonetheless. A cancelled promise skips members whose
 * loop has not started. If `done` is NULL, a failure is handled as for a single channel
 * (weir/handler.h); a member that could not be reached for lack of memory is aborted.
 */
#ifndef WEIR_CHANNEL_GROUP_H
#define WEIR_CHANNEL_GROUP_H

#include <weir/channel.h>
#include <weir/options.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_channel_group weir_channel_group;

/* Selects members. Runs on the calling thread, before the operation returns. */
typedef bool weir_match_fn(weir_channel *channel, void *user_data);

/* Called by weir_channel_group_foreach. */
typedef void weir_member_fn(weir_channel *channel, void *user_data);

/* Zero means default. Build with WEIR_CHANNEL_GROUP_OPTIONS(.name = "room", ...). */
typedef struct weir_channel_group_options {
    size_t size;
    const char *name; /* copied; default "channels" */
    bool stay_closed; /* once closed or aborted, channels added later are closed */
} weir_channel_group_options;

#define WEIR_CHANNEL_GROUP_OPTIONS(...) WEIR_OPTIONS(weir_channel_group_options, __VA_ARGS__)

/*
 * Creates a group without members. NULL options mean all defaults.
 * Thread: any.  Gives: ret_group.  Fails: -ENOMEM, -EINVAL.
 */
WEIR_API WEIR_MUST_USE int weir_channel_group_create(const weir_channel_group_options *options,
                                                     weir_channel_group **ret_group);

/*
 * Retains a group.
 * Thread: any.
 */
WEIR_API weir_channel_group *weir_channel_group_retain(weir_channel_group *group);

/*
 * Releases a reference. NULL is ignored. The last release removes the members but does not close
 * them.
 * Thread: any.  Takes: group.
 */
WEIR_API void weir_channel_group_release(weir_channel_group *group);

/*
 * The group's name.
 * Thread: any.  Lends until the group is released: the name.
 */
WEIR_API const char *weir_channel_group_name(const weir_channel_group *group);

/* ---- members ---- */

/*
 * Adds a channel, until it is removed or closed.
 * Thread: any.  Keeps: channel.  Fails: -EEXIST (already a member), WEIR_ECLOSED (the channel is
 * closed, or the group is, with stay_closed: then the channel is closed, too), -EINVAL (never
 * registered), -ENOMEM.
 */
WEIR_API WEIR_MUST_USE int weir_channel_group_add(weir_channel_group *group, weir_channel *channel);

/*
 * Removes a channel. Operations that have started still apply to it.
 * Thread: any.  Fails: -ENOENT (not a member).
 */
WEIR_API int weir_channel_group_remove(weir_channel_group *group, weir_channel *channel);

/*
 * True if the channel is a member; the number of members.
 * Thread: any.
 */
WEIR_API bool weir_channel_group_contains(weir_channel_group *group, const weir_channel *channel);
WEIR_API size_t weir_channel_group_size(weir_channel_group *group);

/*
 * Finds a member by its weir_channel_id. NULL if there is none.
 * Thread: any.  Gives: the channel.
 */
WEIR_API WEIR_MUST_USE weir_channel *weir_channel_group_find(weir_channel_group *group,
                                                             uint64_t id);

/*
 * Calls fn(channel, user_data) on this thread for each member, in the order in which they joined.
 * Members may join and leave meanwhile: fn is not called for channels that join after the call
 * began or leave before their turn.
 * Thread: any.  Lends until fn returns: the channel.
 */
WEIR_API void weir_channel_group_foreach(weir_channel_group *group, weir_member_fn *fn,
                                         void *user_data);

/* ---- operations on all members that match; match and done may be NULL ---- */

/*
 * Writes the message to each.
 * Thread: any.  Takes: msg.  Keeps: done.
 */
WEIR_API void weir_channel_group_write(weir_channel_group *group, weir_msg *msg, weir_promise *done,
                                       weir_match_fn *match, void *user_data);
WEIR_API void weir_channel_group_write_and_flush(weir_channel_group *group, weir_msg *msg,
                                                 weir_promise *done, weir_match_fn *match,
                                                 void *user_data);

/*
 * Flushes each.
 * Thread: any.
 */
WEIR_API void weir_channel_group_flush(weir_channel_group *group, weir_match_fn *match,
                                       void *user_data);

/*
 * Closes, aborts, disconnects or deregisters each, as weir_channel_close and so on.
 * Thread: any.  Keeps: done.
 */
WEIR_API void weir_channel_group_close(weir_channel_group *group, weir_promise *done,
                                       weir_match_fn *match, void *user_data);
WEIR_API void weir_channel_group_abort(weir_channel_group *group, weir_promise *done,
                                       weir_match_fn *match, void *user_data);
WEIR_API void weir_channel_group_disconnect(weir_channel_group *group, weir_promise *done,
                                            weir_match_fn *match, void *user_data);
WEIR_API void weir_channel_group_deregister(weir_channel_group *group, weir_promise *done,
                                            weir_match_fn *match, void *user_data);

/* ---- match functions ---- */

/*
 * Matches the channel that user_data points to; every other channel.
 * Thread: any.
 */
WEIR_API bool weir_match_is(weir_channel *channel, void *user_data);
WEIR_API bool weir_match_is_not(weir_channel *channel, void *user_data);

/*
 * Matches listeners; all other channels.
 * Thread: any.
 */
WEIR_API bool weir_match_listeners(weir_channel *channel, void *user_data);
WEIR_API bool weir_match_connections(weir_channel *channel, void *user_data);

/*
 * Matches writable channels. Slow readers are skipped.
 * Thread: any.
 */
WEIR_API bool weir_match_writable(weir_channel *channel, void *user_data);

#ifdef __cplusplus
}
#endif

#endif
