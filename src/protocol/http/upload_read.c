/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading the content of an exchange into an upload.
 *
 *      handler's thread                      executor of the file
 *      piece -> parser -> parts, pending
 *                         pending       ->   write
 *      next piece                       <-   WRITTEN, by the mailbox
 *
 * While a piece is being written, none is requested: the client waits for the disk. A failure is
 * answered at once; then pieces are discarded up to the end of the content, because the last call
 * of the content function is the one that frees everything.
 *
 * `users` counts the last call of the content function, which is still to come, a
 * weir_http_exchange_read on the stack, which may deliver pieces at once, and a write. The last one
 * finishes, on the handler's thread. If that has ended, two threads may replace it: the count is
 * changed in acq_rel order, so that the last user sees everything that the others have done.
 * `refs` counts the memory: one for all users, one of a write, and one while something is in the
 * mailbox.
 */
#include "protocol/http/upload.h"

#include <errno.h>
#include <stdatomic.h>

#include <weir/channel.h>
#include <weir/composite.h>
#include <weir/error.h>
#include <weir/executor.h>
#include <weir/memory.h>

#include "base/options.h"
#include "base/refcount.h"
#include "executor/mailbox.h"

#define WRITTEN 1u /* the flag of the mailbox */

struct reader {
    weir__refs refs;
    _Atomic unsigned users;
    weir__mailbox box;            /* to `home` */
    weir_http_exchange *exchange; /* retained */
    weir_http_multipart *multipart;
    weir_http_upload *upload;
    weir_http_upload_fn *fn; /* NULL = it was called */
    void *user_data;
    weir_http_progress_fn *progress;
    weir_executor *home; /* of the handler; retained */
    uint64_t bytes;
    int64_t total;
    weir_task task;
    int write_err;
    bool has_failed;
    bool is_reading;  /* weir_http_exchange_read is on the stack */
    bool wants_piece; /* another one was requested meanwhile */
};

/* ---- the end ---- */

static void release_reader(struct reader *reader)
{
    if (!weir__refs_release(&reader->refs))
        return;
    weir_http_multipart_release(reader->multipart);
    weir_http_upload_release(reader->upload);
    weir_executor_release(reader->home);
    weir_http_exchange_release(reader->exchange);
    weir_memory_free(reader);
}

static void fail(struct reader *reader, int err)
{
    weir_http_upload_fn *fn = reader->fn;

    reader->has_failed = true;
    if (fn == NULL)
        return;
    reader->fn = NULL;
    if (err != WEIR_ECLOSED && err != WEIR_ECANCELED)
        (void)weir_http_respond_error(reader->exchange, weir__http_body_status(err), NULL);
    fn(reader->exchange, NULL, err, reader->user_data);
}

static void finish(struct reader *reader)
{
    weir_http_upload *upload = reader->upload;

    if (reader->write_err)
        fail(reader, reader->write_err);
    if (!reader->has_failed) {
        reader->upload = NULL;
        reader->fn(reader->exchange, upload, 0, reader->user_data);
    }
    release_reader(reader);
}

static void join(struct reader *reader)
{
    atomic_fetch_add_explicit(&reader->users, 1, memory_order_relaxed);
}

/* True if there are other users. Otherwise the reader is gone. */
static bool leave(struct reader *reader)
{
    if (atomic_fetch_sub_explicit(&reader->users, 1, memory_order_acq_rel) > 1)
        return true;
    finish(reader);
    return false;
}

/* ---- writing ---- */

static void read_piece(struct reader *reader);

/* If the handler's thread has ended, so have its connections. */
static void on_written(struct reader *reader, uint32_t flags, int status)
{
    (void)flags;
    if (status == 0 && reader->write_err)
        fail(reader, reader->write_err);
    if (leave(reader) && status == 0)
        read_piece(reader);
}

WEIR__MAILBOX_TYPE(mailbox_type, "http", struct reader, box, owner->home,
                   weir__refs_retain(&owner->refs), release_reader(owner), on_written);

static void run_write(void *arg, int status)
{
    struct reader *reader = arg;

    reader->write_err = status ? status : weir__http_upload_write(reader->upload);
    weir__mailbox_set(&reader->box, WRITTEN);
    release_reader(reader);
}

/* True if a write has begun. */
static bool begin_write(struct reader *reader)
{
    int err;

    if (reader->upload->pending == NULL || reader->has_failed)
        return false;
    join(reader);
    weir__refs_retain(&reader->refs);
    weir_task_init(&reader->task, run_write, reader);
    err = weir_execute_task(reader->upload->executor, &reader->task);
    if (err == 0)
        return true;
    (void)weir__refs_release(&reader->refs);
    (void)leave(reader);
    fail(reader, err);
    return false;
}

