/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Receive memory: buffers.
 */
#include "transport/receive.h"

#include "base/no_stack_protector.h"
#include "buffer/leak.h"
#include "buffer/pool.h"

static inline weir__io_block block_of(weir_buf *buf)
{
    return (weir__io_block){.base = buf->data, .capacity = buf->capacity, .cookie = buf};
}

static __attribute__((noinline)) int take_slow(size_t size, weir__io_block *ret_block)
{
    weir_buf *buf;
    int err = weir_buf_create(size, 0, &buf);

    if (err == 0)
        *ret_block = block_of(buf);
    return err;
}

/* As take_slow, without a call. */
static int take(void *arg, size_t size, weir__io_block *ret_block)
{
    weir_buf *buf = weir__pool_pop(size);

    (void)arg;
    if (buf == NULL)
        return take_slow(size, ret_block);
    *ret_block = block_of(buf);
    weir__leak_created(buf);
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

/* Copies the bytes and releases the buffer; returns the buffer itself without memory. */
WEIR__NO_STACK_PROTECTOR weir_buf *weir__received_copy(weir_buf *buf)
{
    weir_buf *copy;

    if (weir_buf_create_from(weir_buf_bytes(buf), weir_buf_readable(buf), &copy) < 0)
        return buf;
    weir_buf_release(buf);
    return copy;
}
