/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same with TLS: it fails unless a server's context can be made.
 */
#include <stdio.h>

#include <weir/tls.h>

int main(void)
{
    weir_tls_context *context;
    int err =
        weir_tls_server_create(WEIR_TLS_CONTEXT_OPTIONS(.self_signed_for = "localhost"), &context);

    if (err < 0) {
        printf("no context: %s\n", weir_tls_reason());
        return 1;
    }
    weir_tls_context_release(context);
    return 0;
}
