/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The capture handler. Reads are packets from the remote side, writes from the local side. Sequence
 * numbers include skipped packets. Each datagram is a packet of its own, without a connection
 * (pcap_datagram.c).
 */
#include <errno.h>
#include <string.h>

#include <weir/channel.h>
#include <weir/datagram.h>
#include <weir/file_range.h>
#include <weir/handler.h>
#include <weir/pipeline.h>

#include "channel/channel.h"
#include "channel/transport.h"
#include "handler/msg_bytes.h"
#include "handler/pcap.h"
#include "handler/tcp_packet.h"

struct capture {
    weir_pcap *pcap;
    weir__tcp_flow flow;
    bool is_datagram;     /* a datagram channel, without a flow */
    bool has_flow;        /* the flow is initialized */
    bool close_requested; /* by this side */
    bool is_finished;     /* no further packets */
    bool has_fin[2];
};

static struct capture *state_of(weir_ctx *ctx)
{
    return weir_ctx_state(ctx);
}

static int init(void *state, const void *options)
{
    weir_pcap *pcap = (weir_pcap *)(uintptr_t)options; /* borrowed from weir_pcap_add */

    ((struct capture *)state)->pcap = weir_pcap_retain(pcap);
    return 0;
}

static void deinit(void *state)
{
    weir_pcap_release(((struct capture *)state)->pcap);
}

/* ---- packets ---- */

static void skip_bytes(struct capture *capture, unsigned from, size_t length)
{
    capture->flow.endpoints[from].next_seq += (uint32_t)length;
}

static void add_control(struct capture *capture, unsigned from, unsigned flags)
{
    size_t header_size = weir__tcp_packet_header_size(&capture->flow);
    uint8_t *packet = weir__pcap_begin(capture->pcap, header_size);

    if (packet == NULL) {
        skip_bytes(capture, from, (flags & (WEIR__TCP_SYN | WEIR__TCP_FIN)) != 0);
        return;
    }
    weir__tcp_packet_write(&capture->flow, from, flags, packet, 0);
    weir__pcap_end(capture->pcap);
}

static void add_segment(struct capture *capture, unsigned from, weir_msg *msg, size_t offset,
                        size_t length)
{
    size_t header_size = weir__tcp_packet_header_size(&capture->flow);
    uint8_t *packet = weir__pcap_begin(capture->pcap, header_size + length);

    if (packet == NULL) {
        skip_bytes(capture, from, length);
        return;
    }
    weir__msg_bytes_copy(msg, offset, packet + header_size, length);
    weir__tcp_packet_write(&capture->flow, from, WEIR__TCP_PSH | WEIR__TCP_ACK, packet, length);
    weir__pcap_end(capture->pcap);
}

static void add_bytes(struct capture *capture, unsigned from, weir_msg *msg)
{
    size_t length = weir__msg_bytes_length(msg), offset = 0;
    size_t max_payload = WEIR__IP_PACKET_MAX - weir__tcp_packet_header_size(&capture->flow);

    if (!capture->has_flow || capture->is_finished)
        return;
    if (weir_file_range_of(msg) != NULL)
        skip_bytes(capture, from, (size_t)weir_file_range_remaining(weir_file_range_of(msg)));
    for (; offset < length; offset += max_payload)
        add_segment(capture, from, msg, offset,
                    length - offset < max_payload ? length - offset : max_payload);
}

static void add_msg(weir_ctx *ctx, unsigned from, weir_msg *msg)
{
    struct capture *capture = state_of(ctx);

    if (capture->is_datagram || weir_datagram_of(msg) != NULL)
        weir__pcap_add_datagram(capture->pcap, weir_ctx_channel(ctx), from, msg);
    else
        add_bytes(capture, from, msg);
}

/* ---- a connection ---- */

static bool set_endpoint(struct capture *capture, unsigned end, const weir_address *address)
{
    capture->flow.endpoints[end].host = weir__ip_of(address);
    capture->flow.endpoints[end].port = weir_address_port(address);
    return capture->flow.endpoints[end].host.family != AF_UNSPEC;
}

static void set_placeholders(struct capture *capture, const weir_channel *channel)
{
    for (unsigned i = 0; i < 2; i++) {
        capture->flow.endpoints[i].host = weir__pcap_placeholder(i);
        capture->flow.endpoints[i].port = (uint16_t)weir_channel_id(channel);
    }
}

