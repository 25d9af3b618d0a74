/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Producers fill a chunk under the lock. A full chunk is queued; a partly filled one is taken by
 * the thread when a push has asked for it, so that frequent pushes do not create many chunks.
 *
 * The thread sleeps on `posted`, which is incremented after every change that it must see; it loads
 * `posted` before it reads the queue. Threads that wait for the writer sleep on `done`, the number
 * of the last push whose bytes were written, or on `state`.
 */
#include "os/file_writer.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <weir/error.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/options.h"
#include "os/clock.h"
#include "os/descriptor.h"
#include "os/file.h"
#include "os/futex.h"
#include "os/thread.h"

#define SPARES_MAX 2
#define SOON_NS ((int64_t)100 * 1000 * 1000)

struct chunk {
    struct chunk *next;
    size_t used;
    uint8_t bytes[WEIR_FILE_WRITER_PIECE_MAX];
};

enum { RUNNING, ENDED, ABANDONED };

struct weir_file_writer {
    int file;
    char *path; /* NULL = cannot be reopened */
    char name[16];
    size_t chunks_max;
    weir__thread thread;

    weir__mutex lock; /* guards the members up to is_reopening */
    struct chunk *filling;
    struct chunk *first; /* full chunks */
    struct chunk *last;
    struct chunk *spares;
    size_t spare_count;
    size_t chunk_count; /* without the spares */
    uint32_t pushes;
    bool is_busy; /* counts in busy_count */
    bool is_closing;
    bool is_reopening;

    /*
     * A push within SOON_NS is outstanding. Set and cleared under the lock; a producer reads it
     * without, relaxed, after it has queued a piece under the lock: if the thread had taken the
     * piece's chunk before, its unlock happened before that, and so had the clearing.
     */
    _Atomic bool is_soon;
    bool has_soon; /* of the thread: the push is due at soon_ns */
    int64_t soon_ns;

    _Atomic uint32_t posted;
    _Atomic uint32_t done;     /* release after writing; acquire in waiters */
    _Atomic uint32_t progress; /* chunks written; relaxed: only compared */
    _Atomic uint32_t state;    /* acquire and release: the second to change it frees the writer */
    _Atomic int error;         /* relaxed: published by `done` */
};

_Atomic int64_t weir__file_writer_grace_ns = (int64_t)5 * 1000 * 1000 * 1000;
_Atomic int64_t weir__file_writer_exit_ns = (int64_t)3 * 1000 * 1000 * 1000;

/* Busy writers. Release and acquire: their writes happen before the end of a wait. */
static _Atomic uint32_t busy_count;

/* ---- under the lock ---- */

static void set_busy(weir_file_writer *writer, bool is_busy)
{
    if (writer->is_busy == is_busy)
        return;
    writer->is_busy = is_busy;
    if (is_busy)
        atomic_fetch_add_explicit(&busy_count, 1, memory_order_relaxed);
    else if (atomic_fetch_sub_explicit(&busy_count, 1, memory_order_release) == 1)
        weir__futex_wake(&busy_count, INT_MAX);
}

static void append(weir_file_writer *writer, struct chunk *chunk)
{
    chunk->next = NULL;
    if (writer->first == NULL)
        writer->first = chunk;
    else
        writer->last->next = chunk;
    writer->last = chunk;
}

static struct chunk *alloc_chunk(weir_file_writer *writer)
{
    struct chunk *chunk = writer->spares;

    if (writer->chunk_count >= writer->chunks_max)
        return NULL;
    if (chunk != NULL) {
        writer->spares = chunk->next;
        writer->spare_count--;
    } else {
        chunk = weir__alloc(sizeof(*chunk));
    }
    if (chunk == NULL)
        return NULL;
    chunk->used = 0;
    writer->chunk_count++;
    return chunk;
}

static void free_chunk(weir_file_writer *writer, struct chunk *chunk)
{
    writer->chunk_count--;
    if (writer->spare_count >= SPARES_MAX) {
        weir__free(chunk);
        return;
    }
    chunk->next = writer->spares;
    writer->spares = chunk;
    writer->spare_count++;
}

