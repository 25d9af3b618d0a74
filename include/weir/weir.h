/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/weir.h - all of weir. Include the single headers instead where compile time matters.
 */
#ifndef WEIR_WEIR_H
#define WEIR_WEIR_H

#include <weir/address.h>
#include <weir/aggregator.h>
#include <weir/base.h>
#include <weir/buf.h>
#include <weir/channel.h>
#include <weir/channel_group.h>
#include <weir/chunks.h>
#include <weir/client.h>
#include <weir/clock.h>
#include <weir/codec.h>
#include <weir/composite.h>
#include <weir/connection_limits.h>
#include <weir/datagram.h>
#include <weir/descriptors.h>
#include <weir/diagnostics.h>
#include <weir/embedded.h>
#include <weir/error.h>
#include <weir/executor.h>
#include <weir/file_range.h>
#include <weir/file_writer.h>
#include <weir/flow_control.h>
#include <weir/frames.h>
#include <weir/group.h>
#include <weir/handler.h>
#include <weir/log.h>
#include <weir/loop.h>
#include <weir/manual.h>
#include <weir/memory.h>
#include <weir/metric.h>
#include <weir/msg.h>
#include <weir/options.h>
#include <weir/pipeline.h>
#include <weir/pool.h>
#include <weir/promise.h>
#include <weir/proxy_protocol.h>
#include <weir/random.h>
#include <weir/redis.h>
#include <weir/resolver.h>
#include <weir/resp.h>
#include <weir/restart.h>
#include <weir/server.h>
#include <weir/text_codecs.h>
#include <weir/thread.h>
#include <weir/timeouts.h>
#include <weir/timer.h>
#include <weir/traffic.h>
#include <weir/transport.h>
#include <weir/watch.h>
#include <weir/watchdog.h>

#endif
