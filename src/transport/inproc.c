/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In-process channels: the two ends of a link (inproc_link.h), each on its own executor.
 *
 * Connecting. The client puts a link into the listener's accept queue; the listener creates the
 * other end. When that is registered with its loop, the client is notified in a task: so the
 * pipeline of the accepted channel is initialized before the client's connect promise completes.
 *
 * Reading. Messages are delivered in a task of the channel. If both ends run on the same executor,
 * the flush delivers them itself, inside the writer's call, unless the reader is active further up
 * the stack, or DEPTH_MAX of such deliveries are nested. Queued buffers are merged up to the
 * channel's receive size.
 *
 * Writing. A message has been sent when it is on the link, and is no longer pending. A write to a
 * closed end fails, and nothing more happens until everything that the peer had sent is read: the
 * writer may still wait for it. Then the channel ends, as that of a socket does.
 *
 * Closing. Messages on the link stay there, so a close does not linger. If messages are left that
 * are not on the link, the other end sees -ECONNRESET after the last one. It sees the end in its
 * second task, which runs after the one that notifies our own handlers: so our `inactive` comes
 * first.
 */
#include <weir/transport.h>

#include <errno.h>
#include <stdio.h>

#include <weir/buf.h>
#include <weir/error.h>

#include "channel/channel_stats.h"
#include "transport/inproc.h"
#include "transport/inproc_name.h"
#include "transport/receive_size.h"

#define DEPTH_MAX 8
#define CAPACITY 65536 /* of a direction, unless receive_buffer is set */

struct inproc {
    weir_channel channel;    /* first */
    weir__inproc_link *link; /* NULL = not connected */
    weir__inproc_name *name; /* the local address; NULL = none */
    weir__side side;
    weir__receive_size receive_size;
    bool is_attached;
    bool is_connecting;
    bool is_active;
    bool reads;
    bool reads_once;
    bool is_pumping;         /* on the stack: delivering, */
    bool is_flushing;        /* or sending */
    bool waits_for_room;     /* for flushed messages */
    bool end_is_due;         /* the end of the peer was seen, */
    bool has_ended;          /* and reported, */
    bool hung_up;            /* or, while nothing is read, reported as a hang-up */
    weir__msg_queue taken;   /* from the link, not yet delivered */
    int64_t delivered_bytes; /* delivered, but not yet returned to the link as room */
};

static _Thread_local unsigned depth; /* of deliveries inside a flush */

static struct inproc *inproc_of(const weir_channel *channel)
{
    return WEIR_CONTAINER_OF((weir_channel *)(uintptr_t)channel, struct inproc, channel);
}

void weir__inproc_notify(weir_channel *channel)
{
    if (channel == NULL)
        return;
    weir__channel_defer(channel, WEIR__DEFERRED_TRANSPORT);
    weir_channel_release(channel);
}

bool weir__inproc_suits(const weir_channel *channel, const weir_executor *executor)
{
    (void)channel;
    (void)executor;
    return true;
}

/* ---- on a loop ---- */

static int64_t capacity_of(const weir_channel *channel)
{
    int bytes = weir__channel_options(channel)->receive_buffer;

    return bytes > 0 ? bytes : CAPACITY;
}

static int inproc_attach(weir_channel *channel)
{
    struct inproc *self = inproc_of(channel);

    self->is_attached = true;
    if (self->link == NULL)
        return 0;
    weir__inproc_notify(weir__inproc_link_attach(self->link, self->side, channel));
    if (self->waits_for_room)
        weir__channel_defer(channel, WEIR__DEFERRED_TRANSPORT);
    return 0;
}

/* Flushed messages are sent after the next attach, as if they waited for room. */
static bool inproc_detach(weir_channel *channel)
{
    struct inproc *self = inproc_of(channel);

    self->is_attached = false;
    if (self->link == NULL)
        return true;
    weir__inproc_link_detach(self->link, self->side);
    self->waits_for_room = true;
    return true;
}

