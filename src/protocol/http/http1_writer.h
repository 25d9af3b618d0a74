/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes messages as bytes: heads, content and ends.
 *
 * Heads and small content are gathered in one buffer, which is passed on when it is full, when a
 * promise waits for it, before content that is passed on by reference, and at a flush.
 */
#ifndef WEIR_PROTOCOL_HTTP_HTTP1_WRITER_H
#define WEIR_PROTOCOL_HTTP_HTTP1_WRITER_H

#include <weir/file_range.h>
#include <weir/handler.h>
#include <weir/http.h>

#include "protocol/http/http1_framing.h"
#include "protocol/http/message.h"

typedef struct weir__http1_writer {
    weir_buf *out;         /* gathered; NULL = nothing */
    weir_file_range *file; /* the last large one, which may not be sent yet; or NULL */
    uint64_t left;         /* of content with a length */
    uint32_t files;        /* number of large files so far */
    uint8_t content;       /* enum weir__http1_content of the message that is being written */
    bool is_open;          /* a head was written, its end was not */
    bool expects_more;     /* several messages are likely to be gathered */
    bool is_server;        /* its bytes are counted */
} weir__http1_writer;

/* How a head is framed, for weir__http1_writer_put_response and _put_request. */
typedef struct weir__http1_framed {
    enum weir__http1_content content;
    int64_t length;         /* Content-Length; -1 = none is written */
    const char *connection; /* the value of Connection; NULL = none */
    bool has_date;
    bool is_upgrade;
} weir__http1_framed;

/* Passes on what was gathered; `done`, which may be NULL, completes when it has been sent. */
void weir__http1_writer_pass(weir_ctx *ctx, weir__http1_writer *writer, weir_promise *done);

/* Append a whole head. Fail with -ENOMEM; then nothing was appended. */
int weir__http1_writer_put_response(weir_ctx *ctx, weir__http1_writer *writer,
                                    const weir_http_response *response,
                                    const weir__http1_framed *framed);
int weir__http1_writer_put_answer(weir_ctx *ctx, weir__http1_writer *writer,
                                  const weir__http_answer *answer);
int weir__http1_writer_put_request(weir_ctx *ctx, weir__http1_writer *writer,
                                   const weir_http_request *request,
                                   const weir__http1_framed *framed);

/*
 * Writes content, framed as the head said. Takes `msg` in all cases, and reports to `done` unless
 * it fails: -ENOMEM, WEIR_ETOOLONG (more than the content length), -ENOTSUP (of unknown length).
 */
int weir__http1_writer_put_content(weir_ctx *ctx, weir__http1_writer *writer, weir_msg *msg,
                                   weir_promise *done);

/*
 * Writes the end. Reports to `done` unless it fails: -ENOMEM, WEIR_ETRUNCATED (less than the
 * content length).
 */
int weir__http1_writer_put_end(weir_ctx *ctx, weir__http1_writer *writer, const weir_http_end *end,
                               weir_promise *done);

/* Why writing failed; NULL if the error says it. */
const char *weir__http1_writer_detail(int err);

/* True if much output waits for the peer to take it. */
bool weir__http1_writer_is_sending(weir_ctx *ctx, const weir__http1_writer *writer);

/* Forgets a file that has been sent, so that it can be closed. */
void weir__http1_writer_forget_file(weir__http1_writer *writer);

void weir__http1_writer_deinit(weir__http1_writer *writer);

#endif