/* ---- the thread ---- */

static void post(weir_file_writer *writer)
{
    /* Release: a thread that sees it also sees what was done under the lock. */
    atomic_fetch_add_explicit(&writer->posted, 1, memory_order_release);
    weir__futex_wake(&writer->posted, 1);
}

/* True if a push that may wait a little is due, or another one is outstanding. */
static bool is_due(weir_file_writer *writer)
{
    if (!atomic_load_explicit(&writer->is_soon, memory_order_relaxed))
        return false;
    if (!writer->has_soon) {
        writer->has_soon = true;
        writer->soon_ns = weir__monotonic_now() + SOON_NS;
    }
    return weir__monotonic_now() >= writer->soon_ns;
}

/* Takes all chunks to write, as a list. */
static struct chunk *take_queued(weir_file_writer *writer, uint32_t *ret_pushes,
                                 bool *ret_is_closing, bool *ret_is_reopening)
{
    uint32_t done = atomic_load_explicit(&writer->done, memory_order_relaxed);
    struct chunk *first;

    weir__mutex_lock(&writer->lock);
    if (writer->pushes != done || is_due(writer)) {
        if (writer->filling != NULL)
            append(writer, writer->filling);
        writer->filling = NULL;
        writer->has_soon = false;
        atomic_store_explicit(&writer->is_soon, false, memory_order_relaxed);
    }
    first = writer->first;
    writer->first = NULL;
    *ret_pushes = writer->pushes;
    *ret_is_closing = writer->is_closing;
    *ret_is_reopening = writer->is_reopening;
    writer->is_reopening = false;
    if (first == NULL && !writer->is_closing && !writer->has_soon)
        set_busy(writer, false);
    weir__mutex_unlock(&writer->lock);
    return first;
}

static void write_all(weir_file_writer *writer, struct chunk *chunk)
{
    struct chunk *next;
    int err;

    for (; chunk != NULL; chunk = next) {
        next = chunk->next;
        if (weir_file_writer_error(writer) == 0) {
            err = weir__file_write(writer->file, chunk->bytes, chunk->used);
            if (err < 0) {
                atomic_store_explicit(&writer->error, err, memory_order_relaxed);
                weir__warn(writer->name, "-", "write failed, no further data is written: %s",
                           weir_error_text(err));
            }
        }
        atomic_fetch_add_explicit(&writer->progress, 1, memory_order_relaxed);
        weir__mutex_lock(&writer->lock);
        free_chunk(writer, chunk);
        weir__mutex_unlock(&writer->lock);
    }
}

static void open_anew(weir_file_writer *writer)
{
    int file = -1, err = weir__file_append(writer->path, &file);

    if (err < 0) {
        weir__warn(writer->name, writer->path, "cannot be reopened, the old file is still used: %s",
                   weir_error_text(err));
        return;
    }
    (void)weir__descriptor_close(writer->file);
    writer->file = file;
    atomic_store_explicit(&writer->error, 0, memory_order_relaxed);
}

static void free_list(struct chunk *chunk)
{
    while (chunk != NULL) {
        struct chunk *next = chunk->next;

        weir__free(chunk);
        chunk = next;
    }
}

/* Called when no other thread uses the writer. */
static void destroy(weir_file_writer *writer)
{
    (void)weir__descriptor_close(writer->file);
    free_list(writer->first);
    free_list(writer->spares);
    weir__free(writer->filling);
    weir__free(writer->path);
    weir__mutex_deinit(&writer->lock);
    weir__free(writer);
}

/* An abandoned writer counts as busy until it is freed. */
static void end(weir_file_writer *writer)
{
    uint32_t state = RUNNING;

    if (atomic_compare_exchange_strong_explicit(&writer->state, &state, ENDED, memory_order_acq_rel,
                                                memory_order_acquire)) {
        weir__futex_wake(&writer->state, 1);
        return;
    }
    writer->is_busy = false;
    destroy(writer);
    if (atomic_fetch_sub_explicit(&busy_count, 1, memory_order_release) == 1)
        weir__futex_wake(&busy_count, INT_MAX);
}