static bool inproc_is_active(const weir_channel *channel)
{
    return inproc_of(channel)->is_active;
}

static bool inproc_close(weir_channel *channel)
{
    struct inproc *self = inproc_of(channel);

    self->is_attached = false;
    self->is_active = false;
    self->reads = false;
    weir__msg_queue_clear(&self->taken);
    if (self->name != NULL)
        weir__inproc_name_unclaim(self->name);
    if (self->link != NULL)
        weir__inproc_notify(weir__inproc_link_close(self->link, self->side));
    return true;
}

static void inproc_reset(weir_channel *channel)
{
    struct inproc *self = inproc_of(channel);

    if (self->link != NULL)
        weir__inproc_link_cut(self->link, self->side);
}

static void inproc_destroy(weir_channel *channel)
{
    weir__inproc_link_release(inproc_of(channel)->link);
    weir__inproc_name_release(inproc_of(channel)->name);
}

/* ---- addresses ---- */

/* The address of a client without a name. */
static int anonymous_address(uint64_t id, weir_address *ret_address)
{
    char text[WEIR_ADDRESS_TEXT_SIZE];

    (void)snprintf(text, sizeof(text), "inproc:#%llu", (unsigned long long)id);
    return weir_address_parse(text, ret_address);
}

static int address_of(const weir__inproc_link *link, weir__side side, weir_address *ret_address)
{
    if (link == NULL)
        return -ENOTCONN;
    if (link->names[side] == NULL)
        return anonymous_address(link->caller_id, ret_address);
    *ret_address = link->names[side]->address;
    return 0;
}

static int inproc_local_address(weir_channel *channel, weir_address *ret_address)
{
    const struct inproc *self = inproc_of(channel);

    if (self->name == NULL)
        return address_of(self->link, self->side, ret_address);
    *ret_address = self->name->address;
    return 0;
}

static int inproc_remote_address(weir_channel *channel, weir_address *ret_address)
{
    const struct inproc *self = inproc_of(channel);

    return address_of(self->link,
                      self->side == WEIR__CLIENT_SIDE ? WEIR__SERVER_SIDE : WEIR__CLIENT_SIDE,
                      ret_address);
}

static int inproc_bind(weir_channel *channel, const weir_address *local)
{
    struct inproc *self = inproc_of(channel);
    weir__inproc_name *name;
    int err = self->name != NULL || self->link != NULL ? -EINVAL : 0;

    if (err == 0)
        err = weir__inproc_name_claim(local, NULL, &name);
    if (err < 0)
        return err;
    weir__channel_lock(channel); /* other threads may read the address */
    self->name = name;
    weir__channel_unlock(channel);
    return 0;
}

/* ---- connecting ---- */

static int call(struct inproc *self, weir__inproc_link *link, const weir_address *remote)
{
    weir_channel *notified = NULL;
    int err;

    weir__inproc_link_set_capacity(link, WEIR__CLIENT_SIDE, capacity_of(&self->channel));
    (void)weir__inproc_link_attach(link, WEIR__CLIENT_SIDE, &self->channel);
    err = weir__inproc_name_connect(remote, link, &notified);
    if (err < 0)
        return err;
    weir__channel_lock(&self->channel);
    self->link = link;
    weir__channel_unlock(&self->channel);
    self->is_connecting = true;
    weir__inproc_notify(notified);
    return 0;
}

static int inproc_connect(weir_channel *channel, const weir_address *remote,
                          const weir_address *local)
{
    struct inproc *self = inproc_of(channel);
    weir__inproc_link *link;
    int err = local != NULL ? inproc_bind(channel, local) : 0;

    if (err == 0)
        err = weir__inproc_link_create(channel, self->name, &link);
    if (err < 0)
        return err;
    err = call(self, link, remote);
    if (err < 0)
        weir__inproc_link_release(link);
    return err;
}

