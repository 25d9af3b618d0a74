/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "support/settings.h"
#include "support/tls.h"

/* For the initializer of a connection, which runs before connect_to returns. */
struct connecting {
    const struct settings *settings;
    weir_tls_context *tls;
    weir_init_fn *init;
    void *user_data;
};

static int init_with_tls(weir_channel *channel, void *user_data)
{
    const struct connecting *connecting = user_data;
    int err = tls_add_to(channel, connecting->tls, connecting->settings->host);

    return err ? err : connecting->init(channel, connecting->user_data);
}

int connect_to(const struct settings *settings, weir_group *group, weir_init_fn *init,
               void *user_data, weir_channel **ret_channel)
{
    struct connecting connecting = {.settings = settings, .init = init, .user_data = user_data};
    int err = tls_make_client(settings, &connecting.tls);

    if (!err)
        err = weir_client_connect_sync(
            WEIR_CLIENT_OPTIONS(.group = group, .address = settings->address, .init = init_with_tls,
                                .user_data = &connecting),
            ret_channel);
    if (!err)
        err = tls_await(settings, *ret_channel);
    tls_release(connecting.tls); /* the connection holds a reference */
    return err;
}
