/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ending a connection in the middle of a message.
 */
#ifndef WEIR_PROTOCOL_HTTP_RESET_H
#define WEIR_PROTOCOL_HTTP_RESET_H

#include <weir/channel.h>

/* Makes the end of a connection a reset, even if everything written has been
 * sent: a message that ends with the connection must not look complete. Any thread. */
void weir__http_reset_on_close(weir_channel *channel);

/* Resets a connection now. Any thread. */
void weir__http_reset(weir_channel *channel);

#endif
