/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Receive memory: buffers.
 */
#include "transport/receive.h"
#include "base/no_stack_protector.h"

#include <string.h>

/* Up to this many bytes are copied out of a buffer of which they use less than a quarter. */
#define COPY_MAX 1024

WEIR__NO_STACK_PROTECTOR static int take(void *arg, size_t size, weir__io_block *ret_block)
{
    weir_buf *buf;
    int err = weir_buf_create(size, 0, &buf);

    (void)arg;
    if (err < 0)
        return err;
    *ret_block = (weir__io_block){
        .base = weir_buf_space(buf), .capacity = weir_buf_writable(buf), .cookie = buf};
    return 0;
}

static void give(void *arg, const weir__io_block *block)
{
    (void)arg;
    weir_buf_release(block->cookie);
}

void weir__receive_into_buffers(weir__io *io)
{
    if (io->memory.alloc != take)
        weir__io_set_memory(io, &(const weir__io_memory){.alloc = take, .free = give});
}

WEIR__NO_STACK_PROTECTOR weir_buf *weir__received_buf(const weir__io_block *block, size_t length)
{
    weir_buf *buf = block->cookie, *copy;

    (void)weir_buf_set_write_index(buf, length);
    if (length > COPY_MAX || length >= block->capacity / 4 ||
        weir_buf_create_from(block->base, length, &copy) < 0)
        return buf;
    weir_buf_release(buf);
    return copy;
}
