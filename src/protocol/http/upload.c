/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/http/upload.h"

#include <errno.h>

#include <weir/error.h>
#include <weir/executor.h>
#include <weir/memory.h>

#include "base/options.h"
#include "protocol/http/disk.h"
#include "protocol/http/part.h"

#define MAX_MEMORY_PART ((int64_t)64 << 10)
#define MAX_MEMORY ((int64_t)1 << 20)
#define FOLDER "/tmp"
#define COPY_BYTES ((size_t)128 << 10)

int weir__http_body_status(int err)
{
    switch (err) {
    case -ENOTSUP:
        return 415;
    case WEIR_EMALFORMED:
        return 400;
    case WEIR_ETOOLONG:
        return 413;
    default:
        return 500;
    }
}

/* ---- lifecycle ---- */

static size_t limit_of(int64_t option, int64_t otherwise)
{
    return option < 0 ? 0 : option > 0 ? (size_t)option : (size_t)otherwise;
}

int weir__http_upload_create(const weir_http_upload_options *options, weir_http_upload **ret_upload)
{
    const char *folder = options->folder != NULL ? options->folder : FOLDER;
    weir_http_upload *upload;
    int err =
        weir__options_check("http", NULL, WEIR__OPTION_FROM(options, max_memory_part, WEIR_OFF),
                            WEIR__OPTION_FROM(options, max_memory, 0));

    if (err)
        return err;
    upload = weir_memory_alloc(sizeof(*upload) + strlen(folder) + 1);
    if (upload == NULL)
        return -ENOMEM;
    memset(upload, 0, sizeof(*upload));
    upload->folder = (char *)(upload + 1);
    memcpy(upload->folder, folder, strlen(folder) + 1);
    upload->max_memory_part = limit_of(options->max_memory_part, MAX_MEMORY_PART);
    upload->max_memory = limit_of(options->max_memory, MAX_MEMORY);
    upload->executor = weir_executor_retain(options->group != NULL ? weir_group_next(options->group)
                                                                   : weir_executor_global());
    *ret_upload = upload;
    return 0;
}

static void close_file(void *arg, int status)
{
    (void)status;
    weir_file_range_release(arg);
}

void weir_http_upload_release(weir_http_upload *upload)
{
    if (upload == NULL)
        return;
    for (size_t i = 0; i < upload->count; i++) {
        weir_buf_release(upload->parts[i]->memory);
        weir_memory_free(upload->parts[i]);
    }
    weir_memory_free(upload->parts);
    weir_buf_release(upload->pending);
    if (upload->file != NULL && weir_execute(upload->executor, close_file, upload->file) != 0)
        weir_file_range_release(upload->file);
    weir_executor_release(upload->executor);
    weir_memory_free(upload);
}

/* ---- collecting ---- */

static int grow(weir_http_upload *upload)
{
    size_t capacity = upload->capacity > 0 ? 2 * upload->capacity : 8;
    weir__http_upload_part **parts;

    if (upload->count < upload->capacity)
        return 0;
    parts = weir_memory_realloc(upload->parts, capacity * sizeof(*parts));
    if (parts == NULL)
        return -ENOMEM;
    upload->parts = parts;
    upload->capacity = capacity;
    return 0;
}

static int add_part(weir_http_upload *upload, const weir_http_multipart *multipart)
{
    weir_span block = weir__http_multipart_block(multipart);
    size_t size = sizeof(weir__http_upload_part) + block.length;
    weir__http_upload_part *part;
    int err = size > upload->max_memory - upload->memory ? WEIR_ETOOLONG : grow(upload);

    if (err)
        return err;
    part = weir_memory_alloc(size);
    if (part == NULL)
        return -ENOMEM;
    memset(part, 0, sizeof(*part));
    err = weir_buf_create(0, 0, &part->memory);
    if (err) {
        weir_memory_free(part);
        return err;
    }
    part->head = *weir_http_multipart_part(multipart);
    memcpy(part->block, block.data, block.length);
    weir__http_part_move(&part->head, block, part->block);
    upload->memory += size;
    upload->parts[upload->count++] = part;
    return 0;
}

static int append_pending(weir_http_upload *upload, weir_span data)
{
    int err = upload->pending == NULL ? weir_buf_create(data.length, 0, &upload->pending) : 0;

    return err ? err : weir_buf_write_bytes(upload->pending, data.data, data.length);
}

/* Moves a part from memory to the end of the file. */
static int spill(weir_http_upload *upload, weir__http_upload_part *part)
{
    size_t pending = upload->pending != NULL ? weir_buf_readable(upload->pending) : 0;
    int err = append_pending(upload, weir_buf_span(part->memory));

    if (err)
        return err;
    part->offset = upload->file_length + pending;
    weir_buf_release(part->memory);
    part->memory = NULL;
    upload->memory -= (size_t)part->length;
    return 0;
}

