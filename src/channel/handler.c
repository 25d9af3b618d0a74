/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slots of a table as a mask.
 */
#include <weir/handler.h>

#include "channel/ctx.h"

static uint32_t mask_of_in(const weir_handler *handler)
{
    return (handler->registered != NULL ? WEIR__REGISTERED : 0u) |
           (handler->unregistered != NULL ? WEIR__UNREGISTERED : 0u) |
           (handler->active != NULL ? WEIR__ACTIVE : 0u) |
           (handler->inactive != NULL ? WEIR__INACTIVE : 0u) |
           (handler->read != NULL ? WEIR__READ : 0u) |
           (handler->read_complete != NULL ? WEIR__READ_COMPLETE : 0u) |
           (handler->event != NULL ? WEIR__EVENT : 0u) |
           (handler->writability != NULL ? WEIR__WRITABILITY : 0u) |
           (handler->error != NULL ? WEIR__ERROR : 0u) |
           (handler->draining != NULL ? WEIR__DRAINING : 0u);
}

static uint32_t mask_of_out(const weir_handler *handler)
{
    return (handler->bind != NULL ? WEIR__BIND : 0u) |
           (handler->connect != NULL ? WEIR__CONNECT : 0u) |
           (handler->disconnect != NULL ? WEIR__DISCONNECT : 0u) |
           (handler->close != NULL ? WEIR__CLOSE : 0u) |
           (handler->deregister != NULL ? WEIR__DEREGISTER : 0u) |
           (handler->request_read != NULL ? WEIR__REQUEST_READ : 0u) |
           (handler->write != NULL ? WEIR__WRITE : 0u) |
           (handler->flush != NULL ? WEIR__FLUSH : 0u) |
           (handler->shutdown_output != NULL ? WEIR__SHUTDOWN_OUTPUT : 0u);
}

uint32_t weir__handler_mask(const weir_handler *handler)
{
    return mask_of_in(handler) | mask_of_out(handler);
}
