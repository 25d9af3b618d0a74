/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Receives by a buffer ring: the kernel takes one of our buffers when data arrives, without a new
 * submission.
 *
 *     blocks    id 0 1 2 ...     the block behind each buffer
 *     empty     ids              whose block went to an owner: refilled at the end of the turn
 *     ring                       buffers available to the kernel
 *
 * A few bytes are copied into a block of their size, and the buffer is available again at once;
 * otherwise the owner gets the buffer's block.
 *
 * This is faster for small messages only. A message larger than a buffer is split, and the buffers
 * are not in the cache: so a handle is received from by poll until eight consecutive reads were
 * small, and again when it fills two buffers in one turn.
 */
#include <errno.h>
#include <string.h>

#include <weir/error.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/no_stack_protector.h"
#include "executor/executor.h"
#include "loop/uring.h"
#include "os/pages.h"

#define BUFFER_SIZE WEIR__IO_SMALL
#define BUFFER_COUNT WEIR__URING_BUFFERS_MAX
#define BUFFER_COUNT_MIN 64
#define BUFFER_GROUP 0

#define COPY_MAX 1024 /* more is not copied */

#define FULL_MAX 2 /* in a turn, then by poll */

uint8_t weir__uring_fresh_reads = WEIR__URING_SMALL_MIN;

struct weir__uring_buffers {
    struct io_uring_buf_ring *ring;
    size_t ring_size;
    weir__io_block blocks[BUFFER_COUNT];
    uint16_t empty[BUFFER_COUNT];
    unsigned empty_count;
    unsigned limit;  /* of buffers with a block: doubled when the kernel needs more */
    bool is_used;    /* no memory is allocated before the first receive */
    bool is_starved; /* the last refill found no memory */
};

/* ---- the buffers ---- */

static void free_buffers(weir__uring_buffers *buffers)
{
    if (buffers->ring != NULL)
        weir__pages_unmap(buffers->ring, buffers->ring_size);
    weir__free(buffers);
}

int weir__uring_buffers_open(weir__uring *self)
{
    weir__uring_buffers *buffers = weir__zalloc(sizeof(*buffers));
    struct io_uring_buf_reg registration;
    int err = -ENOMEM;

    if (buffers == NULL)
        return err;
    buffers->ring_size = weir__pages_round(BUFFER_COUNT * sizeof(struct io_uring_buf));
    buffers->ring = weir__pages_map(buffers->ring_size);
    if (buffers->ring == NULL)
        goto fail;
    registration = (struct io_uring_buf_reg){
        .ring_addr = (uintptr_t)buffers->ring,
        .ring_entries = BUFFER_COUNT,
        .bgid = BUFFER_GROUP,
    };
    err = weir__uring_system.register_buffers(&self->ring, &registration, 0);
    if (err < 0)
        goto fail;
    for (unsigned i = 0; i < BUFFER_COUNT; i++)
        buffers->empty[i] = (uint16_t)i;
    buffers->empty_count = BUFFER_COUNT;
    buffers->limit = BUFFER_COUNT_MIN;
    self->buffers = buffers;
    return 0;

fail:
    free_buffers(buffers);
    return err;
}

void weir__uring_buffers_close(weir__uring *self, bool in_use)
{
    weir__uring_buffers *buffers = self->buffers;
    const weir__io_memory *memory = &self->io.memory;

    if (buffers == NULL)
        return;
    self->buffers = NULL;
    if (in_use)
        weir__warn("loop", self->io.options.name,
                   "%u buffers are not freed: the kernel may still use them",
                   BUFFER_COUNT - buffers->empty_count);
    for (unsigned i = 0; i < BUFFER_COUNT && !in_use; i++) {
        if (buffers->blocks[i].base != NULL)
            memory->free(memory->arg, &buffers->blocks[i]);
    }
    free_buffers(buffers);
}

static inline void add_buffer(weir__uring_buffers *buffers, unsigned id, int at)
{
    io_uring_buf_ring_add(buffers->ring, buffers->blocks[id].base, BUFFER_SIZE, (unsigned short)id,
                          io_uring_buf_ring_mask(BUFFER_COUNT), at);
}

static bool is_full(const weir__uring_buffers *buffers)
{
    return BUFFER_COUNT - buffers->empty_count >= buffers->limit;
}

