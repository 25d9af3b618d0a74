/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/http.h - HTTP messages: requests, responses, their headers and their ends.
 *
 * A message passes through a pipeline as one head, any number of pieces of content, and one end:
 *
 *      weir_http_request or weir_http_response     the head: start line and headers
 *      weir_buf, weir_composite, weir_file_range   the content, without a wrapper
 *      weir_http_end                               the end, with trailers if there are any
 *
 * weir_chunks can be content, too, if weir_chunked_writing_add stands behind the codec.
 *
 * These are the same for every version of HTTP: a codec, such as weir/http1.h, makes them of bytes.
 * A head keeps the received bytes and stores names and values as offsets into them. Names of common
 * header fields are numbers (WEIR_HTTP_HOST), so that they are found without comparing text. Names
 * are case-insensitive; order and duplicates are kept.
 *
 * The framing of a message is not part of its headers: weir_http_request_set_content_length and
 * weir_http_response_set_content_length say how much content follows. A codec ignores the
 * fields Content-Length, Transfer-Encoding, Connection, Keep-Alive and Proxy-Connection of a head
 * that is written, and writes its own. So a received head can be forwarded as it is.
 *
 * Link with libweir-http.
 */
#ifndef WEIR_HTTP_H
#define WEIR_HTTP_H

#include <weir/buf.h>
#include <weir/msg.h>
#include <weir/pipeline.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- names ------------------------------------------------------------------------------------ */

enum weir_http_method {
    WEIR_HTTP_METHOD_OTHER, /* see weir_http_request_method_text */
    WEIR_HTTP_METHOD_GET,
    WEIR_HTTP_METHOD_HEAD,
    WEIR_HTTP_METHOD_POST,
    WEIR_HTTP_METHOD_PUT,
    WEIR_HTTP_METHOD_DELETE,
    WEIR_HTTP_METHOD_CONNECT,
    WEIR_HTTP_METHOD_OPTIONS,
    WEIR_HTTP_METHOD_TRACE,
    WEIR_HTTP_METHOD_PATCH,
};

enum weir_http_version {
    WEIR_HTTP_1_0 = 10,
    WEIR_HTTP_1_1 = 11,
    WEIR_HTTP_2 = 20,
};

