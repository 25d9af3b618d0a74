/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS-terminating proxy: TLS to its clients, plain TCP to one upstream, which receives the client's
 * address and the parameters of its TLS connection by the PROXY protocol, version 2.
 *     tls-proxy --upstream ADDRESS:PORT [--port 8443] [--cert FILE] [--key FILE]
 *               [--client-ca FILE] [--io auto|epoll|uring|poll] [--threads N] [--boss-threads N]
 *
 * With --client-ca clients need a certificate of that authority. proxy_header.c builds the header,
 * support/relay.c relays.
 */
#include <stdio.h>
#include <stdlib.h>
#include <weir/tls.h>
#include <weir/weir.h>

#include "proxy_header.h"
#include "support/relay.h"
#include "support/settings.h"

struct proxy {
    weir_tls_context *tls;
    char *upstream;
};

/* doc:begin context */
static int create_context(const struct settings *settings, const char *client_ca,
                          weir_tls_context **ret_tls)
{
    bool has_certificate = settings->cert != NULL || settings->key != NULL;

    return weir_tls_server_create(
        WEIR_TLS_CONTEXT_OPTIONS(.certificate_file = settings->cert, .key_file = settings->key,
                                 .self_signed_for = has_certificate ? NULL : "localhost",
                                 .ca_file = client_ca,
                                 .verify = client_ca != NULL ? WEIR_TLS_VERIFY_REQUIRED
                                                             : WEIR_TLS_VERIFY_NONE),
        ret_tls);
}
/* doc:end */

/* doc:begin upstream */
static int init_back(weir_channel *back, void *front)
{
    weir_proxy_header *header;
    int err = proxy_header_create(front, &header);

    if (err)
        return err;
    err = weir_proxy_sender_add(weir_channel_pipeline(back), header);
    weir_proxy_header_release(header);
    return err ? err : relay_init_back(back, front);
}

static int connect_upstream(weir_channel *front, weir_init_fn *init, void *upstream,
                            weir_promise **ret_connecting)
{
    (void)init; /* relay_init_back */
    return weir_client_connect(WEIR_CLIENT_OPTIONS(.loop = weir_channel_executor(front),
                                                   .address = upstream, .init = init_back,
                                                   .user_data = front, .options = RELAY_OPTIONS),
                               ret_connecting);
}
/* doc:end */

/* doc:begin front */
static void on_event(weir_ctx *ctx, weir_msg *event)
{
    const weir_tls_handshake *handshake = weir_tls_handshake_of(event);
    struct proxy *const *proxy = weir_ctx_state(ctx);
    bool is_complete = handshake != NULL && weir_tls_handshake_result(handshake) == 0;

    if (is_complete &&
        relay_init_with(weir_ctx_channel(ctx), connect_upstream, (*proxy)->upstream) < 0)
        weir_close(ctx, NULL);
    weir_fire_event(ctx, event);
    if (is_complete)
        weir_ctx_remove(ctx);
}

static int init_waiter(void *state, const void *options)
{
    *(struct proxy **)state = *(struct proxy *const *)options;
    return 0;
}

static const weir_handler waiter = {
    .name = "waiter",
    .state_size = sizeof(struct proxy *),
    .init = init_waiter,
    .event = on_event,
};

static int init_front(weir_channel *channel, void *user_data)
{
    struct proxy *proxy = user_data;
    weir_pipeline *pipeline = weir_channel_pipeline(channel);
    int err = weir_tls_add(pipeline, proxy->tls);

    return err ? err : weir_pipeline_add_last(pipeline, &waiter, &proxy);
}
/* doc:end */

static int run(const struct settings *settings, struct proxy *proxy)
{
    weir_group *boss = NULL, *workers = NULL;
    weir_server *server = NULL;
    int err = settings_make_groups(settings, &boss, &workers);

    if (!err)
        err = weir_server_start(
            WEIR_SERVER_OPTIONS(.boss = boss, .workers = workers, .address = settings->address,
                                .acceptors = settings->boss_threads, .init_child = init_front,
                                .user_data = proxy, .child_options = RELAY_OPTIONS),
            &server);
    if (!err) {
        print_address(server);
        err = weir_server_run(server);
    }
    if (err)
        fprintf(stderr, "tls-proxy: %s\n", weir_error_text(err));
    weir_server_release(server);
    weir_group_release(workers);
    weir_group_release(boss);
    return err;
}

int main(int argc, char **argv)
{
    struct proxy proxy = {.upstream = settings_take(&argc, argv, "--upstream")};
    const char *client_ca = settings_take(&argc, argv, "--client-ca");
    struct settings settings = settings_read_tls(argc, argv, "0.0.0.0", 8443);
    int err;

    if (proxy.upstream == NULL) {
        fprintf(stderr, "tls-proxy: --upstream ADDRESS:PORT is missing\n");
        return 2;
    }
    err = create_context(&settings, client_ca, &proxy.tls); /* a failure has been logged */
    if (!err)
        err = run(&settings, &proxy);
    weir_tls_context_release(proxy.tls);
    return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
