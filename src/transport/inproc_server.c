/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In-process listeners: each has a name and an accept queue (inproc_name.h).
 */
#include <weir/transport.h>

#include <errno.h>

#include <weir/error.h>

#include "transport/inproc.h"
#include "transport/inproc_name.h"

struct server {
    weir_channel channel; /* first */
    weir__config *child_config;
    weir__inproc_name *name; /* NULL = not bound */
    weir__accept_queue queue;
    bool is_attached;
    bool is_active;
    bool reads;
    bool reads_once;
    bool is_accepting; /* on the stack */
};

static struct server *server_of(const weir_channel *channel)
{
    return WEIR_CONTAINER_OF((weir_channel *)(uintptr_t)channel, struct server, channel);
}

/* ---- on a loop ---- */

static int server_attach(weir_channel *channel)
{
    struct server *self = server_of(channel);

    self->is_attached = true;
    weir__accept_queue_attach(&self->queue, channel);
    return 0;
}

static bool server_detach(weir_channel *channel)
{
    struct server *self = server_of(channel);

    self->is_attached = false;
    weir__accept_queue_attach(&self->queue, NULL);
    return true;
}

static bool server_is_active(const weir_channel *channel)
{
    return server_of(channel)->is_active;
}

static int server_bind(weir_channel *channel, const weir_address *local)
{
    struct server *self = server_of(channel);
    weir__inproc_name *name;
    int err;

    self->queue.backlog = weir__channel_options(channel)->backlog;
    err = weir__inproc_name_claim(local, &self->queue, &name);
    if (err < 0)
        return err;
    weir__channel_lock(channel); /* other threads may read the address */
    self->name = name;
    weir__channel_unlock(channel);
    self->is_active = true;
    return 0;
}

static void refuse(weir__inproc_link *link)
{
    weir__inproc_notify(weir__inproc_link_close(link, WEIR__SERVER_SIDE));
    weir__inproc_link_release(link);
}

static bool server_close(weir_channel *channel)
{
    struct server *self = server_of(channel);
    weir__inproc_link *link;

    self->is_attached = false;
    self->is_active = false;
    self->reads = false;
    weir__accept_queue_attach(&self->queue, NULL);
    if (self->name != NULL)
        weir__inproc_name_unclaim(self->name);
    while ((link = weir__accept_queue_take(&self->queue)) != NULL)
        refuse(link);
    return true;
}

static void server_destroy(weir_channel *channel)
{
    struct server *self = server_of(channel);

    weir__inproc_name_release(self->name);
    weir__config_release(self->child_config);
}

static int server_local_address(weir_channel *channel, weir_address *ret_address)
{
    const struct server *self = server_of(channel);

    if (self->name == NULL)
        return -ENOTCONN;
    *ret_address = self->name->address;
    return 0;
}

/* ---- accepting ---- */

/* Accepts now if there is a link, or when one arrives. */
static void expect(struct server *self)
{
    if (self->is_attached && self->reads && !self->is_accepting &&
        !weir__accept_queue_wait(&self->queue))
        weir__channel_defer(&self->channel, WEIR__DEFERRED_TRANSPORT);
}

static void server_read_start(weir_channel *channel, bool once)
{
    struct server *self = server_of(channel);

    self->reads = true;
    self->reads_once = once;
    expect(self);
}

static void server_read_stop(weir_channel *channel)
{
    server_of(channel)->reads = false;
}

/* The next channel, or NULL. Skips clients that have closed meanwhile. */
static weir_channel *next_channel(struct server *self)
{
    weir_channel *child;
    weir__inproc_link *link;
    int err;

    while ((link = weir__accept_queue_take(&self->queue)) != NULL) {
        if (weir__inproc_link_is_gone(link, WEIR__CLIENT_SIDE)) {
            weir__inproc_link_release(link);
            continue;
        }
        err = weir__inproc_accept(&self->channel, self->child_config, link, &child);
        if (err == 0)
            return child;
        refuse(link);
        weir__channel_nonfatal_error(&self->channel, err, "cannot accept a connection");
    }
    return NULL;
}

static void accept_channels(struct server *self)
{
    int limit = weir__channel_options(&self->channel)->reads_per_turn;
    weir_channel *child;
    bool notified = false;

    while (self->reads && limit-- > 0 && (child = next_channel(self)) != NULL) {
        self->reads = !self->reads_once;
        notified = true;
        if (!weir__channel_received(&self->channel, weir__channel_msg(child)))
            break;
    }
    if (notified)
        weir__channel_read_complete(&self->channel);
}

static void server_deferred(weir_channel *channel)
{
    struct server *self = server_of(channel);

    if (!self->is_attached || !self->reads || self->is_accepting)
        return;
    self->is_accepting = true;
    accept_channels(self);
    self->is_accepting = false;
    expect(self);
}

/* ---- creation ---- */

static const weir__transport transport = {
    .name = "inproc-server",
    .stats = WEIR__STATS_INPROC,
    .size = sizeof(struct server),
    .accepts = true,
    .suits = weir__inproc_suits,
    .attach = server_attach,
    .detach = server_detach,
    .is_active = server_is_active,
    .bind = server_bind,
    .close = server_close,
    .read_start = server_read_start,
    .read_stop = server_read_stop,
    .deferred = server_deferred,
    .local_address = server_local_address,
    .destroy = server_destroy,
};

int weir_inproc_create_server(const weir_channel_options *options,
                              const weir_channel_options *child_options, weir_channel **ret_channel)
{
    weir__config *config = NULL, *child_config = NULL;
    int err = weir__config_create(options, &config);

    if (err == 0)
        err = weir__config_create(child_options, &child_config);
    if (err == 0)
        err = weir__channel_create(&transport, config, NULL, ret_channel);
    weir__config_release(config);
    if (err < 0) {
        weir__config_release(child_config);
        return err;
    }
    server_of(*ret_channel)->child_config = child_config;
    weir__accept_queue_init(&server_of(*ret_channel)->queue, 0);
    return 0;
}