static int add_data(weir_http_upload *upload, weir_span data)
{
    weir__http_upload_part *part = upload->parts[upload->count - 1];
    int err = 0;

    if (part->memory != NULL && (data.length > upload->max_memory - upload->memory ||
                                 part->length + data.length > upload->max_memory_part))
        err = spill(upload, part);
    if (err)
        return err;
    if (part->memory != NULL) {
        err = weir_buf_write_bytes(part->memory, data.data, data.length);
        upload->memory += err ? 0 : data.length;
    } else {
        err = append_pending(upload, data);
    }
    part->length += err ? 0 : data.length;
    return err;
}

int weir__http_upload_feed(weir_http_upload *upload, weir_http_multipart *multipart,
                           weir_span input)
{
    weir_span data;
    int event, err = 0;

    while (!err && (event = weir_http_multipart_next(multipart, &input, &data)) != 0) {
        if (event == WEIR_HTTP_MULTIPART_PART)
            err = add_part(upload, multipart);
        else if (event == WEIR_HTTP_MULTIPART_DATA)
            err = add_data(upload, data);
        else if (event < 0)
            err = event;
    }
    return err;
}

static int create_file(weir_http_upload *upload)
{
    int file, err = weir__http_disk_create_temporary(upload->folder, &file);

    if (err)
        return err;
    err = weir_file_range_create(file, 0, 0, WEIR_FILE_RANGE_CLOSE, &upload->file);
    if (err)
        weir__http_disk_close(file);
    return err;
}

int weir__http_upload_write(weir_http_upload *upload)
{
    weir_span bytes = weir_buf_span(upload->pending);
    int err = upload->file == NULL ? create_file(upload) : 0;

    if (!err)
        err = weir__http_disk_write(weir_file_range_descriptor(upload->file),
                                    (int64_t)upload->file_length, bytes.data, bytes.length);
    if (err)
        return err;
    upload->file_length += bytes.length;
    weir_buf_release(upload->pending);
    upload->pending = NULL;
    return 0;
}

/* ---- the result ---- */

size_t weir_http_upload_count(const weir_http_upload *upload)
{
    return upload->count;
}

ssize_t weir_http_upload_find(const weir_http_upload *upload, const char *name)
{
    for (size_t i = 0; i < upload->count; i++)
        if (weir_span_equal(upload->parts[i]->head.name, weir_span_of_text(name)))
            return (ssize_t)i;
    return -ENOENT;
}

const weir_http_part *weir_http_upload_part(const weir_http_upload *upload, size_t index)
{
    return index < upload->count ? &upload->parts[index]->head : NULL;
}

uint64_t weir_http_upload_length(const weir_http_upload *upload, size_t index)
{
    return index < upload->count ? upload->parts[index]->length : 0;
}

weir_span weir_http_upload_bytes(const weir_http_upload *upload, size_t index)
{
    if (index >= upload->count || upload->parts[index]->memory == NULL)
        return weir_span_of(NULL, 0);
    return weir_buf_span(upload->parts[index]->memory);
}

int weir_http_upload_copy(const weir_http_upload *upload, size_t index, uint64_t offset,
                          void *bytes, size_t length)
{
    const weir__http_upload_part *part;

    if (index >= upload->count)
        return WEIR_EBOUNDS;
    part = upload->parts[index];
    if (offset > part->length || length > part->length - offset)
        return WEIR_EBOUNDS;
    if (part->memory == NULL)
        return weir__http_disk_read(weir_file_range_descriptor(upload->file),
                                    (int64_t)(part->offset + offset), bytes, length);
    if (length > 0)
        memcpy(bytes, weir_buf_bytes(part->memory) + offset, length);
    return 0;
}

int weir_http_upload_msg(const weir_http_upload *upload, size_t index, weir_msg **ret_msg)
{
    const weir__http_upload_part *part;
    weir_file_range *range;
    weir_buf *buf;
    int err;

    if (index >= upload->count)
        return WEIR_EBOUNDS;
    part = upload->parts[index];
    if (part->memory != NULL) {
        err = weir_buf_slice(part->memory, 0, (size_t)part->length, &buf);
        if (!err)
            *ret_msg = weir_buf_msg(buf);
    } else {
        err = weir_file_range_slice(upload->file, (int64_t)part->offset, (int64_t)part->length,
                                    &range);
        if (!err)
            *ret_msg = weir_file_range_msg(range);
    }
    return err;
}

int weir_http_upload_save(const weir_http_upload *upload, size_t index, const char *path)
{
    uint64_t total = weir_http_upload_length(upload, index), length;
    void *bytes;
    int file, err;

    if (index >= upload->count)
        return WEIR_EBOUNDS;
    bytes = weir_memory_alloc(COPY_BYTES);
    if (bytes == NULL)
        return -ENOMEM;
    err = weir__http_disk_create(path, &file);
    if (!err) {
        for (uint64_t at = 0; !err && at < total; at += length) {
            length = total - at < COPY_BYTES ? total - at : COPY_BYTES;
            err = weir_http_upload_copy(upload, index, at, bytes, (size_t)length);
            if (!err)
                err = weir__http_disk_write(file, (int64_t)at, bytes, (size_t)length);
        }
        weir__http_disk_close(file);
    }
    weir_memory_free(bytes);
    return err;
}
