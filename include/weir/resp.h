/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/resp.h - the Redis protocol, RESP2 and RESP3: values and a codec.
 *
 *      weir_resp *reply;
 *      err = weir_resp_create_text(WEIR_RESP_SIMPLE, "PONG", 4, &reply);
 *      if (!err)
 *          weir_write_and_flush(ctx, weir_resp_msg(reply), NULL);
 *
 * A value is a reference-counted message (weir/msg.h). An aggregate owns its elements; retain an
 * element to keep it longer. Do not change a value after it was written or passed on.
 */
#ifndef WEIR_RESP_H
#define WEIR_RESP_H

#include <weir/buf.h>
#include <weir/options.h>
#include <weir/pipeline.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- values: creating ------------------------------------------------------------------------- */

/* Each constant is the first byte of such a value. */
enum weir_resp_kind {
    /* RESP2 */
    WEIR_RESP_SIMPLE = '+', /* a text without line ends */
    WEIR_RESP_ERROR = '-',  /* the same: "ERR unknown command" */
    WEIR_RESP_INTEGER = ':',
    WEIR_RESP_BULK = '$', /* arbitrary bytes */
    WEIR_RESP_ARRAY = '*',
    /* RESP3 */
    WEIR_RESP_NULL = '_', /* also the "$-1" and "*-1" of RESP2 */
    WEIR_RESP_BOOLEAN = '#',
    WEIR_RESP_DOUBLE = ',',
    WEIR_RESP_BIG_NUMBER = '(', /* as text */
    WEIR_RESP_BULK_ERROR = '!',
    WEIR_RESP_VERBATIM = '=', /* "txt:" or another format, then a text */
    WEIR_RESP_MAP = '%',      /* key, value, key, value, ... */
    WEIR_RESP_SET = '~',
    WEIR_RESP_PUSH = '>',      /* out-of-band data */
    WEIR_RESP_ATTRIBUTE = '|', /* a map about the next value; see weir_resp_attributes */
};

typedef struct weir_resp weir_resp;

/*
 * Type tag of values; see weir_resp_of.
 * Thread: any.
 */
extern WEIR_API const weir_msg_type weir_resp_type;

/*
 * Creates a SIMPLE, ERROR, BULK, BIG_NUMBER, BULK_ERROR or VERBATIM with a copy of `length` bytes.
 * Thread: any.  Gives: value.  Fails: -ENOMEM, -EINVAL (another kind; a line end in a SIMPLE or an
 * ERROR; a BIG_NUMBER that is not an integer; a VERBATIM without a format).
 */
WEIR_API WEIR_MUST_USE int weir_resp_create_text(enum weir_resp_kind kind, const void *bytes,
                                                 size_t length, weir_resp **ret_value);

/*
 * The same, with the readable bytes of a buffer, without a copy.
 * Thread: any.  Takes: text.  Gives: value.  Fails: as weir_resp_create_text.
 */
WEIR_API WEIR_MUST_USE int weir_resp_create_from(enum weir_resp_kind kind, weir_buf *text,
                                                 weir_resp **ret_value);

/*
 * Creates the header of a BULK whose `length` bytes are written after it, as buffers, composites,
 * file ranges, or chunks of known length. None of these writes can be cancelled. If one of them
 * fails, as for a truncated file, an error is fired and the connection is closed, since the peer
 * expects `length` bytes.
 * Thread: any.  Gives: value.  Fails: -ENOMEM.
 */
WEIR_API WEIR_MUST_USE int weir_resp_create_bulk_header(uint64_t length, weir_resp **ret_value);

/*
 * Creates a scalar.
 * Thread: any.  Gives: value.  Fails: -ENOMEM.
 */
WEIR_API WEIR_MUST_USE int weir_resp_create_null(weir_resp **ret_value);
WEIR_API WEIR_MUST_USE int weir_resp_create_integer(int64_t integer, weir_resp **ret_value);
WEIR_API WEIR_MUST_USE int weir_resp_create_boolean(bool boolean, weir_resp **ret_value);
WEIR_API WEIR_MUST_USE int weir_resp_create_double(double number, weir_resp **ret_value);

