/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timeouts of a close.
 *
 * In SENDING the close gives up when the peer has taken no data for close_send_timeout_ns. In
 * LINGERING it ends when the peer has not ended its stream for close_timeout_ns; but as long as the
 * peer has not acknowledged all data, the first timeout applies.
 *
 * Giving up resets the connection, so that the peer does not mistake a part for the whole. Unsent
 * writes and the promises of the close fail with the reason, and a warning with the peer's address
 * is logged.
 */
#ifndef WEIR_CHANNEL_CLOSING_H
#define WEIR_CHANNEL_CLOSING_H

#include "channel/channel.h"

/* The loop: start the timeout of a phase when it begins. False: no memory for it. */
bool weir__closing_start_send_timeout(weir_channel *channel);
bool weir__closing_start_linger_timeout(weir_channel *channel);

/*
 * For handlers that have queued data at a close. Starts to record progress; returns the time of the
 * last progress, 0 if there was none since; returns how long to wait before the next check, at most
 * `timeout_ns`. On another executor than the loop only data that the kernel has taken counts.
 */
void weir__closing_watch(weir_channel *channel);
int64_t weir__closing_progress_at(weir_channel *channel);
int64_t weir__closing_poll_ns(const weir_channel *channel, int64_t timeout_ns);

/*
 * The loop: closes the channel and resets the connection. Unsent data and the promises of the close
 * fail with `err` and the reason, which is copied. Logs a warning.
 */
void weir__channel_give_up(weir_channel *channel, int err, const char *reason);

/* The error and the text of a close that gave up; 0 if it did not. The text is valid as long as
 * the channel. */
int weir__closing_error(const weir_channel *channel, const char **ret_reason);

#define WEIR__CLOSE_REASON_SIZE 128

/* Writes "WHAT for 30 s after the close". */
void weir__closing_describe(const weir_channel *channel, const char *what, char *text, size_t size);

#endif
