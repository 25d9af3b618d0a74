/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of client options: one block, with the copy first and everything that it points to behind.
 */
#include <errno.h>
#include <stdalign.h>
#include <string.h>

#include <weir/address.h>

#include "base/memory.h"
#include "base/options.h"
#include "bootstrap/client.h"
#include "bootstrap/transport_for.h"

#define ADDRESSES_MAX 256

struct copy {
    weir_client_options client;
    weir_channel_options channel;
    alignas(max_align_t) char rest[];
};

int weir__client_options_read(const weir_client_options *given, weir_client_options *ret_options)
{
    weir_client_options options;
    int err = weir__options_read(&options, sizeof(options), given);

    if (err < 0)
        return err;
    if ((options.group != NULL) == (options.loop != NULL))
        return weir__options_reject("client", NULL, "exactly one of .group and .loop is required");
    if ((options.address != NULL) == (options.address_count > 0))
        return weir__options_reject("client", NULL,
                                    "exactly one of .address and .addresses is required");
    err =
        weir__options_check("client", NULL, WEIR__OPTION(&options, address_count, 0, ADDRESSES_MAX),
                            WEIR__OPTION_FROM(&options, attempt_delay_ns, WEIR_OFF));
    if (err < 0)
        return err;
    options.size = sizeof(options);
    *ret_options = options;
    return 0;
}

/* Rounds a size up, so that any type can follow. */
static size_t room(size_t size)
{
    return (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
}

static size_t text_size(const char *text)
{
    return text != NULL ? strlen(text) + 1 : 0;
}

/* Copies memory to `*rest`, and advances that. NULL stays NULL. */
static void *put(char **rest, const void *memory, size_t size)
{
    char *place = *rest;

    if (memory == NULL || size == 0)
        return NULL;
    memcpy(place, memory, size);
    *rest += room(size);
    return place;
}

static void fill(struct copy *copy)
{
    weir_client_options *client = &copy->client;
    weir_channel_options *channel = &copy->channel;
    char *rest = copy->rest;

    client->address = put(&rest, client->address, text_size(client->address));
    client->local_address = put(&rest, client->local_address, text_size(client->local_address));
    client->addresses =
        put(&rest, client->addresses, client->address_count * sizeof(*client->addresses));
    client->attributes =
        put(&rest, client->attributes, client->attribute_count * sizeof(*client->attributes));
    channel->socket_options = put(&rest, channel->socket_options,
                                  channel->socket_option_count * sizeof(*channel->socket_options));
    if (client->options != NULL)
        client->options = channel;
}

int weir__client_options_copy(const weir_client_options *options, weir_client_options **ret_copy)
{
    weir_channel_options channel;
    struct copy *copy;
    int err = weir__options_read(&channel, sizeof(channel), options->options);

    if (err < 0)
        return err;
    channel.size = sizeof(channel);
    copy = weir__alloc(sizeof(*copy) + room(text_size(options->address)) +
                       room(text_size(options->local_address)) +
                       room(options->address_count * sizeof(*options->addresses)) +
                       room(options->attribute_count * sizeof(*options->attributes)) +
                       room(channel.socket_option_count * sizeof(*channel.socket_options)));
    if (copy == NULL)
        return -ENOMEM;
    copy->client = *options;
    copy->channel = channel;
    fill(copy);
    *ret_copy = &copy->client;
    return 0;
}

void weir__client_options_retain(const weir_client_options *options)
{
    if (options->group != NULL)
        weir_group_retain(options->group);
    if (options->loop != NULL)
        weir_executor_retain(options->loop);
    if (options->resolver != NULL)
        weir_resolver_retain(options->resolver);
}

void weir__client_options_release(const weir_client_options *options)
{
    weir_resolver_release(options->resolver);
    weir_executor_release(options->loop);
    weir_group_release(options->group);
}
