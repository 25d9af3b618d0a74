/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/http/reset.h"

void weir__http_reset_on_close(weir_channel *channel)
{
    weir_channel_options options;

    weir_channel_get_options(channel, &options);
    options.reset_on_close = true;
    (void)weir_channel_set_options(channel, &options); /* otherwise some clients see a normal end */
}

void weir__http_reset(weir_channel *channel)
{
    weir__http_reset_on_close(channel);
    weir_channel_abort(channel, NULL);
}