/* The names of header fields that are found by number. The order is not part of the API. */
enum weir_http_name {
    WEIR_HTTP_OTHER, /* any other name */
    WEIR_HTTP_ACCEPT,
    WEIR_HTTP_ACCEPT_ENCODING,
    WEIR_HTTP_ACCEPT_LANGUAGE,
    WEIR_HTTP_ACCEPT_RANGES,
    WEIR_HTTP_ACCESS_CONTROL_ALLOW_CREDENTIALS,
    WEIR_HTTP_ACCESS_CONTROL_ALLOW_HEADERS,
    WEIR_HTTP_ACCESS_CONTROL_ALLOW_METHODS,
    WEIR_HTTP_ACCESS_CONTROL_ALLOW_ORIGIN,
    WEIR_HTTP_ACCESS_CONTROL_EXPOSE_HEADERS,
    WEIR_HTTP_ACCESS_CONTROL_MAX_AGE,
    WEIR_HTTP_ACCESS_CONTROL_REQUEST_HEADERS,
    WEIR_HTTP_ACCESS_CONTROL_REQUEST_METHOD,
    WEIR_HTTP_AGE,
    WEIR_HTTP_ALLOW,
    WEIR_HTTP_AUTHORIZATION,
    WEIR_HTTP_CACHE_CONTROL,
    WEIR_HTTP_CONNECTION,
    WEIR_HTTP_CONTENT_DISPOSITION,
    WEIR_HTTP_CONTENT_ENCODING,
    WEIR_HTTP_CONTENT_LANGUAGE,
    WEIR_HTTP_CONTENT_LENGTH,
    WEIR_HTTP_CONTENT_LOCATION,
    WEIR_HTTP_CONTENT_RANGE,
    WEIR_HTTP_CONTENT_SECURITY_POLICY,
    WEIR_HTTP_CONTENT_TYPE,
    WEIR_HTTP_COOKIE,
    WEIR_HTTP_DATE,
    WEIR_HTTP_ETAG,
    WEIR_HTTP_EXPECT,
    WEIR_HTTP_EXPIRES,
    WEIR_HTTP_FORWARDED,
    WEIR_HTTP_HOST,
    WEIR_HTTP_IF_MATCH,
    WEIR_HTTP_IF_MODIFIED_SINCE,
    WEIR_HTTP_IF_NONE_MATCH,
    WEIR_HTTP_IF_RANGE,
    WEIR_HTTP_IF_UNMODIFIED_SINCE,
    WEIR_HTTP_KEEP_ALIVE,
    WEIR_HTTP_LAST_EVENT_ID,
    WEIR_HTTP_LAST_MODIFIED,
    WEIR_HTTP_LINK,
    WEIR_HTTP_LOCATION,
    WEIR_HTTP_ORIGIN,
    WEIR_HTTP_PROXY_AUTHENTICATE,
    WEIR_HTTP_PROXY_AUTHORIZATION,
    WEIR_HTTP_PROXY_CONNECTION,
    WEIR_HTTP_RANGE,
    WEIR_HTTP_REFERER,
    WEIR_HTTP_REFERRER_POLICY,
    WEIR_HTTP_RETRY_AFTER,
    WEIR_HTTP_SEC_WEBSOCKET_ACCEPT,
    WEIR_HTTP_SEC_WEBSOCKET_EXTENSIONS,
    WEIR_HTTP_SEC_WEBSOCKET_KEY,
    WEIR_HTTP_SEC_WEBSOCKET_PROTOCOL,
    WEIR_HTTP_SEC_WEBSOCKET_VERSION,
    WEIR_HTTP_SERVER,
    WEIR_HTTP_SET_COOKIE,
    WEIR_HTTP_STRICT_TRANSPORT_SECURITY,
    WEIR_HTTP_TE,
    WEIR_HTTP_TRAILER,
    WEIR_HTTP_TRANSFER_ENCODING,
    WEIR_HTTP_UPGRADE,
    WEIR_HTTP_USER_AGENT,
    WEIR_HTTP_VARY,
    WEIR_HTTP_VIA,
    WEIR_HTTP_WWW_AUTHENTICATE,
    WEIR_HTTP_X_CONTENT_TYPE_OPTIONS,
    WEIR_HTTP_X_FORWARDED_FOR,
    WEIR_HTTP_X_FORWARDED_PROTO,
    WEIR_HTTP_X_FRAME_OPTIONS,
    WEIR_HTTP_X_REQUEST_ID,
    WEIR_HTTP_NAME_COUNT,
};

/* A content length that is not known in advance. */
#define WEIR_HTTP_UNKNOWN_LENGTH ((int64_t)-1)

/*
 * The text of a method ("" for OTHER) and the customary spelling of a name, such as "Content-Type".
 * Thread: any.
 */
WEIR_API const char *weir_http_method_text(enum weir_http_method method);
WEIR_API const char *weir_http_name_text(enum weir_http_name name);

/*
 * The number of a method or a name; OTHER if it has none. Methods are case-sensitive, names are
 * not.
 * Thread: any.
 */
WEIR_API enum weir_http_method weir_http_method_of(weir_span text);
WEIR_API enum weir_http_name weir_http_name_of(weir_span text);

/*
 * The reason phrase of a status: "Not Found" for 404, "Unknown" for a status without one.
 * Thread: any.
 */
WEIR_API const char *weir_http_status_text(int status);

/* --- headers ---------------------------------------------------------------------------------- */

/* The header fields of a head, or the trailers of an end, which owns them. */
typedef struct weir_http_headers weir_http_headers;

typedef struct weir_http_field {
    enum weir_http_name id; /* WEIR_HTTP_OTHER if the name has no number */
    weir_span name;         /* as received or added */
    weir_span value;        /* without blanks around it */
} weir_http_field;

/*
 * The number of fields, and field `index`, from 0.
 * Thread: its holder's.  Lends until the headers are changed: the spans.
 */
WEIR_API size_t weir_http_headers_count(const weir_http_headers *headers);
WEIR_API weir_http_field weir_http_headers_at(const weir_http_headers *headers, size_t index);

