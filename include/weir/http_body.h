/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/http_body.h - the content of requests, forms and uploads, and the choice of a response's.
 *
 *      weir_http_form          application/x-www-form-urlencoded, as a whole
 *      weir_http_multipart     multipart/form-data, piece by piece
 *      weir_http_upload        multipart/form-data, collected: in memory, large parts on disk
 *
 *      static void on_upload(weir_http_exchange *exchange, weir_http_upload *upload, int err,
 *                            void *user_data)
 *      {
 *          if (!err)
 *              weir_http_respond_text(exchange, 200, "Thank you.\n");
 *          weir_http_upload_release(upload);
 *      }
 *
 *      static void upload(weir_http_exchange *exchange, void *user_data)
 *      {
 *          weir_http_upload_read(exchange, NULL, on_upload, NULL);
 *      }
 *
 * Link with libweir-http.
 */
#ifndef WEIR_HTTP_BODY_H
#define WEIR_HTTP_BODY_H

#include <weir/group.h>
#include <weir/http_server.h>
#include <weir/http_uri.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- negotiation ------------------------------------------------------------------------------ */

/*
 * The index of the media type to send, of a NULL-terminated list with the preferred one first: the
 * one that the fields Accept of a request give the highest quality. 0 if there are none. Do not
 * forget "Vary: Accept" in the response.
 * Thread: the headers' holder's.  Fails: -ENOENT (none is acceptable; the usual answer is 406, or
 * the first type nevertheless).
 */
WEIR_API int weir_http_accept_type(const weir_http_headers *headers, const char *const *types);

/* --- forms ------------------------------------------------------------------------------------ */

/* The decoded pairs of an urlencoded form or a query string. */
typedef struct weir_http_form weir_http_form;

/*
 * Decodes a form. More than `max_pairs` (0 = 1000) are refused.
 * Thread: any.  Gives: form.  Fails: WEIR_EMALFORMED, WEIR_ETOOLONG, -ENOMEM.
 */
WEIR_API WEIR_MUST_USE int weir_http_form_create(weir_span text, size_t max_pairs,
                                                 weir_http_form **ret_form);

/*
 * Decodes the content of a request in a route that is not streaming. An error has been answered:
 * 415 for another Content-Type, 400 or 413.
 * Thread: any.  Gives: form.  Fails: -ENOTSUP (Content-Type), -EINVAL (a streaming route), and as
 * weir_http_form_create.
 */
WEIR_API WEIR_MUST_USE int weir_http_form_read(weir_http_exchange *exchange,
                                               weir_http_form **ret_form);

/*
 * Releases a form. NULL is ignored.
 * Thread: its holder's.  Takes: form.
 */
WEIR_API void weir_http_form_release(weir_http_form *form);

/*
 * The number of pairs; name and value of pair `index`, from 0; the first value of a name, whose
 * data is NULL if there is none.
 * Thread: its holder's.  Lends until the form is released: the spans.
 */
WEIR_API size_t weir_http_form_count(const weir_http_form *form);
WEIR_API weir_span weir_http_form_name(const weir_http_form *form, size_t index);
WEIR_API weir_span weir_http_form_value(const weir_http_form *form, size_t index);
WEIR_API weir_span weir_http_form_get(const weir_http_form *form, const char *name);

/* --- multipart/form-data ---------------------------------------------------------------------- */

/* The head of a part. */
typedef struct weir_http_part {
    weir_span name;         /* of the form's field */
    weir_span filename;     /* data NULL if the part is not a file. As sent: it may have slashes and
                               dots, so do not use it as a path */
    weir_span content_type; /* "text/plain" if the part does not say */
    weir_span fields;       /* all header fields, as lines; see weir_http_part_field */
} weir_http_part;

/*
 * The value of a header field of a part; data is NULL if there is none.
 * Thread: the part's holder's.  Lends as long as the part: the value.
 */
WEIR_API weir_span weir_http_part_field(const weir_http_part *part, const char *name);

/* Zero means default. Build with WEIR_HTTP_MULTIPART_OPTIONS(...). */
typedef struct weir_http_multipart_options {
    size_t size;
    int max_parts;        /* default 1000 */
    int max_header_bytes; /* bytes of the fields of a part; default 8 KiB */
    uint64_t max_bytes;   /* bytes in all; default unlimited: a route has its own limit */
} weir_http_multipart_options;

#define WEIR_HTTP_MULTIPART_OPTIONS(...) WEIR_OPTIONS(weir_http_multipart_options, __VA_ARGS__)

/* An incremental parser (RFC 7578). It copies the heads of parts, and nothing else. */
typedef struct weir_http_multipart weir_http_multipart;

/*
 * Creates a parser for content with a Content-Type, which names the boundary. NULL options are the
 * defaults.
 * Thread: any.  Gives: multipart.  Fails: -ENOTSUP (not multipart/form-data), WEIR_EMALFORMED (no
 * boundary, or an invalid one), -EINVAL, -ENOMEM.
 */
WEIR_API WEIR_MUST_USE int weir_http_multipart_create(weir_span content_type,
                                                      const weir_http_multipart_options *options,
                                                      weir_http_multipart **ret_multipart);

/*
 * Releases a parser. NULL is ignored.
 * Thread: its holder's.  Takes: multipart.
 */
WEIR_API void weir_http_multipart_release(weir_http_multipart *multipart);

/* The result of weir_http_multipart_next. */
enum weir_http_multipart_event {
    WEIR_HTTP_MULTIPART_MORE,     /* the input is consumed */
    WEIR_HTTP_MULTIPART_PART,     /* a part begins: weir_http_multipart_part */
    WEIR_HTTP_MULTIPART_DATA,     /* some of its content */
    WEIR_HTTP_MULTIPART_PART_END, /* the part ends */
    WEIR_HTTP_MULTIPART_END,      /* the last part has ended; what follows is ignored */
};

