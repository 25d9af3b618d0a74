/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages with descriptors. transport/fd_passing.c sends and receives them.
 */
#include "buffer/descriptors.h"

#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "buffer/leak.h"
#include "buffer/msg.h"
#include "os/descriptor.h"

#define TAKEN (-1)

struct weir_descriptors {
    weir_msg msg;
    weir_buf *bytes;
    weir_descriptors *origin; /* retained: the owner of the descriptors, if it is a share */
    bool sent;                /* the descriptors were sent, with the first bytes */
    size_t count;
    int numbers[];
};

/* ---- lifecycle ---- */

static void close_all(const int *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (numbers[i] >= 0)
            (void)weir__descriptor_close(numbers[i]);
    }
}

static int check(const weir_buf *bytes, const int *numbers, size_t count)
{
    if (count == 0 || count > WEIR_DESCRIPTORS_MAX ||
        (bytes != NULL && weir_buf_readable(bytes) == 0))
        return -EINVAL;
    for (size_t i = 0; i < count; i++) {
        if (numbers[i] < 0)
            return -EBADF;
    }
    return 0;
}

/* NULL without memory. */
static weir_descriptors *create(const int *numbers, size_t count)
{
    weir_descriptors *self = weir__zalloc(sizeof(*self) + count * sizeof(*numbers));

    if (self == NULL)
        return NULL;
    weir_msg_init(&self->msg, &weir_descriptors_type);
    self->count = count;
    memcpy(self->numbers, numbers, count * sizeof(*numbers));
    return self;
}

int weir_descriptors_create(weir_buf *bytes, const int *descriptors, size_t count,
                            weir_descriptors **ret_descriptors)
{
    int err = check(bytes, descriptors, count);
    weir_descriptors *self = err == 0 ? create(descriptors, count) : NULL;

    if (err == 0 && self == NULL)
        err = -ENOMEM;
    if (err == 0 && bytes == NULL)
        err = weir_buf_create_from("", 1, &bytes);
    if (err < 0) {
        weir__free(self);
        weir_buf_release(bytes);
        close_all(descriptors, count);
        return err;
    }
    self->bytes = bytes;
    weir__leak_msg_created(&self->msg);
    *ret_descriptors = self;
    return 0;
}

static void destroy(weir_msg *msg)
{
    weir_descriptors *self = weir_descriptors_of(msg);

    weir__leak_msg_destroyed(msg);
    weir_buf_release(self->bytes);
    if (self->origin == NULL)
        close_all(self->numbers, self->count);
    weir_descriptors_release(self->origin);
    weir__free(self);
}

/* ---- access ---- */

weir_buf *weir_descriptors_bytes(const weir_descriptors *descriptors)
{
    return descriptors->bytes;
}

size_t weir_descriptors_count(const weir_descriptors *descriptors)
{
    return descriptors->count;
}

int weir_descriptors_at(const weir_descriptors *descriptors, size_t index)
{
    if (index >= descriptors->count)
        return -EINVAL;
    return descriptors->numbers[index] == TAKEN ? -EBADF : descriptors->numbers[index];
}

/* A shared message does not give its descriptors away: other holders may still send them. */
int weir_descriptors_take(weir_descriptors *descriptors, size_t index)
{
    int number = weir_descriptors_at(descriptors, index);

    if (number >= 0 && (descriptors->origin != NULL || !weir__msg_is_sole(&descriptors->msg)))
        return -EBUSY;
    if (number >= 0)
        descriptors->numbers[index] = TAKEN;
    return number;
}

/* ---- sending ---- */

size_t weir__descriptors_to_send(const weir_descriptors *descriptors,
                                 int ret_numbers[WEIR_DESCRIPTORS_MAX])
{
    size_t count = 0;

    for (size_t i = 0; i < descriptors->count && !descriptors->sent; i++) {
        if (descriptors->numbers[i] != TAKEN)
            ret_numbers[count++] = descriptors->numbers[i];
    }
    return count;
}

void weir__descriptors_sent(weir_descriptors *descriptors)
{
    descriptors->sent = true;
}

/* ---- as a message ---- */

static size_t size(const weir_msg *msg)
{
    const weir_descriptors *self = (const weir_descriptors *)(const void *)msg;

    return weir_buf_readable(self->bytes);
}

static void touch(weir_msg *msg, const char *where)
{
    weir__leak_msg_touch(msg, where);
    weir_msg_touch(weir_buf_msg(weir_descriptors_of(msg)->bytes), where);
}

static int share(weir_msg *msg, weir_msg **ret_share)
{
    weir_descriptors *self = weir_descriptors_of(msg), *other;
    weir_buf *view;
    int err = weir_buf_read_only(self->bytes, &view);

    if (err < 0)
        return err;
    other = create(self->numbers, self->count);
    if (other == NULL) {
        weir_buf_release(view);
        return -ENOMEM;
    }
    other->bytes = view;
    other->sent = self->sent;
    other->origin = self->origin != NULL ? self->origin : self;
    weir_msg_retain(&other->origin->msg);
    weir__leak_msg_created(&other->msg);
    *ret_share = &other->msg;
    return 0;
}

const weir_msg_type weir_descriptors_type = {
    .name = "descriptors",
    .destroy = destroy,
    .size = size,
    .touch = touch,
    .share = share,
};
