/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/http/alpn.h"

#include <errno.h>

#include <weir/channel.h>
#include <weir/embedded.h>

int weir__http_alpn_check(const char *alpn,
                          int (*add_tls)(weir_pipeline *pipeline, const void *options),
                          const void *options)
{
    weir_embedded *probe;
    int err = weir_embedded_create(
        WEIR_EMBEDDED_OPTIONS(.channel = WEIR_CHANNEL_OPTIONS(.alpn = alpn), .connect_later = true),
        &probe);

    if (err < 0)
        return err;
    err = add_tls(weir_embedded_pipeline(probe), options);
    weir_embedded_release(probe);
    return err == -EPROTONOSUPPORT ? err : 0;
}