static void look_at_connection(struct inproc *self)
{
    int state = weir__inproc_link_state(self->link);

    if (state == -EINPROGRESS)
        return;
    self->is_connecting = false;
    self->is_active = state == 0;
    weir__channel_connected(&self->channel, state);
}

/* ---- reading ---- */

static bool may_pump(const struct inproc *self)
{
    return self->is_attached && self->reads && !self->is_pumping;
}

/* Delivers now if there is something, or when it arrives. */
static void expect(struct inproc *self)
{
    if (!may_pump(self))
        return;
    if (!weir__msg_queue_is_empty(&self->taken) || !weir__inproc_link_wait(self->link, self->side))
        weir__channel_defer(&self->channel, WEIR__DEFERRED_TRANSPORT);
}

static void inproc_read_start(weir_channel *channel, bool once)
{
    struct inproc *self = inproc_of(channel);

    self->reads = true;
    self->reads_once = once;
    expect(self);
}

/* The end of a peer that has left before this channel had a loop was not notified. */
static void inproc_read_stop(weir_channel *channel)
{
    struct inproc *self = inproc_of(channel);

    self->reads = false;
    if (weir__channel_options(channel)->report_hangup && self->link != NULL &&
        weir__inproc_link_is_over(self->link, self->side))
        weir__channel_defer(channel, WEIR__DEFERRED_TRANSPORT);
}

/* The size of the next buffer; SIZE_MAX if there is none. */
static size_t next_readable(const struct inproc *self)
{
    weir_buf *buf = weir_buf_of(weir__msg_queue_peek(&self->taken));

    return buf != NULL ? weir_buf_readable(buf) : SIZE_MAX;
}

static weir_msg *pop(struct inproc *self)
{
    weir_msg *msg = weir__msg_queue_pop(&self->taken);

    if (msg != NULL)
        self->delivered_bytes += weir__outbound_cost(msg);
    return msg;
}

/* Merges the following buffers into one, up to `size` bytes, as far as memory allows. */
static weir_msg *coalesce(struct inproc *self, weir_buf *first, size_t size)
{
    weir_buf *all, *next;

    if (weir_buf_create(weir_buf_readable(first) + next_readable(self), size, &all) < 0)
        return weir_buf_msg(first);
    (void)weir_buf_write_bytes(all, weir_buf_bytes(first), weir_buf_readable(first));
    weir_buf_release(first);
    while (next_readable(self) <= size - weir_buf_readable(all)) {
        next = weir_buf_of(weir__msg_queue_peek(&self->taken));
        if (weir_buf_write_bytes(all, weir_buf_bytes(next), weir_buf_readable(next)) < 0)
            break;
        weir_msg_release(pop(self));
    }
    return weir_buf_msg(all);
}

/* The next message, or NULL. If a buffer does not fit, the receive size is too small. */
static weir_msg *next_message(struct inproc *self)
{
    const weir_channel_options *options = weir__channel_options(&self->channel);
    size_t size = weir__receive_size_size(&self->receive_size, options), length;
    weir_msg *msg = pop(self);
    weir_buf *buf = weir_buf_of(msg);

    if (buf == NULL)
        return msg;
    length = weir_buf_readable(buf);
    if (length < size && next_readable(self) <= size - length)
        msg = coalesce(self, buf, size);
    length = next_readable(self) < SIZE_MAX ? size : weir_msg_size(msg);
    (void)weir__receive_size_update(&self->receive_size, options, size, length);
    return msg;
}

static void make_room(struct inproc *self)
{
    int64_t bytes = self->delivered_bytes;

    self->delivered_bytes = 0;
    weir__inproc_notify(weir__inproc_link_make_room(self->link, self->side, bytes));
}

/* When the end is first seen, the peer's own handlers may not have been notified: waits one task.
 */
