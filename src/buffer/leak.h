/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the messages of this layer tell the leak records: that they are there, that somebody has
 * seen them, that they have gone.
 *
 * Whether a message is watched is decided once, at its birth, and kept in a bit of its flags that
 * all types of this layer have in common. For one that is not, a birth costs a decrement and a
 * branch, and the rest of its life a look at the bit.
 */
#ifndef WEIR_BUFFER_LEAK_H
#define WEIR_BUFFER_LEAK_H

#include <weir/buf.h>
#include <weir/pool.h>

#include "buffer/leak_record.h"

#define WEIR__LEAK_WATCHED (1u << 5) /* in weir_msg.flags */

/* How many births of this thread are left until the one that is looked at. */
extern _Thread_local int32_t weir__leak_countdown __attribute__((tls_model("initial-exec")));

void weir__leak_sample(weir_msg *msg);

/* The message is complete, its flags are set, nobody else has it yet. */
static inline void weir__leak_msg_created(weir_msg *msg)
{
    if (--weir__leak_countdown <= 0)
        weir__leak_sample(msg);
}

/* The last reference has gone. */
static inline void weir__leak_msg_destroyed(weir_msg *msg)
{
    if ((msg->flags & WEIR__LEAK_WATCHED) != 0)
        weir__leak_record_remove(msg);
}

/* The calling thread has seen it; `where` is a literal. */
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

/* Reads a level as it is written in WEIR_LEAK_LEVEL. Fails with -EINVAL. */
int weir__leak_parse_level(const char *text, enum weir_leak_level *ret_level);

#endif