/*
 * The value of the first field with a name; data is NULL if there is none. A name that is always a
 * number is found faster.
 * Thread: its holder's.  Lends until the headers are changed: the value.
 */
WEIR_API weir_span weir_http_headers_get(const weir_http_headers *headers,
                                         enum weir_http_name name);
WEIR_API weir_span weir_http_headers_get_named(const weir_http_headers *headers, const char *name);

/*
 * Finds the next field with a name, from `*index` on, which begins at 0. Returns false if there is
 * none; otherwise sets `*index` behind the field.
 * Thread: its holder's.  Lends until the headers are changed: the value.
 */
WEIR_API bool weir_http_headers_next(const weir_http_headers *headers, enum weir_http_name name,
                                     size_t *index, weir_span *ret_value);

/*
 * True if a comma-separated field, such as Connection, contains a token, case-insensitively; in any
 * of its lines.
 * Thread: its holder's.
 */
WEIR_API bool weir_http_headers_have_token(const weir_http_headers *headers,
                                           enum weir_http_name name, const char *token);

/*
 * Adds a field; copies its value. Blanks around the value are removed.
 * Thread: its holder's.  Fails: -ENOMEM, -EINVAL (OTHER; not a token; CR, LF, NUL or another
 * control character in the value), WEIR_ETOOLONG (more than 64 KiB of fields).
 */
WEIR_API int weir_http_headers_add(weir_http_headers *headers, enum weir_http_name name,
                                   weir_span value);
WEIR_API int weir_http_headers_add_text(weir_http_headers *headers, enum weir_http_name name,
                                        const char *value);
WEIR_API int weir_http_headers_add_named(weir_http_headers *headers, weir_span name,
                                         weir_span value);

/*
 * Replaces all fields of a name by one.
 * Thread: its holder's.  Fails: as weir_http_headers_add; then nothing has changed.
 */
WEIR_API int weir_http_headers_set(weir_http_headers *headers, enum weir_http_name name,
                                   weir_span value);
WEIR_API int weir_http_headers_set_text(weir_http_headers *headers, enum weir_http_name name,
                                        const char *value);

/*
 * Removes all fields of a name. Returns their number.
 * Thread: its holder's.
 */
WEIR_API size_t weir_http_headers_remove(weir_http_headers *headers, enum weir_http_name name);
WEIR_API size_t weir_http_headers_remove_named(weir_http_headers *headers, const char *name);

/*
 * Removes the fields that apply to one connection only (RFC 9110 7.6.1): Connection and the fields
 * it names, Keep-Alive, Proxy-Connection, TE, Transfer-Encoding and Upgrade. For proxies.
 * Thread: its holder's.
 */
WEIR_API void weir_http_headers_remove_hop_by_hop(weir_http_headers *headers);

/*
 * Appends copies of all fields of `from`.
 * Thread: the holder's of both.  Fails: as weir_http_headers_add.
 */
WEIR_API int weir_http_headers_append(weir_http_headers *headers, const weir_http_headers *from);

/* --- requests --------------------------------------------------------------------------------- */

typedef struct weir_http_request weir_http_request;

/*
 * Type tag of requests; see weir_http_request_of.
 * Thread: any.
 */
extern WEIR_API const weir_msg_type weir_http_request_type;

/*
 * Creates a request without headers and without content, with copies of method and target. The
 * target is one of the four forms of RFC 9112 3.2: "/path?query", "http://host/path", "host:port"
 * (CONNECT) or "*" (OPTIONS).
 * Thread: any.  Gives: request.  Fails: -ENOMEM, -EINVAL (the method is not a token; the target is
 * empty or has blanks, control characters or bytes above 126).
 */
WEIR_API WEIR_MUST_USE int weir_http_request_create(const char *method, const char *target,
                                                    weir_http_request **ret_request);

/*
 * Casts a message to a request. NULL if it is something else.
 * Thread: any.
 */
static inline weir_http_request *weir_http_request_of(weir_msg *msg)
{
    return msg != NULL && weir_msg_is(msg, &weir_http_request_type)
               ? (weir_http_request *)(void *)msg
               : NULL;
}

/*
 * Casts a request to a message.
 * Thread: any.
 */