static void thread_main(void *arg)
{
    weir_file_writer *writer = arg;
    bool is_closing = false, is_reopening = false;

    for (;;) {
        uint32_t posted = atomic_load_explicit(&writer->posted, memory_order_acquire), pushes;
        struct chunk *chunks = take_queued(writer, &pushes, &is_closing, &is_reopening);

        write_all(writer, chunks);
        if (is_reopening)
            open_anew(writer);
        atomic_store_explicit(&writer->done, pushes, memory_order_release);
        weir__futex_wake(&writer->done, INT_MAX);
        if (chunks == NULL && is_closing)
            break;
        if (chunks == NULL)
            weir__futex_wait(&writer->posted, posted,
                             writer->has_soon ? writer->soon_ns : WEIR_NEVER);
    }
    end(writer);
}

/* ---- producers ---- */

uint8_t *weir_file_writer_begin(weir_file_writer *writer, size_t length)
{
    struct chunk *full = NULL;
    uint8_t *place;

    if (weir_file_writer_error(writer) < 0)
        return NULL;
    weir__mutex_lock(&writer->lock);
    if (writer->filling != NULL && writer->filling->used + length > sizeof(full->bytes)) {
        full = writer->filling;
        append(writer, full);
        set_busy(writer, true);
        writer->filling = NULL;
    }
    if (writer->filling == NULL)
        writer->filling = alloc_chunk(writer);
    if (full != NULL)
        post(writer);
    if (writer->filling == NULL) {
        weir__mutex_unlock(&writer->lock);
        return NULL;
    }
    place = writer->filling->bytes + writer->filling->used;
    writer->filling->used += length;
    return place;
}

void weir_file_writer_end(weir_file_writer *writer)
{
    weir__mutex_unlock(&writer->lock);
}

enum { CLOSES = 1 << 0, REOPENS = 1 << 1 };

static uint32_t push(weir_file_writer *writer, unsigned what)
{
    uint32_t number;

    weir__mutex_lock(&writer->lock);
    number = ++writer->pushes;
    writer->is_closing = (what & CLOSES) != 0;
    writer->is_reopening = writer->is_reopening || (what & REOPENS) != 0;
    set_busy(writer, true);
    weir__mutex_unlock(&writer->lock);
    post(writer);
    return number;
}

void weir_file_writer_push(weir_file_writer *writer)
{
    (void)push(writer, 0);
}

void weir_file_writer_push_soon(weir_file_writer *writer)
{
    bool is_first;

    if (atomic_load_explicit(&writer->is_soon, memory_order_relaxed))
        return;
    weir__mutex_lock(&writer->lock);
    is_first = !atomic_exchange_explicit(&writer->is_soon, true, memory_order_relaxed);
    set_busy(writer, true);
    weir__mutex_unlock(&writer->lock);
    if (is_first)
        post(writer);
}

void weir_file_writer_reopen(weir_file_writer *writer)
{
    if (writer->path != NULL)
        (void)push(writer, REOPENS);
}

int weir_file_writer_flush(weir_file_writer *writer)
{
    uint32_t number = push(writer, 0);
    uint32_t done = atomic_load_explicit(&writer->done, memory_order_acquire);

    while ((int32_t)(done - number) < 0) {
        weir__futex_wait(&writer->done, done, WEIR_NEVER);
        done = atomic_load_explicit(&writer->done, memory_order_acquire);
    }
    return weir_file_writer_error(writer);
}

int weir_file_writer_error(const weir_file_writer *writer)
{
    return atomic_load_explicit(&writer->error, memory_order_relaxed);
}

/* ---- lifecycle ---- */

