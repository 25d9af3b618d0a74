/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers that block are moved from the loops to another group: the option offload_when_blocking
 * of channels.
 *
 * The watchdog decides that a handler blocks. Its table is then in a list of the process. In
 * channels with the option
 *
 *      a handler that is added later       runs on the group from the start
 *      a handler on the loop               moves there, with all behind it: by a walk over the
 *                                          channels of each loop, when the channel is registered
 *                                          on another loop, and when it gets the option
 *
 * In both cases the pipeline's border is set in front of the handler (border.h). One that the
 * channel has already moves there, and stays on its own group.
 */
#ifndef WEIR_CHANNEL_OFFLOAD_BLOCKING_H
#define WEIR_CHANNEL_OFFLOAD_BLOCKING_H

#include <weir/channel.h>
#include <weir/handler.h>

/*
 * Any thread: the handler has blocked, for the `blocks`-th time. From now on it runs on the groups
 * of the channels with offload_when_blocking. The first call logs the number of channels, when the
 * loops have answered; call it for each further block, too, because it looks for contexts that
 * could not be moved before. No effect if the table has `stays_on_loop`.
 */
void weir__handler_offload(const weir_handler *handler, uint64_t blocks);

/* Any thread: counts functions that the handler calls and that run on other groups now (`blocked`
 * of its table). */
void weir__handler_count_moved(const weir_handler *handler, size_t count);

/* Any thread: true if the handler runs on other groups. *ret_moved is the number of contexts that
 * were moved from their loop, and of functions. */
bool weir__handler_offload_read(const weir_handler *handler, uint64_t *ret_moved);

/* Any thread: the group that a handler which is being added to the channel has to run on; NULL =
 * the loop. */
weir_group *weir__channel_offload_group(weir_channel *channel, const weir_handler *handler);

/* On the loop: the channel is registered, or its options have changed: has the mailbox call
 * weir__channel_offload, if that may be needed. */
void weir__channel_check_offload(weir_channel *channel);

/* On the loop, with no slot on the stack: moves the handlers that block, and those that wait for
 * the border. */
void weir__channel_offload(weir_channel *channel);

/* On the loop: a handler moves to another group. */
void weir__handler_count_crossing(const weir_handler *handler);

#endif