static bool waits_for_peer(struct inproc *self)
{
    if (self->end_is_due)
        return false;
    self->end_is_due = true;
    weir__channel_defer(&self->channel, WEIR__DEFERRED_TRANSPORT);
    return true;
}

static void report_end(struct inproc *self)
{
    if (waits_for_peer(self))
        return;
    self->has_ended = true;
    self->reads = false;
    weir__channel_input_ended(&self->channel,
                              weir__inproc_link_is_cut(self->link, self->side) ? -ECONNRESET : 0);
}

static void deliver_messages(struct inproc *self)
{
    int limit = weir__channel_options(&self->channel)->reads_per_turn;
    weir_msg *msg;

    while (self->reads && limit-- > 0 && (msg = next_message(self)) != NULL) {
        self->reads = !self->reads_once;
        weir__stats_message(&self->channel, WEIR__STAT_MESSAGES_RECEIVED, weir_msg_size(msg));
        if (!weir__channel_received(&self->channel, msg))
            break;
    }
    make_room(self);
    weir__channel_read_complete(&self->channel);
}

static void pump(struct inproc *self)
{
    bool is_over;

    if (!may_pump(self))
        return;
    is_over = weir__inproc_link_take(self->link, self->side, &self->taken);
    if (weir__msg_queue_is_empty(&self->taken)) {
        if (is_over)
            report_end(self);
        else
            expect(self);
        return;
    }
    self->is_pumping = true;
    deliver_messages(self);
    self->is_pumping = false;
    expect(self);
}

/* The end of the peer's stream is reported once, a reset always. */
static void look_at_peer(struct inproc *self)
{
    bool is_cut;

    if (!weir__channel_options(&self->channel)->report_hangup || !self->is_attached ||
        !self->is_active || self->reads || !weir__inproc_link_is_over(self->link, self->side) ||
        waits_for_peer(self))
        return;
    is_cut = weir__inproc_link_is_cut(self->link, self->side);
    if (is_cut || !(self->hung_up || self->has_ended))
        weir__channel_hung_up(&self->channel, is_cut ? -ECONNRESET : 0);
    self->hung_up = true;
}

static int inproc_shut_input(weir_channel *channel)
{
    struct inproc *self = inproc_of(channel);

    weir__msg_queue_clear(&self->taken);
    weir__inproc_notify(weir__inproc_link_shut_input(self->link, self->side));
    return 0;
}

/* ---- writing ---- */

/* Puts messages on the link while there is room. Gives the peer if it has to be notified. */
static int put_messages(struct inproc *self, weir_channel **ret_notified)
{
    weir_channel *channel = &self->channel, *notified;
    weir_msg *msg;
    int err;

    while ((msg = weir__outbound_current(channel)) != NULL) {
        err = weir__inproc_link_put(self->link, self->side, msg, &notified);
        if (*ret_notified == NULL)
            *ret_notified = notified;
        else
            weir_channel_release(notified); /* it is notified once for all */
        if (err == -EAGAIN || (err == -EPIPE && self->has_ended))
            return err;
        if (err == 0)
            (void)weir__outbound_take(channel);
        if (err == -EPIPE)
            weir__outbound_complete(channel, WEIR_ECLOSED, "the peer has closed");
        else
            weir__outbound_complete(channel, err, NULL);
    }
    return 0;
}

/* True if the peer is on the same executor and can read now. */
static bool may_deliver(const struct inproc *self, const weir_channel *peer)
{
    return depth < DEPTH_MAX &&
           weir__channel_executor(peer) == weir__channel_executor(&self->channel) &&
           may_pump(inproc_of(peer)) && !inproc_of(peer)->is_flushing;
}

/* Lets the peer read. True if it did so at once. Takes: peer. */
static bool deliver(const struct inproc *self, weir_channel *peer)
{
    if (peer == NULL || !may_deliver(self, peer)) {
        weir__inproc_notify(peer);
        return false;
    }
    depth++;
    pump(inproc_of(peer));
    depth--;
    weir_channel_release(peer);
    return true;
}

