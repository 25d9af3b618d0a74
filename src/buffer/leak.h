/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leak detection hooks for messages of this layer: creation, touch, destruction.
 *
 * Whether a message is watched is decided once, at its creation, and stored in a bit of its flags
 * that all types of this layer share. For an unwatched message the creation costs a decrement and a
 * branch, and every other hook a test of that bit.
 */
#ifndef WEIR_BUFFER_LEAK_H
#define WEIR_BUFFER_LEAK_H

#include <weir/buf.h>
#include <weir/pool.h>

#include "buffer/leak_record.h"
#include "buffer/pool_thread.h"

#define WEIR__LEAK_WATCHED (1u << 5) /* in weir_msg.flags */

void weir__leak_sample(weir_msg *msg);

/* Counts a message that is created. True if weir__leak_sample is to be called for it. */
static inline bool weir__leak_is_candidate(void)
{
    return __builtin_expect(--weir__pool_thread_now.leak_countdown < 0, false);
}

/* Called when the message is complete, its flags are set, and no other thread has it. */
static inline void weir__leak_msg_created(weir_msg *msg)
{
    if (weir__leak_is_candidate())
        weir__leak_sample(msg);
}

/* Called when the last reference was released. */
static inline void weir__leak_msg_destroyed(weir_msg *msg)
{
    if ((msg->flags & WEIR__LEAK_WATCHED) != 0)
        weir__leak_record_remove(msg);
}

/* Records that the calling thread has it; `where` is a literal. */
static inline void weir__leak_msg_touch(weir_msg *msg, const char *where)
{
    if ((msg->flags & WEIR__LEAK_WATCHED) != 0)
        weir__leak_record_touch(msg, where);
}

static inline void weir__leak_created(weir_buf *buf)
{
    weir__leak_msg_created(&buf->msg);
}

static inline void weir__leak_destroyed(weir_buf *buf)
{
    weir__leak_msg_destroyed(&buf->msg);
}

static inline void weir__leak_touch(weir_buf *buf, const char *where)
{
    weir__leak_msg_touch(&buf->msg, where);
}

/* Parses a level as in WEIR_LEAK_LEVEL. Fails with -EINVAL. */
int weir__leak_parse_level(const char *text, enum weir_leak_level *ret_level);

#endif
