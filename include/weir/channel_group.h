/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/channel_group.h - a set of channels: everybody in a room, every connection of a server.
 *
 *      weir_channel_group_create(NULL, &room);
 *      weir_channel_group_add(room, channel);               leaves by itself when it closes
 *      weir_channel_group_write_and_flush(room, msg, NULL,  to all
 *                                         weir_match_is_not, sender);         but one
 *
 * A group keeps its members until they leave. What is done to all of them is done to those that are
 * in it at that moment, in any order; each loop is told once, however many of its channels are
 * concerned, and no lock is held meanwhile.
 *
 * A message is not copied: each member gets its own by weir_msg_share, so that none hears how far
 * another has got. Handlers see read-only bytes; a type of your own that has no `share` is one that
 * nobody changes.
 *
 * One promise tells of all. It completes when all have: with how many that were as its value, a
 * uintptr_t; or, if some have failed, with the first one's error and the sentence "3 of 17 failed:
 * ...". The others have not: what was written stays written. Cancelling it spares the members whose
 * loop has not begun. With NULL instead of a promise, each member takes a failure as if it alone
 * had been asked (weir/handler.h); without memory to ask them they are aborted.
 */
#ifndef WEIR_CHANNEL_GROUP_H
#define WEIR_CHANNEL_GROUP_H

#include <weir/channel.h>
#include <weir/options.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_channel_group weir_channel_group;

/* Whether a member is meant. It is called on the thread that asks, before the call returns. */
typedef bool weir_match_fn(weir_channel *channel, void *user_data);

/* For weir_channel_group_foreach. */
typedef void weir_member_fn(weir_channel *channel, void *user_data);

/* Zero means default. Build with WEIR_CHANNEL_GROUP_OPTIONS(.name = "room", ...). */
typedef struct weir_channel_group_options {
    size_t size;
    const char *name; /* copied; default "channels" */
    bool stay_closed; /* once closed or aborted, it closes who wants to join */
} weir_channel_group_options;

#define WEIR_CHANNEL_GROUP_OPTIONS(...) WEIR_OPTIONS(weir_channel_group_options, __VA_ARGS__)

/*
 * Creates a group without members. NULL options: every default.
 * Thread: any.  Gives: ret_group.  Fails: -ENOMEM, -EINVAL.
 */
WEIR_API int weir_channel_group_create(const weir_channel_group_options *options,
                                       weir_channel_group **ret_group);

/*
 * Keeps a group.
 * Thread: any.
 */
WEIR_API weir_channel_group *weir_channel_group_retain(weir_channel_group *group);

/*
 * Gives a reference back; NULL is fine. With the last one its members leave; they are not closed.
 * Thread: any.  Takes: group.
 */
WEIR_API void weir_channel_group_release(weir_channel_group *group);

/*
 * Its name.
 * Thread: any.  Lends until the group is released: the name.
 */
WEIR_API const char *weir_channel_group_name(const weir_channel_group *group);

/* ---- members ---- */

/*
 * Makes a channel a member, until it is removed or closed.
 * Thread: any.  Keeps: channel.  Fails: -EEXIST (it is one), WEIR_ECLOSED (it is closed, or the
 * group is and stays so: then this closes the channel), -EINVAL (it was never registered), -ENOMEM.
 */
WEIR_API int weir_channel_group_add(weir_channel_group *group, weir_channel *channel);

/*
 * The channel leaves; what was begun for it is still done.
 * Thread: any.  Fails: -ENOENT (it is no member).
 */
WEIR_API int weir_channel_group_remove(weir_channel_group *group, weir_channel *channel);

/*
 * Whether the channel is a member; and how many there are.
 * Thread: any.
 */
WEIR_API bool weir_channel_group_contains(weir_channel_group *group, const weir_channel *channel);
WEIR_API size_t weir_channel_group_size(weir_channel_group *group);

/*
 * The member whose weir_channel_id that is; NULL if there is none.
 * Thread: any.  Gives: the channel.
 */
WEIR_API weir_channel *weir_channel_group_find(weir_channel_group *group, uint64_t id);

/*
 * Calls fn(channel, user_data) on this thread for each member, in the order in which they joined.
 * Members may come and go meanwhile: who comes is not called, who has gone by then neither.
 * Thread: any.  Lends until fn returns: the channel.
 */
WEIR_API void weir_channel_group_foreach(weir_channel_group *group, weir_member_fn *fn,
                                         void *user_data);

/* ---- what is done to all that match; NULL matches every member, and `done` may be NULL ---- */

/*
 * Each writes the message.
 * Thread: any.  Takes: msg.  Keeps: done.
 */
WEIR_API void weir_channel_group_write(weir_channel_group *group, weir_msg *msg, weir_promise *done,
                                       weir_match_fn *match, void *user_data);
WEIR_API void weir_channel_group_write_and_flush(weir_channel_group *group, weir_msg *msg,
                                                 weir_promise *done, weir_match_fn *match,
                                                 void *user_data);

/*
 * Each sends what was written.
 * Thread: any.
 */
WEIR_API void weir_channel_group_flush(weir_channel_group *group, weir_match_fn *match,
                                       void *user_data);

/*
 * Each is closed, aborted, disconnected, or taken from its loop: as weir_channel_close and so on.
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

/* ---- matches ---- */

/*
 * The channel that user_data is; all but that one.
 * Thread: any.
 */
WEIR_API bool weir_match_is(weir_channel *channel, void *user_data);
WEIR_API bool weir_match_is_not(weir_channel *channel, void *user_data);

/*
 * Those that accept; those that do not.
 * Thread: any.
 */
WEIR_API bool weir_match_listeners(weir_channel *channel, void *user_data);
WEIR_API bool weir_match_connections(weir_channel *channel, void *user_data);

/*
 * Those that are below their high water mark: who does not read is left out.
 * Thread: any.
 */
WEIR_API bool weir_match_writable(weir_channel *channel, void *user_data);

#ifdef __cplusplus
}
#endif

#endif
