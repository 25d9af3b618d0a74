/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An event as a mail between the channel's loop and the executor behind its border (border.h).
 *
 * Only events with contents are mails: one without is a flag of the mailbox, and needs no memory.
 *
 * Bytes. A message counts while it is a mail: one that was read against the marks that pause
 * reading, one that is written against those of the outbound queue.
 */
#ifndef WEIR_CHANNEL_EVENT_MAIL_H
#define WEIR_CHANNEL_EVENT_MAIL_H

#include "channel/invoke.h"
#include "executor/mailbox.h"

/* The slots without contents: flags of the same value. */
#define WEIR__EVENT_FLAGS                                                                       \
    ((uint32_t)(WEIR__REGISTERED | WEIR__UNREGISTERED | WEIR__ACTIVE | WEIR__INACTIVE |         \
                WEIR__READ_COMPLETE | WEIR__WRITABILITY | WEIR__DRAINING | WEIR__REQUEST_READ | \
                WEIR__FLUSH))

/* An event with its contents. */
typedef struct weir__event_mail {
    weir__mail mail;
    uint32_t slot;
    int err;
    weir_msg *msg;
    weir_promise *done; /* retained */
    int64_t bytes;
    void *extra; /* a copy of what was lent: the detail of an error, or addresses */
} weir__event_mail;

/*
 * Takes what the event carries. NULL without memory, or above the cap of writes: then the event is
 * lost, its message is released and its promise fails; for want of memory the channel is aborted.
 */
weir__event_mail *weir__event_mail_create(weir_channel *channel, const weir__event *event,
                                          weir__mail_fn *fn);

static inline uint32_t weir__event_mail_slot(const weir__mail *mail)
{
    return WEIR_CONTAINER_OF((weir__mail *)(uintptr_t)mail, weir__event_mail, mail)->slot;
}

/* The mail has arrived. It is freed, and its contents, which the caller now has, are copied to
 * *ret_mail. A write does not count any more: it counts where it goes. */
void weir__event_mail_open(weir__mail *mail, weir_channel *channel, weir__event_mail *ret_mail);

/* The event of a mail that was opened. It lends from it. */
weir__event weir__event_mail_event(const weir__event_mail *mail);

/* The event was passed on: a message that was read does not count any more. */
void weir__event_mail_close(const weir__event_mail *mail, weir_channel *channel);

/* True if the bytes on the way to the handlers of the channel are below the low mark. */
bool weir__channel_may_read(const weir_channel *channel);

#endif