/*
 * Creates an empty ARRAY, MAP, SET, PUSH or ATTRIBUTE.
 * Thread: any.  Gives: value.  Fails: -ENOMEM, -EINVAL (another kind).
 */
WEIR_API WEIR_MUST_USE int weir_resp_create_aggregate(enum weir_resp_kind kind,
                                                      weir_resp **ret_value);

/*
 * Appends an element to an aggregate; for a map, alternately a key and a value.
 * Thread: its holder's.  Takes: element.  Fails: -ENOMEM, -EINVAL (not an aggregate; the element is
 * an ATTRIBUTE or a bulk header).
 */
WEIR_API WEIR_MUST_USE int weir_resp_add(weir_resp *value, weir_resp *element);

/*
 * Replaces the attributes of a value.
 * Thread: its holder's.  Takes: attributes.  Fails: -EINVAL (not an ATTRIBUTE).
 */
WEIR_API WEIR_MUST_USE int weir_resp_set_attributes(weir_resp *value, weir_resp *attributes);

/*
 * Retains a value.
 * Thread: any.
 */
WEIR_API weir_resp *weir_resp_retain(weir_resp *value);

/*
 * Releases a value. NULL is ignored.
 * Thread: any.  Takes: value.
 */
WEIR_API void weir_resp_release(weir_resp *value);

/*
 * Casts a message to a value, NULL if it is something else; and a value to a message.
 * Thread: any.
 */
WEIR_API weir_resp *weir_resp_of(weir_msg *msg);
WEIR_API weir_msg *weir_resp_msg(weir_resp *value);

/* --- values: reading -------------------------------------------------------------------------- */

/*
 * The kind of a value.
 * Thread: its holder's.
 */
WEIR_API enum weir_resp_kind weir_resp_kind(const weir_resp *value);

/*
 * True if the value is a text of any kind that equals `text`.
 * Thread: its holder's.
 */
WEIR_API bool weir_resp_is(const weir_resp *value, const char *text);

/*
 * The bytes of a text; for a VERBATIM, without its format. Empty for other kinds.
 * Thread: its holder's.  Lends until the value is released: the bytes.
 */
WEIR_API weir_span weir_resp_text(const weir_resp *value);

/*
 * The buffer of a text. Borrowed: retain it to keep it longer than the value. NULL for other kinds.
 * Thread: its holder's.
 */
WEIR_API weir_buf *weir_resp_buf(const weir_resp *value);

/*
 * True if the value is the header of a BULK whose bytes follow in buffers; and their number.
 * Thread: its holder's.
 */
WEIR_API bool weir_resp_is_bulk_header(const weir_resp *value);
WEIR_API uint64_t weir_resp_bulk_length(const weir_resp *value);

/*
 * The value as an integer: an INTEGER, a BOOLEAN as 1 or 0, the integral part of a DOUBLE, or a
 * text that is an integer. 0 for anything else.
 * Thread: its holder's.
 */
WEIR_API int64_t weir_resp_integer(const weir_resp *value);

/*
 * The value as a double: a DOUBLE, an INTEGER, or a text that is a number. 0 for anything else.
 * Thread: its holder's.
 */
WEIR_API double weir_resp_double(const weir_resp *value);

/*
 * The number of elements of an aggregate; for a map, of keys and values. 0 for other kinds.
 * Thread: its holder's.
 */
WEIR_API size_t weir_resp_count(const weir_resp *value);

/*
 * An element of an aggregate. Borrowed. NULL if the index is out of range.
 * Thread: its holder's.
 */
WEIR_API weir_resp *weir_resp_at(const weir_resp *value, size_t index);

/*
 * Finds a value by its key in a map, or in an array that alternates keys and values as RESP2 sends
 * maps. Borrowed. NULL if there is none.
 * Thread: its holder's.
 */
