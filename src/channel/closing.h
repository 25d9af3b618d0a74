/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timeouts of a close, and giving up.
 *
 * SENDING gives up when the peer has taken nothing for close_send_timeout_ns. LINGERING ends when
 * the peer has not ended its stream for close_timeout_ns; but data that the peer has not
 * acknowledged is still being sent, and has the first timeout.
 *
 * Giving up resets the connection, so that the peer does not mistake a part for the whole. The
 * writes that were not sent and the promises of the close fail with the reason, and the log names
 * the peer.
 */
#ifndef WEIR_CHANNEL_CLOSING_H
#define WEIR_CHANNEL_CLOSING_H

#include "channel/channel.h"

/* Both on the loop, when the phase begins. False: there is no memory for the timeout. */
bool weir__closing_start_send_timeout(weir_channel *channel);
bool weir__closing_start_linger_timeout(weir_channel *channel);

/*
 * For handlers that hold data at a close. Starts to watch for progress; returns when the peer last
 * took something, 0 if not since then; and how long to wait before looking again, at most
 * `timeout_ns`. On another executor than the loop only data that the kernel takes is progress.
 */
void weir__closing_watch(weir_channel *channel);
int64_t weir__closing_progress_at(weir_channel *channel);
int64_t weir__closing_poll_ns(const weir_channel *channel, int64_t timeout_ns);

/*
 * The loop: ends the channel, which resets the connection. What is not sent fails with `err` and
 * the reason, which is copied, and so do the promises of a close. Logs a warning.
 */
void weir__channel_give_up(weir_channel *channel, int err, const char *reason);

/* Why the channel gave up: the error and the text; 0 if it did not. The text is lent for as long as
 * the channel is. */
int weir__closing_error(const weir_channel *channel, const char **ret_reason);

#define WEIR__CLOSE_REASON_SIZE 128

/* Writes "WHAT for 30 s after the close". */
void weir__closing_describe(const weir_channel *channel, const char *what, char *text, size_t size);

#endif
