/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/http/http1_server.h"

void weir__http1_server_start_timer(weir_ctx *ctx, weir__http1_server *server)
{
    (void)ctx;
    (void)server;
}

void weir__http1_server_watch(weir_ctx *ctx, weir__http1_server *server)
{
    (void)ctx;
    (void)server;
}
