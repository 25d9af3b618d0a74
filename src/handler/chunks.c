/* SPDX-License-Identifier: Apache-2.0 */
#include "handler/chunks.h"

#include <errno.h>

#include <weir/buf.h>
#include <weir/error.h>
#include <weir/file_range.h>
#include <weir/promise.h>

#include "base/memory.h"
#include "os/system.h"

/*
 * The capacity of a TLS output buffer: 7 records of 16 KiB. Smaller pieces cost more calls and more
 * partial segments. Kernel segments are slightly smaller than 64 KiB, so that a multiple of 64 KiB
 * would leave a small rest each time.
 */
#define DEFAULT_CHUNK_SIZE ((size_t)112 * 1024)

/* ---- the message ---- */

static void close_source(const weir_chunk_source *table, void *source)
{
    if (table != NULL && table->close != NULL)
        table->close(source);
}

static void destroy(weir_msg *msg)
{
    weir_chunks *chunks = weir_chunks_of(msg);

    close_source(chunks->table, chunks->source);
    weir_promise_release(chunks->done);
    weir__free(chunks);
}

/* Chunks take no memory of their own. */
static size_t no_size(const weir_msg *msg)
{
    (void)msg;
    return 0;
}

const weir_msg_type weir_chunks_type = {.name = "chunks", .destroy = destroy, .size = no_size};

int weir_chunks_create(const weir_chunk_source *table, void *source, int64_t length,
                       weir_chunks **ret_chunks)
{
    bool is_valid = table != NULL && table->next != NULL && length >= -1;
    weir_chunks *chunks = is_valid ? weir__zalloc(sizeof(*chunks)) : NULL;

    if (chunks == NULL) {
        close_source(table, source);
        return is_valid ? -ENOMEM : -EINVAL;
    }
    weir_msg_init(&chunks->msg, &weir_chunks_type);
    chunks->table = table;
    chunks->source = source;
    chunks->length = length;
    *ret_chunks = chunks;
    return 0;
}

void weir_chunks_on_progress(weir_chunks *chunks, weir_chunks_progress_fn *fn, void *user_data)
{
    chunks->on_progress = fn;
    chunks->user_data = user_data;
}

/* ---- files ---- */

struct file {
    weir_file_range *range; /* tracks the position, and closes the descriptor */
    size_t chunk_size;
};

static int read_piece(weir_file_range *range, weir_buf *buf, size_t size)
{
    ssize_t length;

    do
        length = weir__sys.pread(weir_file_range_descriptor(range), weir_buf_space(buf), size,
                                 (off_t)weir_file_range_position(range));
    while (length < 0 && errno == EINTR);
    if (length <= 0)
        return length < 0 ? -errno : WEIR_ETRUNCATED;
    (void)weir_buf_advance(buf, (size_t)length);
    return weir_file_range_advance(range, length);
}

static int next_piece(void *source, weir_msg **ret_chunk)
{
    struct file *file = source;
    int64_t left = weir_file_range_remaining(file->range);
    size_t size = left < (int64_t)file->chunk_size ? (size_t)left : file->chunk_size;
    weir_buf *buf;
    int err;

    if (left == 0)
        return WEIR_CHUNKS_END;
    err = weir_buf_create(size, 0, &buf);
    if (err < 0)
        return err;
    err = read_piece(file->range, buf, size);
    if (err < 0) {
        weir_buf_release(buf);
        return err;
    }
    *ret_chunk = weir_buf_msg(buf);
    return WEIR_CHUNKS_READY;
}

static void close_file(void *source)
{
    struct file *file = source;

    weir_file_range_release(file->range);
    weir__free(file);
}

static const weir_chunk_source file_source = {.next = next_piece, .close = close_file};

int weir_chunks_create_range(weir_file_range *range, size_t chunk_size, weir_chunks **ret_chunks)
{
    struct file *file = weir__alloc(sizeof(*file));

    if (file == NULL) {
        weir_file_range_release(range);
        return -ENOMEM;
    }
    file->range = range;
    file->chunk_size = chunk_size > 0 ? chunk_size : DEFAULT_CHUNK_SIZE;
    return weir_chunks_create(&file_source, file, weir_file_range_remaining(range), ret_chunks);
}

int weir_chunks_create_file(int descriptor, int64_t offset, int64_t length, uint32_t flags,
                            size_t chunk_size, weir_chunks **ret_chunks)
{
    weir_file_range *range;
    int err = weir_file_range_create(descriptor, offset, length, flags, &range);

    return err < 0 ? err : weir_chunks_create_range(range, chunk_size, ret_chunks);
}
