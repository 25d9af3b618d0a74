/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The events of a multipart parser as text, without the places where content was split:
 *
 *      [name|filename|type](content)[...](...)end
 *
 * A file name that is missing is "-". An error ends it: "!WEIR_EMALFORMED". Header-only, for fuzz
 * targets.
 */
#ifndef WEIR_TEST_MULTIPART_TRANSCRIPT_H
#define WEIR_TEST_MULTIPART_TRANSCRIPT_H

#include <stdlib.h>

#include <weir/http_body.h>

static inline void transcript_write(weir_buf *to, weir_span text)
{
    if (weir_buf_write_bytes(to, text.data, text.length) != 0)
        abort();
}

static inline void transcript_write_text(weir_buf *to, const char *text)
{
    transcript_write(to, weir_span_of_text(text));
}

static inline void transcript_write_part(weir_buf *to, const weir_http_part *part)
{
    transcript_write_text(to, "[");
    transcript_write(to, part->name);
    transcript_write_text(to, "|");
    transcript_write(to, part->filename.data != NULL ? part->filename : weir_span_of_text("-"));
    transcript_write_text(to, "|");
    transcript_write(to, part->content_type);
    transcript_write_text(to, "](");
}

/* Feeds a piece; returns the error. */
static inline int transcript_feed(weir_http_multipart *multipart, weir_span input, weir_buf *to)
{
    weir_span data = {NULL, 0};
    int event;

    while ((event = weir_http_multipart_next(multipart, &input, &data)) > 0) {
        if (event == WEIR_HTTP_MULTIPART_PART)
            transcript_write_part(to, weir_http_multipart_part(multipart));
        else if (event == WEIR_HTTP_MULTIPART_DATA && data.length > 0)
            transcript_write(to, data);
        else if (event == WEIR_HTTP_MULTIPART_PART_END)
            transcript_write_text(to, ")");
        else if (event == WEIR_HTTP_MULTIPART_END)
            transcript_write_text(to, "end");
        else
            abort(); /* empty data */
    }
    return event;
}

/* The transcript of the whole content, fed in pieces of `piece` bytes, the first one of `first`. */
static inline weir_buf *transcript_of(const char *content_type,
                                      const weir_http_multipart_options *options, weir_span content,
                                      size_t first, size_t piece)
{
    weir_http_multipart *multipart = NULL;
    weir_buf *to = NULL;
    size_t length;
    int err = 0;

    if (weir_buf_create(0, 0, &to) != 0 ||
        weir_http_multipart_create(weir_span_of_text(content_type), options, &multipart) != 0)
        abort();
    for (size_t from = 0; !err && from < content.length; from += length) {
        length = from == 0 ? first : piece;
        length = content.length - from < length ? content.length - from : length;
        err = transcript_feed(multipart, weir_span_of(content.data + from, length), to);
        if (err && transcript_feed(multipart, content, to) != err)
            abort(); /* errors last */
    }
    if (!err)
        err = weir_http_multipart_finish(multipart);
    if (err) {
        transcript_write_text(to, "!");
        transcript_write_text(to, weir_error_name(err));
    }
    weir_http_multipart_release(multipart);
    return to;
}

#endif
