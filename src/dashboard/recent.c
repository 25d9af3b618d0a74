/* SPDX-License-Identifier: Apache-2.0 */
/* The last chat messages and blocks, for new visitors. */
#include "dashboard/dashboard.h"

#include <string.h>

static void drop_oldest(weir__dashboard_recent *recent)
{
    weir_msg_release(weir_ws_message_msg(recent->messages[0]));
    recent->count--;
    memmove(recent->messages, recent->messages + 1, recent->count * sizeof(recent->messages[0]));
    memmove(recent->numbers, recent->numbers + 1, recent->count * sizeof(recent->numbers[0]));
}

void weir__dashboard_recent_add(weir__dashboard_recent *recent, uint64_t number,
                                weir_ws_message *message)
{
    size_t at = 0;

    (void)weir_msg_retain(weir_ws_message_msg(message));
    while (at < recent->count && recent->numbers[at] != number)
        at++;
    if (at < recent->count) {
        weir_msg_release(weir_ws_message_msg(recent->messages[at]));
    } else {
        if (recent->count == recent->max)
            drop_oldest(recent);
        at = recent->count++;
    }
    recent->messages[at] = message;
    recent->numbers[at] = number;
}

void weir__dashboard_recent_deinit(weir__dashboard_recent *recent)
{
    while (recent->count > 0)
        drop_oldest(recent);
}