WEIR_API weir_resp *weir_resp_find(const weir_resp *value, const char *key);

/*
 * The attributes that preceded the value. Borrowed. NULL if there are none.
 * Thread: its holder's.
 */
WEIR_API weir_resp *weir_resp_attributes(const weir_resp *value);

/* --- codec ------------------------------------------------------------------------------------ */

/*
 *      err = weir_resp_codec_add(pipeline, WEIR_RESP_OPTIONS(.inline_commands = true));
 *
 * Inbound: RESP2 and RESP3 are both accepted. Texts are slices of the input. A value over a limit
 * fires WEIR_ETOOLONG and is skipped; decoding continues with the next value. Malformed input fires
 * WEIR_EMALFORMED and ends decoding. The streamed types of RESP3 ("$?", "*?"), which no Redis
 * sends, are not supported.
 *
 * Outbound: values become bytes. Other messages are passed on.
 */

/* The memory that each element counts for, in addition to its text. */
#define WEIR_RESP_ELEMENT_MEMORY 256

/*
 * Zero means default. Build with WEIR_RESP_OPTIONS(.max_depth = 8, ...). The defaults suit a server
 * with unauthenticated clients. Each limit applies to one inbound value.
 */
typedef struct weir_resp_options {
    size_t size;
    size_t max_bytes;          /* of all texts of a value; default 1 MiB, at most 2 GiB */
    size_t max_elements;       /* of all aggregates of a value; default 4096 */
    size_t max_line;           /* SIMPLE, ERROR, BIG_NUMBER, inline command; default 64 KiB */
    unsigned max_depth;        /* of nested aggregates; default 8, at most 1024 */
    uint64_t stream_threshold; /* a top-level BULK of at least this length arrives as a bulk header
                                  and buffers, regardless of max_bytes; default: never */
    bool inline_commands; /* for servers: a line such as "SET key 'a value'" is an array of BULKs */
    int version;          /* to be written: 2 (default) or 3 */
    size_t max_memory;    /* of a value: its texts, and WEIR_RESP_ELEMENT_MEMORY per element;
                             default 2 MiB */
} weir_resp_options;

#define WEIR_RESP_OPTIONS(...) WEIR_OPTIONS(weir_resp_options, __VA_ARGS__)

/*
 * Adds the codec "resp" at the tail. NULL options = defaults.
 * Thread: any.  Fails: -EINVAL (a limit out of range, an unknown version), and as
 * weir_pipeline_add.
 */
WEIR_API WEIR_MUST_USE int weir_resp_codec_add(weir_pipeline *pipeline,
                                               const weir_resp_options *options);

/*
 * Changes the version for later writes, as a server does after HELLO.
 * Thread: loop.  Fails: -EINVAL (neither 2 nor 3), -ENOENT (no codec in the pipeline).
 */
WEIR_API int weir_resp_codec_set_version(weir_pipeline *pipeline, int version);

/*
 * Appends the encoded value to `out`. Version 2 encodes RESP3 kinds as Redis does: maps, sets and
 * pushes as arrays, booleans as integers, doubles, big numbers and verbatim texts as bulks;
 * attributes are omitted. It may have written a part before it fails.
 * Thread: the holder's of both.  Fails: -ENOMEM, -EINVAL (a map with a key without a value, an
 * unknown version), WEIR_EBOUNDS (above the buffer's maximum).
 */
WEIR_API WEIR_MUST_USE int weir_resp_write(const weir_resp *value, int version, weir_buf *out);

/*
 * Appends an encoded command, an array of bulks. It may have written a part before it fails.
 * Thread: its holder's.  Fails: -ENOMEM, WEIR_EBOUNDS.
 */
WEIR_API WEIR_MUST_USE int weir_resp_write_command(const weir_span *arguments, size_t count,
                                                   weir_buf *out);

#ifdef __cplusplus
}
#endif

#endif
