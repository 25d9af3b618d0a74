/* SPDX-License-Identifier: Apache-2.0 */
#include "announce.h"

/* doc:begin header */
static int make_header(int version, weir_channel *client, weir_proxy_header **ret_header)
{
    weir_address source, destination;
    int err;

    if (client == NULL) /* version 1 has no LOCAL: "PROXY UNKNOWN" */
        return weir_proxy_header_create(
            WEIR_PROXY_HEADER_OPTIONS(.version = version, .is_local = version == ANNOUNCE_V2),
            ret_header);
    err = weir_channel_remote_address(client, &source);
    if (!err)
        err = weir_channel_local_address(client, &destination);
    if (!err)
        err = weir_proxy_header_create(WEIR_PROXY_HEADER_OPTIONS(.version = version,
                                                                 .source = &source,
                                                                 .destination = &destination),
                                       ret_header);
    return err;
}

int announce(weir_pipeline *pipeline, int version, weir_channel *client)
{
    weir_proxy_header *header = NULL;
    int err = 0;

    if (version == ANNOUNCE_NOTHING)
        return 0;
    err = make_header(version, client, &header);
    if (!err)
        err = weir_proxy_sender_add(pipeline, header);
    weir_proxy_header_release(header);
    return err;
}
/* doc:end */