/* Allocates blocks for empty buffers up to the limit, as far as there is memory. */
static __attribute__((noinline)) void fill(weir__uring *self)
{
    weir__uring_buffers *buffers = self->buffers;
    const weir__io_memory *memory = &self->io.memory;
    int added = 0;

    buffers->is_starved = false;
    while (!is_full(buffers) && !buffers->is_starved) {
        uint16_t id = buffers->empty[buffers->empty_count - 1];

        if (memory->alloc(memory->arg, BUFFER_SIZE, &buffers->blocks[id]) < 0) {
            buffers->blocks[id].base = NULL;
            buffers->is_starved = true;
        } else {
            buffers->empty_count--;
            add_buffer(buffers, id, added++);
        }
    }
    io_uring_buf_ring_advance(buffers->ring, added);
}

void weir__uring_buffers_fill(weir__uring *self)
{
    weir__uring_buffers *buffers = self->buffers;

    if (buffers != NULL && buffers->is_used && !is_full(buffers))
        fill(self);
}

/* The kernel may use the buffer again. */
static inline void return_buffer(weir__uring_buffers *buffers, unsigned id)
{
    add_buffer(buffers, id, 0);
    io_uring_buf_ring_advance(buffers->ring, 1);
}

static __attribute__((noinline)) void take_block(weir__uring_buffers *buffers, unsigned id,
                                                 weir__io_block *ret_block)
{
    *ret_block = buffers->blocks[id];
    buffers->blocks[id].base = NULL;
    buffers->empty[buffers->empty_count++] = (uint16_t)id;
}

/* Takes the data of a completion out of its buffer: a copy of it, or the buffer's block. */
static inline void take_data(weir__uring *self, unsigned id, size_t length,
                             weir__io_block *ret_block)
{
    weir__uring_buffers *buffers = self->buffers;
    const weir__io_memory *memory = &self->io.memory;

    if (length > COPY_MAX || memory->alloc(memory->arg, length, ret_block) < 0) {
        take_block(buffers, id, ret_block);
        return;
    }
    memcpy(ret_block->base, buffers->blocks[id].base, length);
    return_buffer(buffers, id);
}

/* ---- receiving ---- */

static bool brings_much(const weir__io_handle *handle)
{
    return handle->small_reads < WEIR__URING_SMALL_MIN;
}

/* A packet larger than a buffer would be truncated. */
static bool fits_into_buffers(const weir__io_handle *handle)
{
    return !handle->exact_window && !handle->datagrams;
}

bool weir__uring_receives_by_ring(const weir__io_handle *handle)
{
    return weir__uring_of(handle->io)->buffers != NULL &&
           (handle->wants & (WEIR__IO_RECEIVE | WEIR__IO_ONCE)) == WEIR__IO_RECEIVE &&
           fits_into_buffers(handle) && !brings_much(handle);
}

void weir__uring_leave_ring(weir__io_handle *handle)
{
    if (handle->uring_mode == WEIR__URING_BY_RING)
        handle->uring_mode = WEIR__URING_LEAVING;
    weir__uring_cancel(handle, WEIR__URING_RECEIVE);
}

void weir__uring_settle(weir__io_handle *handle)
{
    if (handle->uring_mode != WEIR__URING_LEAVING || handle->undelivered != NULL ||
        handle->uring_is_reading || weir__uring_is_in_flight(handle, WEIR__URING_RECEIVE))
        return;
    handle->uring_mode = brings_much(handle) ? WEIR__URING_BULK : WEIR__URING_BY_POLL;
}

static void receive_by_poll(weir__io_handle *handle)
{
    handle->full_reads = 0;
    handle->small_reads = 0;
    weir__uring_leave_ring(handle);
}

/* Without a buffer the kernel would not even report the end of the stream; a poll does. */
void weir__uring_start_receive(weir__io_handle *handle)
{
    weir__uring *self = weir__uring_of(handle->io);
    struct io_uring_sqe *sqe;

    self->buffers->is_used = true;
    weir__uring_buffers_fill(self);
    if (self->buffers->empty_count == BUFFER_COUNT) {
        handle->small_reads = 0;
        handle->uring_mode = WEIR__URING_BULK;
        weir__uring_poll_readable(handle);
        return;
    }
    sqe = weir__uring_start(handle, WEIR__URING_RECEIVE);
    if (sqe == NULL)
        return;
    handle->uring_mode = WEIR__URING_BY_RING;
    weir__uring_check_mode(handle);
    io_uring_prep_recv_multishot(sqe, handle->descriptor, NULL, 0, 0);
    sqe->flags |= IOSQE_BUFFER_SELECT;
    sqe->buf_group = BUFFER_GROUP;
}

