/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/weir.h - all of weir. Include the single headers instead where compile time matters.
 */
#ifndef WEIR_WEIR_H
#define WEIR_WEIR_H

#include <weir/address.h>
#include <weir/addresses.h>
#include <weir/adopt.h>
#include <weir/attribute.h>
#include <weir/base.h>
#include <weir/buf.h>
#include <weir/bytes.h>
#include <weir/channel.h>
#include <weir/channel_group.h>
#include <weir/channel_stats.h>
#include <weir/child.h>
#include <weir/chooser.h>
#include <weir/client.h>
#include <weir/client_pool.h>
#include <weir/client_pools.h>
#include <weir/clock.h>
#include <weir/combiner.h>
#include <weir/composite.h>
#include <weir/ctx.h>
#include <weir/datagram.h>
#include <weir/decoder.h>
#include <weir/delimited.h>
#include <weir/descriptors.h>
#include <weir/embedded.h>
#include <weir/encoder.h>
#include <weir/error.h>
#include <weir/events.h>
#include <weir/executor.h>
#include <weir/fd_watch.h>
#include <weir/file_range.h>
#include <weir/group.h>
#include <weir/handler.h>
#include <weir/histogram.h>
#include <weir/idle.h>
#include <weir/inproc.h>
#include <weir/leak.h>
#include <weir/length_field.h>
#include <weir/length_prepender.h>
#include <weir/lines.h>
#include <weir/local.h>
#include <weir/log.h>
#include <weir/logging.h>
#include <weir/loop.h>
#include <weir/manual.h>
#include <weir/memory.h>
#include <weir/metric.h>
#include <weir/msg.h>
#include <weir/number.h>
#include <weir/pipeline.h>
#include <weir/pool.h>
#include <weir/promise.h>
#include <weir/read_timeout.h>
#include <weir/resolver.h>
#include <weir/restart.h>
#include <weir/schedule.h>
#include <weir/search.h>
#include <weir/server.h>
#include <weir/signals.h>
#include <weir/systemd.h>
#include <weir/task.h>
#include <weir/tcp.h>
#include <weir/text.h>
#include <weir/thread.h>
#include <weir/timer.h>
#include <weir/udp.h>
#include <weir/unix.h>
#include <weir/write_timeout.h>

#endif