static inline weir_msg *weir_http_request_msg(weir_http_request *request)
{
    return (weir_msg *)(void *)request;
}

/*
 * The parts of the start line. The target is as received. `path` and `query` are its parts without
 * "?", still percent-encoded; the path is "*" or "" if the target has none. `authority` is that of
 * an absolute target, otherwise the Host field; "" if there is neither.
 * Thread: its holder's.  Lends until the request is released or changed: the spans.
 */
WEIR_API enum weir_http_method weir_http_request_method(const weir_http_request *request);
WEIR_API weir_span weir_http_request_method_text(const weir_http_request *request);
WEIR_API weir_span weir_http_request_target(const weir_http_request *request);
WEIR_API weir_span weir_http_request_path(const weir_http_request *request);
WEIR_API weir_span weir_http_request_query(const weir_http_request *request);
WEIR_API weir_span weir_http_request_authority(const weir_http_request *request);
WEIR_API enum weir_http_version weir_http_request_version(const weir_http_request *request);

/*
 * Replaces the target, with a copy.
 * Thread: its holder's.  Fails: as weir_http_request_create.
 */
WEIR_API int weir_http_request_set_target(weir_http_request *request, weir_span target);

/*
 * The headers, borrowed.
 * Thread: its holder's.
 */
WEIR_API weir_http_headers *weir_http_request_headers(const weir_http_request *request);

/*
 * The length of the content that follows: 0 if there is none, WEIR_HTTP_UNKNOWN_LENGTH if only the
 * end shows it.
 * Thread: its holder's.  Fails: -EINVAL (below WEIR_HTTP_UNKNOWN_LENGTH).
 */
WEIR_API int64_t weir_http_request_content_length(const weir_http_request *request);
WEIR_API int weir_http_request_set_content_length(weir_http_request *request, int64_t length);

/*
 * True if the client waits for a response with status 100 before it sends the content.
 * Thread: its holder's.
 */
WEIR_API bool weir_http_request_expects_continue(const weir_http_request *request);

/* --- responses -------------------------------------------------------------------------------- */

typedef struct weir_http_response weir_http_response;

/*
 * Type tag of responses; see weir_http_response_of.
 * Thread: any.
 */
extern WEIR_API const weir_msg_type weir_http_response_type;

/*
 * Creates a response without headers and without content. A response with status 100 to 199, except
 * 101, is followed by another response instead of content and an end.
 * Thread: any.  Gives: response.  Fails: -ENOMEM, -EINVAL (status below 100 or above 599).
 */
WEIR_API WEIR_MUST_USE int weir_http_response_create(int status, weir_http_response **ret_response);

/*
 * Casts a message to a response. NULL if it is something else.
 * Thread: any.
 */
static inline weir_http_response *weir_http_response_of(weir_msg *msg)
{
    return msg != NULL && weir_msg_is(msg, &weir_http_response_type)
               ? (weir_http_response *)(void *)msg
               : NULL;
}

/*
 * Casts a response to a message.
 * Thread: any.
 */
static inline weir_msg *weir_http_response_msg(weir_http_response *response)
{
    return (weir_msg *)(void *)response;
}

/*
 * The status; the reason phrase, as received or the usual one; the version that was received.
 * Thread: its holder's.  Lends until the response is released: the reason.
 */
WEIR_API int weir_http_response_status(const weir_http_response *response);
WEIR_API weir_span weir_http_response_reason(const weir_http_response *response);
WEIR_API enum weir_http_version weir_http_response_version(const weir_http_response *response);

/*
 * Replaces the status.
 * Thread: its holder's.  Fails: -EINVAL (below 100 or above 599).
 */
WEIR_API int weir_http_response_set_status(weir_http_response *response, int status);

/*
 * The headers, borrowed.
 * Thread: its holder's.
 */
WEIR_API weir_http_headers *weir_http_response_headers(const weir_http_response *response);

/*
 * The length of the content that follows; WEIR_HTTP_UNKNOWN_LENGTH if only the end shows it. In a
 * response to HEAD and with status 304, the length that the content would have; none follows.
 * Thread: its holder's.  Fails: -EINVAL (below WEIR_HTTP_UNKNOWN_LENGTH).
 */