static void note_full_read(weir__io_handle *handle)
{
    weir__uring_enter_turn(handle, weir__uring_of(handle->io));
    if (++handle->full_reads == FULL_MAX && !brings_much(handle))
        receive_by_poll(handle);
}

/* The operation ended without data or end of stream. */
static void on_no_data(weir__io_handle *handle, int err)
{
    weir__uring *self = weir__uring_of(handle->io);

    if (err == -EAGAIN)
        receive_by_poll(handle); /* the kernel does not wait on this socket */
    if (err != -ENOBUFS)
        return;
    weir__uring_enter_turn(handle, self);
    if (handle->full_reads == 0 && is_full(self->buffers) && self->buffers->limit < BUFFER_COUNT)
        self->buffers->limit *= 2;
    weir__uring_buffers_fill(self);
    if (handle->full_reads > 0 || self->buffers->is_starved)
        receive_by_poll(handle); /* it has used them up itself, or there is no memory */
}

static bool is_no_data(int result)
{
    return result == -ECANCELED || result == -ENOBUFS || result == -EAGAIN || result == -EINTR;
}

/* Nothing is queued before it, and the owner wants it: otherwise the handle would be LEAVING. */
static inline bool may_deliver(weir__io_handle *handle, const weir__uring *self)
{
    weir__uring_enter_turn(handle, self);
    if (handle->uring_is_reading)
        weir__uring_limit_row(handle);
    return handle->uring_mode == WEIR__URING_BY_RING && handle->delivered < handle->reads;
}

static __attribute__((noinline)) void deliver_data(weir__io_handle *handle,
                                                   const weir__io_block *block, int result)
{
    weir__uring_deliver(handle, &(const weir__uring_event){
                                    .op = WEIR__URING_RECEIVE, .result = result, .block = *block});
}

/* End of stream, an error, or the end of the operation. */
static __attribute__((noinline)) void on_no_bytes(weir__io_handle *handle, int result,
                                                  unsigned flags)
{
    if (result == -EBADF)
        weir__uring_fail(handle, result);
    if ((flags & IORING_CQE_F_BUFFER) != 0)
        return_buffer(weir__uring_of(handle->io)->buffers, flags >> IORING_CQE_BUFFER_SHIFT);
    if (is_no_data(result))
        on_no_data(handle, result);
    else
        weir__uring_deliver(
            handle, &(const weir__uring_event){.op = WEIR__URING_RECEIVE, .result = result});
}

static inline void on_bytes(weir__io_handle *handle, weir__uring *self, int result, unsigned flags)
{
    weir__io_block block;

    take_data(self, flags >> IORING_CQE_BUFFER_SHIFT, (size_t)result, &block);
    if (result == BUFFER_SIZE)
        note_full_read(handle);
    if (may_deliver(handle, self)) {
        handle->delivered++;
        if (!handle->uring_is_reading)
            self->row_since_ns = 0;
        handle->uring_is_reading = true;
        handle->owner->received(handle, &block, (size_t)result);
    } else {
        deliver_data(handle, &block, result);
    }
}

WEIR__NO_STACK_PROTECTOR void weir__uring_on_receive(weir__io_handle *handle, int result,
                                                     unsigned flags)
{
    weir__uring *self = weir__uring_of(handle->io);

    weir__counter_add(self->io.stats.receives, 1);
    if ((flags & IORING_CQE_F_MORE) == 0) {
        weir__uring_end(handle, WEIR__URING_RECEIVE);
        handle->uring_mode = WEIR__URING_LEAVING;
    }
    if (result > 0)
        on_bytes(handle, self, result, flags);
    else
        on_no_bytes(handle, result, flags);
    if (weir__uring_is_next(self, handle, WEIR__URING_RECEIVE))
        return;
    if (handle->uring_mode == WEIR__URING_BY_RING && handle->uring_is_reading) {
        weir__uring_check_mode(handle);
        handle->uring_is_reading = false;
        handle->owner->read_complete(handle);
        if (handle->uring_mode == WEIR__URING_BY_RING)
            return;
    }
    weir__uring_finish_reading(handle);
    weir__uring_check_detach(handle);
}