static int create(int file, const char *path, size_t max_bytes, const char *name,
                  weir_file_writer **ret_writer)
{
    weir_file_writer *writer;
    int err;

    if (max_bytes < WEIR_FILE_WRITER_QUEUE_MIN)
        return weir__options_reject("file_writer", name, "max_bytes is %zu: the minimum is %zu",
                                    max_bytes, WEIR_FILE_WRITER_QUEUE_MIN);
    writer = weir__zalloc(sizeof(*writer));
    if (writer == NULL)
        return -ENOMEM;
    if (path != NULL) {
        writer->path = weir__strdup(path);
        if (writer->path == NULL) {
            weir__free(writer);
            return -ENOMEM;
        }
    }
    writer->file = file;
    writer->chunks_max = max_bytes / sizeof(((struct chunk *)NULL)->bytes);
    (void)snprintf(writer->name, sizeof(writer->name), "%s", name);
    weir__mutex_init(&writer->lock);
    err = weir__thread_start(writer->name, thread_main, writer, &writer->thread);
    if (err < 0) {
        weir__mutex_deinit(&writer->lock);
        weir__free(writer->path);
        weir__free(writer);
        return err;
    }
    *ret_writer = writer;
    return 0;
}

int weir_file_writer_create(int file, size_t max_bytes, const char *name,
                            weir_file_writer **ret_writer)
{
    return create(file, NULL, max_bytes, name, ret_writer);
}

int weir_file_writer_open(const char *path, size_t max_bytes, const char *name,
                          weir_file_writer **ret_writer)
{
    bool is_output = strcmp(path, "-") == 0;
    int file = -1, err;

    err = is_output ? weir__descriptor_duplicate(1, &file) : weir__file_append(path, &file);
    if (err < 0)
        return err;
    err = create(file, is_output ? NULL : path, max_bytes, name, ret_writer);
    if (err < 0)
        (void)weir__descriptor_close(file);
    return err;
}
/* Waits for the thread to end, as long as it makes progress. */
static void wait_for_end(weir_file_writer *writer)
{
    int64_t grace_ns = atomic_load_explicit(&weir__file_writer_grace_ns, memory_order_relaxed);
    int64_t deadline_ns = weir__monotonic_now() + grace_ns;
    uint32_t progress = 0, before = 0;

    while (atomic_load_explicit(&writer->state, memory_order_acquire) == RUNNING) {
        progress = atomic_load_explicit(&writer->progress, memory_order_relaxed);
        if (progress != before)
            deadline_ns = weir__monotonic_now() + grace_ns;
        else if (weir__monotonic_now() >= deadline_ns)
            break;
        before = progress;
        weir__futex_wait(&writer->state, RUNNING, deadline_ns);
    }
    if (atomic_load_explicit(&writer->state, memory_order_acquire) == RUNNING)
        weir__warn(writer->name, "-", "the file accepts no data: closing without waiting for it");
}

void weir_file_writer_close(weir_file_writer *writer, bool may_wait)
{
    uint32_t state = RUNNING;
    weir__thread thread;

    if (writer == NULL)
        return;
    thread = writer->thread; /* an abandoned writer may be freed at any time */
    (void)push(writer, CLOSES);
    if (may_wait)
        wait_for_end(writer);
    if (atomic_compare_exchange_strong_explicit(&writer->state, &state, ABANDONED,
                                                memory_order_acq_rel, memory_order_acquire)) {
        weir__thread_detach(&thread);
        return;
    }
    weir__thread_join(&thread);
    set_busy(writer, false);
    destroy(writer);
}

bool weir__file_writers_wait(int64_t timeout_ns)
{
    int64_t deadline_ns = weir__monotonic_now() + timeout_ns;
    uint32_t count;

    while ((count = atomic_load_explicit(&busy_count, memory_order_acquire)) > 0) {
        if (weir__monotonic_now() >= deadline_ns)
            return false;
        weir__futex_wait(&busy_count, count, deadline_ns);
    }
    return true;
}

__attribute__((destructor)) static void wait_at_exit(void)
{
    (void)weir__file_writers_wait(
        atomic_load_explicit(&weir__file_writer_exit_ns, memory_order_relaxed));
}