static void set_flow(weir_ctx *ctx)
{
    weir_channel *channel = weir_ctx_channel(ctx);
    struct capture *capture = state_of(ctx);
    weir_address local, remote;

    if (weir_channel_local_address(channel, &local) < 0 ||
        weir_channel_remote_address(channel, &remote) < 0 ||
        !set_endpoint(capture, WEIR__PCAP_LOCAL, &local) ||
        !set_endpoint(capture, WEIR__PCAP_REMOTE, &remote) ||
        capture->flow.endpoints[0].host.family != capture->flow.endpoints[1].host.family)
        set_placeholders(capture, channel);
    capture->has_flow = true;
}

static void add_handshake(weir_ctx *ctx)
{
    bool is_accepted = weir_channel_parent(weir_ctx_channel(ctx)) != NULL;
    unsigned initiator = is_accepted ? WEIR__PCAP_REMOTE : WEIR__PCAP_LOCAL;
    struct capture *capture = state_of(ctx);

    add_control(capture, initiator, WEIR__TCP_SYN);
    add_control(capture, !initiator, WEIR__TCP_SYN | WEIR__TCP_ACK);
    add_control(capture, initiator, WEIR__TCP_ACK);
}

/* The listeners of a connect may write before `active`. */
static void begin_flow(weir_ctx *ctx)
{
    const struct capture *capture = state_of(ctx);

    if (capture->has_flow || capture->is_datagram || !weir_channel_is_active(weir_ctx_channel(ctx)))
        return;
    set_flow(ctx);
    add_handshake(ctx);
}

static void add_fin(struct capture *capture, unsigned from)
{
    if (!capture->has_flow || capture->is_finished || capture->has_fin[from])
        return;
    capture->has_fin[from] = true;
    add_control(capture, from, WEIR__TCP_FIN | WEIR__TCP_ACK);
    if (capture->has_fin[!from])
        add_control(capture, !from, WEIR__TCP_ACK);
}

static void add_reset(struct capture *capture)
{
    if (capture->has_flow && !capture->is_finished)
        add_control(capture, WEIR__PCAP_REMOTE, WEIR__TCP_RST | WEIR__TCP_ACK);
    capture->is_finished = true;
}

/* ---- slots ---- */

/* A handler that is added to an active channel captures no handshake. */
static void on_added(weir_ctx *ctx)
{
    const weir_channel *channel = weir_ctx_channel(ctx);
    struct capture *capture = state_of(ctx);

    capture->is_datagram = channel->transport->connectionless;
    if (weir_channel_is_active(channel) && !capture->is_datagram)
        set_flow(ctx);
}

static void on_active(weir_ctx *ctx)
{
    begin_flow(ctx);
    weir_fire_active(ctx);
}

static void on_inactive(weir_ctx *ctx)
{
    struct capture *capture = state_of(ctx);
    unsigned first = capture->close_requested ? WEIR__PCAP_LOCAL : WEIR__PCAP_REMOTE;

    add_fin(capture, first);
    add_fin(capture, !first);
    capture->is_finished = true;
    weir__pcap_push(capture->pcap);
    weir_fire_inactive(ctx);
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    add_msg(ctx, WEIR__PCAP_REMOTE, msg);
    weir_fire_read(ctx, msg);
}

static void on_event(weir_ctx *ctx, weir_msg *event)
{
    begin_flow(ctx);
    if (event == weir_event_input_closed())
        add_fin(state_of(ctx), WEIR__PCAP_REMOTE);
    if (event == weir_event_output_closed())
        add_fin(state_of(ctx), WEIR__PCAP_LOCAL);
    weir_fire_event(ctx, event);
}

static void on_error(weir_ctx *ctx, int err, const char *detail)
{
    if (err == -ECONNRESET)
        add_reset(state_of(ctx));
    weir_fire_error(ctx, err, detail);
}

static void on_close(weir_ctx *ctx, weir_promise *done)
{
    state_of(ctx)->close_requested = true;
    weir_close(ctx, done);
}

static void on_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    begin_flow(ctx);
    add_msg(ctx, WEIR__PCAP_LOCAL, msg);
    weir_write(ctx, msg, done);
}

static const weir_handler handler = {
    .name = "pcap",
    .state_size = sizeof(struct capture),
    .init = init,
    .deinit = deinit,
    .added = on_added,
    .active = on_active,
    .inactive = on_inactive,
    .read = on_read,
    .event = on_event,
    .error = on_error,
    .close = on_close,
    .write = on_write,
};

int weir_pcap_add(weir_pipeline *pipeline, weir_pcap *pcap)
{
    return weir_pipeline_add_last(pipeline, &handler, pcap);
}