/* If the peer has read at once, there may be room for more. */
static int send_messages(struct inproc *self)
{
    weir_channel *notified;
    int err;

    for (int n = weir__channel_options(&self->channel)->writes_per_flush; n > 0; n--) {
        notified = NULL;
        err = put_messages(self, &notified);
        self->waits_for_room = err == -EAGAIN;
        if (!deliver(self, notified))
            return err == -EPIPE ? err : 0;
    }
    return 1;
}

static int inproc_flush(weir_channel *channel)
{
    struct inproc *self = inproc_of(channel);
    int result;

    self->is_flushing = true;
    result = send_messages(self);
    self->is_flushing = false;
    return result;
}

static int inproc_shut_output(weir_channel *channel)
{
    struct inproc *self = inproc_of(channel);

    weir__inproc_notify(weir__inproc_link_shut_output(self->link, self->side));
    return 0;
}

/* ---- notifications ---- */

static void look_at_room(struct inproc *self)
{
    if (!weir__inproc_link_has_room(self->link, self->side))
        return;
    self->waits_for_room = false;
    weir__channel_writable(&self->channel, 0);
}

/* Each of these may close the channel. */
static void inproc_deferred(weir_channel *channel)
{
    struct inproc *self = inproc_of(channel);

    if (self->is_attached && self->is_connecting)
        look_at_connection(self);
    if (self->is_attached && self->waits_for_room)
        look_at_room(self);
    pump(self);
    look_at_peer(self);
}

static int inproc_configure(weir_channel *channel)
{
    struct inproc *self = inproc_of(channel);

    self->receive_size = weir__receive_size_first(weir__channel_options(channel));
    if (self->link != NULL)
        weir__inproc_link_set_capacity(self->link, self->side, capacity_of(channel));
    return 0;
}

/* ---- creation ---- */

static const weir__transport transport = {
    .name = "inproc",
    .stats = WEIR__STATS_INPROC,
    .size = sizeof(struct inproc),
    .sends_buffers = true,
    .suits = weir__inproc_suits,
    .attach = inproc_attach,
    .detach = inproc_detach,
    .is_active = inproc_is_active,
    .bind = inproc_bind,
    .connect = inproc_connect,
    .close = inproc_close,
    .reset = inproc_reset,
    .shut_output = inproc_shut_output,
    .shut_input = inproc_shut_input,
    .read_start = inproc_read_start,
    .read_stop = inproc_read_stop,
    .flush = inproc_flush,
    .deferred = inproc_deferred,
    .local_address = inproc_local_address,
    .remote_address = inproc_remote_address,
    .configure = inproc_configure,
    .destroy = inproc_destroy,
};

static int create(weir__config *config, weir_channel *parent, weir_channel **ret_channel)
{
    int err = weir__channel_create(&transport, config, parent, ret_channel);

    if (err < 0)
        return err;
    weir__msg_queue_init(&inproc_of(*ret_channel)->taken);
    inproc_of(*ret_channel)->receive_size = weir__receive_size_first(&config->options);
    return 0;
}

int weir_inproc_create(const weir_channel_options *options, weir_channel **ret_channel)
{
    weir__config *config;
    int err = weir__config_create(options, &config);

    if (err < 0)
        return err;
    err = create(config, NULL, ret_channel);
    weir__config_release(config);
    return err;
}

int weir__inproc_accept(weir_channel *listener, weir__config *config, weir__inproc_link *link,
                        weir_channel **ret_channel)
{
    struct inproc *self;
    int err = create(config, listener, ret_channel);

    if (err < 0)
        return err;
    self = inproc_of(*ret_channel);
    self->link = link;
    self->side = WEIR__SERVER_SIDE;
    self->is_active = true;
    weir__inproc_link_set_capacity(link, WEIR__SERVER_SIDE, capacity_of(*ret_channel));
    return 0;
}
