/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop/owner.h - echo at the backend interface: owners of handles that send back what they receive,
 * and a LIFO of receive blocks, so that memory stays in the cache.
 */
#ifndef BENCH_LOOP_OWNER_H
#define BENCH_LOOP_OWNER_H

#include <stdlib.h>

#include "base/list.h"
#include "loop/io.h"
#include "support/bench.h"

/* ---- memory ---- */

/* The blocks of one size. A free one begins with the next. */
struct shelf {
    size_t size;
    void *top;
};

enum { SHELVES = 4 };

static __attribute__((noinline)) struct shelf *shelf_of(struct shelf *shelves, size_t size)
{
    struct shelf *shelf = shelves;

    while (shelf->size != size && shelf->size != 0)
        shelf++;
    bench_require(shelf < shelves + SHELVES - 1, "so many sizes of blocks");
    shelf->size = size;
    return shelf;
}

/* As the buffers of the raw servers are. */
static void *page_aligned(size_t size)
{
    void *base = aligned_alloc(4096, (size + 4095) / 4096 * 4096);

    bench_require(base != NULL, "allocating");
    return base;
}

static int block_take(void *arg, size_t size, weir__io_block *ret_block)
{
    struct shelf *shelf = arg;
    void *base;

    if (shelf->size != size)
        shelf = shelf_of(shelf, size);
    base = shelf->top;

    if (base != NULL)
        shelf->top = *(void **)base;
    else
        base = page_aligned(size);
    *ret_block = (weir__io_block){.base = base, .capacity = size, .cookie = shelf};
    return 0;
}

static void block_give(void *arg, const weir__io_block *block)
{
    struct shelf *shelf = block->cookie;

    (void)arg;
    *(void **)block->base = shelf->top;
    shelf->top = block->base;
}

/* Before the first handle of a loop; one loop alone can have it. */
static void use_hot_memory(weir__io *io)
{
    static struct shelf shelves[SHELVES];
    const weir__io_memory memory = {.alloc = block_take, .free = block_give, .arg = shelves};

    weir__io_set_memory(io, &memory);
}

/* ---- connections ---- */

enum { BLOCKS_MAX = 16 };

struct connection {
    weir__io_handle handle;
    int first, count; /* of the ring of blocks that are to be sent */
    size_t offset;    /* in the first */
    struct {
        weir__io_block block;
        size_t length;
    } blocks[BLOCKS_MAX];
};

static struct connection *connection_of(weir__io_handle *handle)
{
    return WEIR_CONTAINER_OF(handle, struct connection, handle);
}

static bool is_sending(const struct connection *self)
{
    return self->count > 0;
}

/* `count` more bytes of the first block were sent. */
static void note_sent(struct connection *self, size_t count)
{
    self->offset += count;
    if (self->offset < self->blocks[self->first].length)
        return;
    block_give(NULL, &self->blocks[self->first].block);
    self->first = (self->first + 1) % BLOCKS_MAX;
    self->offset = 0;
    if (self->count-- == BLOCKS_MAX)
        weir__io_receive_start(&self->handle, false);
}

/* Sends until nothing is left, or `sent` continues. */
static void send_blocks(struct connection *self)
{
    while (is_sending(self)) {
        const struct iovec rest = {
            .iov_base = (char *)self->blocks[self->first].block.base + self->offset,
            .iov_len = self->blocks[self->first].length - self->offset,
        };
        ssize_t sent = weir__io_send(&self->handle, &rest, 1);

        if (sent == WEIR__IO_LENT)
            return;
        if (sent < 0) {
            weir__io_close(&self->handle);
            return;
        }
        note_sent(self, (size_t)sent);
        if ((size_t)sent < rest.iov_len)
            return;
    }
}

/* Keeps a block of which `sent` bytes have gone. */
static void keep_block(struct connection *self, const weir__io_block *block, size_t length,
                       size_t sent)
{
    int last = (self->first + self->count++) % BLOCKS_MAX;

    self->blocks[last].block = *block;
    self->blocks[last].length = length;
    if (self->count == 1)
        self->offset = sent;
    if (self->count == BLOCKS_MAX)
        weir__io_receive_stop(&self->handle);
}

static void on_received(weir__io_handle *handle, const weir__io_block *block, size_t length)
{
    struct connection *self = connection_of(handle);
    const struct iovec all = {.iov_base = block->base, .iov_len = length};
    ssize_t sent = is_sending(self) ? 0 : weir__io_send(handle, &all, 1);

    if ((size_t)sent == length) {
        block_give(NULL, block);
    } else if (sent >= 0 || sent == WEIR__IO_LENT) {
        keep_block(self, block, length, sent > 0 ? (size_t)sent : 0);
    } else {
        block_give(NULL, block);
        weir__io_close(handle);
    }
}

static void on_sent(weir__io_handle *handle, ssize_t count)
{
    struct connection *self = connection_of(handle);

    if (count < 0) {
        weir__io_close(handle);
        return;
    }
    note_sent(self, (size_t)count);
    if (is_sending(self))
        send_blocks(self);
}

static void on_receive_ended(weir__io_handle *handle, int err)
{
    (void)err;
    weir__io_close(handle);
}

static void on_read_complete(weir__io_handle *handle)
{
    (void)handle;
}

static void on_failed(weir__io_handle *handle, int err)
{
    (void)err;
    weir__io_close(handle);
}

static void on_detached(weir__io_handle *handle)
{
    struct connection *self = connection_of(handle);

    for (; self->count > 0; self->count--, self->first = (self->first + 1) % BLOCKS_MAX)
        block_give(NULL, &self->blocks[self->first].block);
    free(self);
}

static void connection_open(weir__io *io, int descriptor)
{
    static const weir__io_owner owner = {
        .received = on_received,
        .sent = on_sent,
        .receive_ended = on_receive_ended,
        .read_complete = on_read_complete,
        .failed = on_failed,
        .detached = on_detached,
    };
    struct connection *self = calloc(1, sizeof(*self));

    bench_require(self != NULL, "allocating");
    weir__io_handle_init(&self->handle, descriptor, &owner);
    bench_require(weir__io_attach(io, &self->handle) == 0, "weir__io_attach");
    weir__io_receive_start(&self->handle, false);
}

#endif