/*
 * Reads from `*input`, and consumes it, up to the next event. Data is a part of the input, or of
 * the parser until the next call; it is never empty. Returns the event. A part may be split into
 * data anywhere.
 *
 *      while ((event = weir_http_multipart_next(multipart, &input, &data)) > 0)
 *          ...
 *
 * Thread: its holder's.  Lends until the next call or the input is freed: the data.
 * Fails: WEIR_EMALFORMED, WEIR_ETOOLONG (a limit), -ENOMEM; each further call fails, too.
 */
WEIR_API WEIR_MUST_USE int weir_http_multipart_next(weir_http_multipart *multipart,
                                                    weir_span *input, weir_span *ret_data);

/*
 * The part that has begun last.
 * Thread: its holder's.  Lends until the next part begins: the part.
 */
WEIR_API const weir_http_part *weir_http_multipart_part(const weir_http_multipart *multipart);

/*
 * To be called at the end of the content: fails if the last part has not ended.
 * Thread: its holder's.  Fails: WEIR_EMALFORMED.
 */
WEIR_API WEIR_MUST_USE int weir_http_multipart_finish(const weir_http_multipart *multipart);

/* --- uploads ---------------------------------------------------------------------------------- */

/*
 * The parts of a request, collected. Small ones are in memory; the others are in one temporary
 * file, which has no name and is gone with the upload.
 */
typedef struct weir_http_upload weir_http_upload;

/* Called as content arrives, with its bytes so far, and with the whole content's length, or
 * WEIR_HTTP_UNKNOWN_LENGTH. */
typedef void weir_http_progress_fn(weir_http_exchange *exchange, uint64_t bytes, int64_t total,
                                   void *user_data);

/* Zero means default. Build with WEIR_HTTP_UPLOAD_OPTIONS(...). */
typedef struct weir_http_upload_options {
    size_t size;
    const weir_http_multipart_options *multipart; /* limits; copied */
    int64_t max_memory_part; /* bytes of a part in memory; default 64 KiB; WEIR_OFF = all
                                content is written to the file */
    int64_t max_memory;      /* bytes of all parts in memory, with their heads; default 1 MiB;
                                heads beyond it are refused, content goes to the file */
    const char *folder;      /* of the temporary file; default "/tmp" */
    weir_group *group;       /* writes the file; default the process-wide executor */
    weir_http_progress_fn *progress; /* default none */
} weir_http_upload_options;

#define WEIR_HTTP_UPLOAD_OPTIONS(...) WEIR_OPTIONS(weir_http_upload_options, __VA_ARGS__)

/* Called once. If `err` is not 0, the upload is NULL and the exchange has been answered: 415 for
 * another Content-Type, 400, 413, or 500 (the file; no memory). The function takes the upload. */
typedef void weir_http_upload_fn(weir_http_exchange *exchange, weir_http_upload *upload, int err,
                                 void *user_data);

/*
 * Reads the content of a request. To be called by the handler of a route before it returns; the
 * route should be streaming, otherwise the content is in memory already. `fn` runs where the
 * handler does, perhaps before this function returns, also if there is no memory. The client's
 * sending is slowed down to the speed of the disk.
 * Thread: that of the route's handler.  Lends until it returns: options.
 */
WEIR_API void weir_http_upload_read(weir_http_exchange *exchange,
                                    const weir_http_upload_options *options,
                                    weir_http_upload_fn *fn, void *user_data);

/*
 * Releases an upload. NULL is ignored. The file is closed on the executor that wrote it, because
 * freeing a large one may take a while.
 * Thread: any.  Takes: upload.
 */
WEIR_API void weir_http_upload_release(weir_http_upload *upload);

/*
 * The number of parts; the index of the first one with a name, or -ENOENT; the head of a part, and
 * the length of its content.
 * Thread: any.  Lends until the upload is released: the part.
 */
WEIR_API size_t weir_http_upload_count(const weir_http_upload *upload);
WEIR_API ssize_t weir_http_upload_find(const weir_http_upload *upload, const char *name);
WEIR_API const weir_http_part *weir_http_upload_part(const weir_http_upload *upload, size_t index);
WEIR_API uint64_t weir_http_upload_length(const weir_http_upload *upload, size_t index);

/*
 * The content of a part that is in memory; data is NULL if it is in the file.
 * Thread: any.  Lends until the upload is released: the bytes.
 */
WEIR_API weir_span weir_http_upload_bytes(const weir_http_upload *upload, size_t index);

/*
 * Copies a part of the content of a part. May wait for the disk.
 * Thread: any that may wait.  Fails: WEIR_EBOUNDS, and with errors of pread.
 */
WEIR_API int weir_http_upload_copy(const weir_http_upload *upload, size_t index, uint64_t offset,
                                   void *bytes, size_t length);

/*
 * The content of a part as a message, to be sent or kept: a buffer, or a range of the file.
 * Thread: any.  Gives: msg, which may outlive the upload.  Fails: -ENOMEM, WEIR_EBOUNDS (no such
 * part).
 */
WEIR_API WEIR_MUST_USE int weir_http_upload_msg(const weir_http_upload *upload, size_t index,
                                                weir_msg **ret_msg);

/*
 * Creates a file with the content of a part. The path must not exist.
 * Thread: any that may wait.  Fails: -EEXIST, -ENOMEM, and with errors of open and pwrite; then the
 * file may be incomplete.
 */
WEIR_API int weir_http_upload_save(const weir_http_upload *upload, size_t index, const char *path);

#ifdef __cplusplus
}
#endif

#endif
