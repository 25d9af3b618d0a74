/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The place of tls.c where there is no libweir-tls.
 */
#include <errno.h>
#include <stdio.h>

#include "support/tls.h"

static int refuse(const struct settings *settings)
{
    if (!settings->tls)
        return 0;
    fprintf(stderr, "%s: built without TLS\n", settings->program);
    return -ENOTSUP;
}

int tls_make_server(const struct settings *settings, weir_tls_context **ret_tls)
{
    (void)ret_tls;
    return refuse(settings);
}

int tls_make_client(const struct settings *settings, weir_tls_context **ret_tls)
{
    (void)ret_tls;
    return refuse(settings);
}

void tls_release(weir_tls_context *tls)
{
    (void)tls;
}

int tls_add(weir_pipeline *pipeline, weir_tls_context *tls)
{
    (void)pipeline;
    (void)tls;
    return 0;
}

int tls_add_client(weir_pipeline *pipeline, weir_tls_context *tls, const char *host)
{
    (void)pipeline;
    (void)tls;
    (void)host;
    return -ENOTSUP;
}

bool tls_is_available(void)
{
    return false;
}

bool tls_is_open(weir_msg *event)
{
    (void)event;
    return false;
}

int tls_add_to(weir_channel *channel, weir_tls_context *tls, const char *host)
{
    (void)channel;
    (void)tls;
    (void)host;
    return 0;
}

int tls_await(const struct settings *settings, weir_channel *channel)
{
    (void)settings;
    (void)channel;
    return 0;
}
