/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File ranges. Transports send them.
 */
#include <weir/file_range.h>

#include <errno.h>
#include <stdio.h>

#include "base/log.h"
#include "base/memory.h"
#include "buffer/leak.h"
#include "os/descriptor.h"

struct weir_file_range {
    weir_msg msg;
    int64_t offset;
    int64_t length;
    int64_t sent;
    int descriptor;
    uint32_t flags;
    weir_file_range *origin; /* retained: the owner of the descriptor, if it is a share */
};

static void close_descriptor(int descriptor, uint32_t flags)
{
    char name[16];
    int err = (flags & WEIR_FILE_RANGE_CLOSE) != 0 ? weir__descriptor_close(descriptor) : 0;

    if (err == 0)
        return;
    (void)snprintf(name, sizeof(name), "%d", descriptor);
    weir__warn_limited("file_range", name, "close failed: %s", weir_error_text(err));
}

static int check(int descriptor, int64_t offset, int64_t length, uint32_t flags)
{
    if (descriptor < 0)
        return -EBADF;
    if (offset < 0 || length < 0 || length > INT64_MAX - offset)
        return -EINVAL;
    return (flags & ~WEIR_FILE_RANGE_CLOSE) == 0 ? 0 : -EINVAL;
}

int weir_file_range_create(int descriptor, int64_t offset, int64_t length, uint32_t flags,
                           weir_file_range **ret_range)
{
    weir_file_range *range = NULL;
    int err = check(descriptor, offset, length, flags);

    if (err == 0) {
        range = weir__zalloc(sizeof(*range));
        err = range != NULL ? 0 : -ENOMEM;
    }
    if (err < 0) {
        if (descriptor >= 0)
            close_descriptor(descriptor, flags);
        return err;
    }
    weir_msg_init(&range->msg, &weir_file_range_type);
    range->offset = offset;
    range->length = length;
    range->descriptor = descriptor;
    range->flags = flags;
    weir__leak_msg_created(&range->msg);
    *ret_range = range;
    return 0;
}

static void destroy(weir_msg *msg)
{
    weir_file_range *range = weir_file_range_of(msg);

    weir__leak_msg_destroyed(msg);
    close_descriptor(range->descriptor, range->flags);
    weir_file_range_release(range->origin);
    weir__free(range);
}

int weir_file_range_descriptor(const weir_file_range *range)
{
    return range->descriptor;
}

int64_t weir_file_range_offset(const weir_file_range *range)
{
    return range->offset;
}

int64_t weir_file_range_length(const weir_file_range *range)
{
    return range->length;
}

int64_t weir_file_range_position(const weir_file_range *range)
{
    return range->offset + range->sent;
}

int64_t weir_file_range_sent(const weir_file_range *range)
{
    return range->sent;
}

int64_t weir_file_range_remaining(const weir_file_range *range)
{
    return range->length - range->sent;
}

int weir_file_range_advance(weir_file_range *range, int64_t length)
{
    if (length < 0)
        return -EINVAL;
    if (length > weir_file_range_remaining(range))
        return WEIR_EBOUNDS;
    range->sent += length;
    return 0;
}

static size_t size(const weir_msg *msg)
{
    (void)msg;
    return 0;
}

static void touch(weir_msg *msg, const char *where)
{
    weir__leak_msg_touch(msg, where);
}

int weir_file_range_slice(weir_file_range *range, int64_t offset, int64_t length,
                          weir_file_range **ret_slice)
{
    weir_file_range *slice;
    int err = weir_file_range_create(range->descriptor, offset, length, 0, &slice);

    if (err < 0)
        return err;
    slice->origin = weir_file_range_retain(range->origin != NULL ? range->origin : range);
    *ret_slice = slice;
    return 0;
}

static int share(weir_msg *msg, weir_msg **ret_share)
{
    weir_file_range *range = weir_file_range_of(msg), *rest;
    int err = weir_file_range_slice(range, weir_file_range_position(range),
                                    weir_file_range_remaining(range), &rest);

    if (err == 0)
        *ret_share = weir_file_range_msg(rest);
    return err;
}

const weir_msg_type weir_file_range_type = {
    .name = "file_range",
    .destroy = destroy,
    .size = size,
    .touch = touch,
    .share = share,
};