WEIR_API int64_t weir_http_response_content_length(const weir_http_response *response);
WEIR_API int weir_http_response_set_content_length(weir_http_response *response, int64_t length);

/*
 * True if the codec is to end the connection after this response: "Connection: close".
 * Thread: its holder's.
 */
WEIR_API bool weir_http_response_closes(const weir_http_response *response);
WEIR_API void weir_http_response_set_closes(weir_http_response *response, bool closes);

/* --- ends ------------------------------------------------------------------------------------- */

typedef struct weir_http_end weir_http_end;

/*
 * Type tag of ends; see weir_http_end_of.
 * Thread: any.
 */
extern WEIR_API const weir_msg_type weir_http_end_type;

/*
 * Creates an end, with empty trailers.
 * Thread: any.  Gives: end.  Fails: -ENOMEM.
 */
WEIR_API WEIR_MUST_USE int weir_http_end_create(weir_http_end **ret_end);

/*
 * The static end without trailers, as a message to pass on or to write. It is not counted.
 * Thread: any.  Gives: the message.
 */
WEIR_API weir_msg *weir_http_end_static(void);

/*
 * Casts a message to an end. NULL if it is something else.
 * Thread: any.
 */
static inline weir_http_end *weir_http_end_of(weir_msg *msg)
{
    return msg != NULL && weir_msg_is(msg, &weir_http_end_type) ? (weir_http_end *)(void *)msg
                                                                : NULL;
}

/*
 * Casts an end to a message.
 * Thread: any.
 */
static inline weir_msg *weir_http_end_msg(weir_http_end *end)
{
    return (weir_msg *)(void *)end;
}

/*
 * The trailers, borrowed; NULL if there are none.
 * Thread: its holder's.
 */
WEIR_API weir_http_headers *weir_http_end_trailers(const weir_http_end *end);

/* --- whole messages --------------------------------------------------------------------------- */

/* A head with all of its content: what an aggregator makes of a head, its content and its end. */
typedef struct weir_http_full weir_http_full;

/*
 * Casts a message to a whole message. NULL if it is something else.
 * Thread: any.
 */
WEIR_API weir_http_full *weir_http_full_of(weir_msg *msg);
WEIR_API weir_msg *weir_http_full_msg(weir_http_full *full);

/*
 * Its parts, borrowed: the request or the response, NULL if it is the other; the content, which is
 * one buffer, perhaps empty; the trailers, NULL if there are none.
 * Thread: its holder's.
 */
WEIR_API weir_http_request *weir_http_full_request(const weir_http_full *full);
WEIR_API weir_http_response *weir_http_full_response(const weir_http_full *full);
WEIR_API weir_buf *weir_http_full_content(const weir_http_full *full);
WEIR_API weir_http_headers *weir_http_full_trailers(const weir_http_full *full);

/*
 * Adds a handler that turns heads, content and ends that are read into whole messages. It writes
 * status 100 to a client that waits for it. Content beyond `max_content` bytes (0 = 1 MiB) is
 * refused: a server's client gets status 413 and the connection is closed; on a client's channel
 * the error WEIR_ETOOLONG is fired, and it is closed. Responses with status 100 to 199, except 101,
 * are passed on as heads.
 * Thread: any.  Fails: as weir_pipeline_add.
 */
WEIR_API WEIR_MUST_USE int weir_http_aggregator_add(weir_pipeline *pipeline, uint64_t max_content);

/* --- refusals --------------------------------------------------------------------------------- */

/* The event that a server has refused a request before the application saw it, or in the middle of
 * its content. */
typedef struct weir_http_refusal weir_http_refusal;

/*
 * Casts an event to a refusal. NULL if it is something else.
 * Thread: any.
 */
WEIR_API const weir_http_refusal *weir_http_refusal_of(const weir_msg *event);

/*
 * The status that was sent, and why: "several Host fields".
 * Thread: any.
 */
WEIR_API int weir_http_refusal_status(const weir_http_refusal *refusal);
WEIR_API const char *weir_http_refusal_detail(const weir_http_refusal *refusal);

#ifdef __cplusplus
}
#endif

#endif
