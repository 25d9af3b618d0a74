/* SPDX-License-Identifier: Apache-2.0 */
#include "channel/last_sent.h"

#include <errno.h>

int weir__last_sent_watch(weir_channel *channel)
{
    if (weir__channel_extra_get(channel) == NULL)
        return -ENOMEM;
    if (!weir__channel_is(channel, WEIR__IS_WATCHED))
        atomic_fetch_or_explicit(&channel->state, WEIR__IS_WATCHED, memory_order_relaxed);
    return 0;
}

/* Relaxed, as all of these: the time guards no other memory. */
int64_t weir__last_sent_of_bytes(const weir_channel *channel)
{
    const weir__channel_extra *extra = weir__channel_extra_if_any(channel);

    return extra != NULL ? atomic_load_explicit(&extra->bytes_sent_at, memory_order_relaxed) : 0;
}

int64_t weir_channel_sent_at(weir_channel *channel)
{
    (void)weir__last_sent_watch(channel);
    if (weir__channel_is(channel, WEIR__IS_REGISTERED) && weir__channel_in_loop(channel) &&
        !weir__outbound_has_flushed(&channel->outbound))
        return weir__executor_now(weir__channel_executor(channel));
    return weir__last_sent_of_bytes(channel);
}

int64_t weir_channel_bytes_sent(weir_channel *channel)
{
    const weir__channel_extra *extra;

    if (weir__last_sent_watch(channel) < 0)
        return 0;
    extra = weir__channel_extra_if_any(channel);
    return atomic_load_explicit(&extra->bytes_sent, memory_order_relaxed);
}

int64_t weir__last_sent_of_messages(const weir_channel *channel)
{
    const weir__channel_extra *extra = weir__channel_extra_if_any(channel);

    return extra != NULL ? atomic_load_explicit(&extra->message_sent_at, memory_order_relaxed) : 0;
}

/* Only the loop writes, so that adding needs no locked instruction. */
void weir__last_sent_write_down(weir_channel *channel, size_t bytes, bool whole)
{
    weir__channel_extra *extra = weir__channel_extra_if_any(channel);
    int64_t now_ns = weir__executor_now(weir__channel_executor(channel)), before;

    if (extra == NULL)
        return; /* another thread has just allocated it */
    before = atomic_load_explicit(&extra->bytes_sent, memory_order_relaxed);
    atomic_store_explicit(&extra->bytes_sent, before + (int64_t)bytes, memory_order_relaxed);
    atomic_store_explicit(&extra->bytes_sent_at, now_ns, memory_order_relaxed);
    if (whole)
        atomic_store_explicit(&extra->message_sent_at, now_ns, memory_order_relaxed);
}