/* ---- reading ---- */

/* Not recursive: a piece that is there is delivered within the call. */
static void read_piece(struct reader *reader)
{
    reader->wants_piece = true;
    if (reader->is_reading)
        return;
    join(reader);
    reader->is_reading = true;
    while (reader->wants_piece) {
        reader->wants_piece = false;
        weir_http_exchange_read(reader->exchange);
    }
    reader->is_reading = false;
    (void)leave(reader);
}

static int feed_composite(struct reader *reader, weir_composite *composite)
{
    size_t skipped = weir_composite_read_index(composite), skip;
    weir_span span;
    int err = 0;

    for (size_t i = 0; !err && i < weir_composite_count(composite); i++) {
        (void)weir_composite_component(composite, i, &span);
        skip = skipped < span.length ? skipped : span.length;
        skipped -= skip;
        err = weir__http_upload_feed(reader->upload, reader->multipart,
                                     weir_span_of(span.data + skip, span.length - skip));
    }
    return err;
}

static int feed(struct reader *reader, weir_msg *msg)
{
    weir_composite *composite = weir_composite_of(msg);
    weir_buf *buf = weir_buf_of(msg);

    reader->bytes += weir_msg_size(msg);
    if (reader->progress != NULL)
        reader->progress(reader->exchange, reader->bytes, reader->total, reader->user_data);
    if (buf != NULL)
        return weir__http_upload_feed(reader->upload, reader->multipart, weir_buf_span(buf));
    return composite != NULL ? feed_composite(reader, composite) : -EPROTO;
}

static void on_content(weir_http_exchange *exchange, weir_msg *msg, int err, void *user_data)
{
    struct reader *reader = user_data;

    (void)exchange;
    if (msg != NULL) {
        if (!reader->has_failed) {
            err = feed(reader, msg);
            if (err)
                fail(reader, err);
        }
        weir_msg_release(msg);
        if (!begin_write(reader))
            read_piece(reader);
        return;
    }
    if (!err)
        err = weir_http_multipart_finish(reader->multipart);
    if (err)
        fail(reader, err);
    (void)leave(reader);
}

/* ---- the beginning ---- */

static int create_reader(weir_http_exchange *exchange, const weir_http_upload_options *options,
                         struct reader **ret_reader)
{
    const weir_http_request *request = weir_http_exchange_request(exchange);
    weir_executor *home = weir_executor_current();
    struct reader *reader = weir_memory_alloc(sizeof(*reader));
    int err;

    if (reader == NULL)
        return -ENOMEM;
    memset(reader, 0, sizeof(*reader));
    err = weir_http_multipart_create(
        weir_http_headers_get(weir_http_request_headers(request), WEIR_HTTP_CONTENT_TYPE),
        options->multipart, &reader->multipart);
    if (!err)
        err = weir__http_upload_create(options, &reader->upload);
    if (err) {
        weir_http_multipart_release(reader->multipart);
        weir_memory_free(reader);
        return err;
    }
    reader->exchange = weir_http_exchange_retain(exchange);
    if (home == NULL)
        home = weir_channel_executor(weir_http_exchange_channel(exchange));
    reader->home = weir_executor_retain(home);
    reader->progress = options->progress;
    reader->total = weir_http_request_content_length(request);
    weir__refs_init(&reader->refs);
    weir__mailbox_init(&reader->box, &mailbox_type);
    atomic_init(&reader->users, 1); /* the last call of the content function */
    *ret_reader = reader;
    return 0;
}

/* The content of a route that is not streaming is one piece. */
static void read_whole(struct reader *reader, weir_buf *content)
{
    int err = feed(reader, weir_buf_msg(content));

    if (!err)
        err = weir_http_multipart_finish(reader->multipart);
    if (err)
        fail(reader, err);
    (void)begin_write(reader);
    (void)leave(reader);
}

void weir_http_upload_read(weir_http_exchange *exchange,
                           const weir_http_upload_options *caller_options, weir_http_upload_fn *fn,
                           void *user_data)
{
    weir_buf *content = weir_http_exchange_content(exchange);
    weir_http_upload_options options;
    struct reader *reader;
    int err = weir__options_read(&options, sizeof(options), caller_options);

    if (!err)
        err = create_reader(exchange, &options, &reader);
    if (err) {
        (void)weir_http_respond_error(exchange, weir__http_body_status(err), NULL);
        fn(exchange, NULL, err, user_data);
        return;
    }
    reader->fn = fn;
    reader->user_data = user_data;
    if (content != NULL) {
        read_whole(reader, content);
    } else {
        weir_http_exchange_on_content(exchange, on_content, reader);
        read_piece(reader);
    }
}
