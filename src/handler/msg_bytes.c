/* SPDX-License-Identifier: Apache-2.0 */
#include "handler/msg_bytes.h"

#include <string.h>

#include <weir/buf.h>
#include <weir/composite.h>
#include <weir/descriptors.h>
#include <weir/file_range.h>

static weir_buf *buf_in(weir_msg *msg)
{
    weir_descriptors *descriptors = weir_descriptors_of(msg);

    return descriptors != NULL ? weir_descriptors_bytes(descriptors) : weir_buf_of(msg);
}

bool weir__msg_has_bytes(weir_msg *msg)
{
    return buf_in(msg) != NULL || weir_composite_of(msg) != NULL;
}

size_t weir__msg_bytes_length(weir_msg *msg)
{
    if (weir_composite_of(msg) != NULL)
        return weir_composite_readable(weir_composite_of(msg));
    return buf_in(msg) != NULL ? weir_buf_readable(buf_in(msg)) : 0;
}

void weir__msg_bytes_copy(weir_msg *msg, size_t offset, uint8_t *to, size_t length)
{
    weir_composite *composite = weir_composite_of(msg);

    if (composite != NULL) /* cannot fail for readable bytes */
        (void)weir_composite_get_bytes(composite, weir_composite_read_index(composite) + offset, to,
                                       length);
    else
        memcpy(to, weir_buf_bytes(buf_in(msg)) + offset, length);
}

int64_t weir__msg_bytes_on_wire(weir_msg *msg)
{
    weir_file_range *range = weir_file_range_of(msg);

    return range != NULL ? weir_file_range_remaining(range) : (int64_t)weir_msg_size(msg);
}
