/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/resp.h - a value in the protocol of Redis: RESP2 and RESP3.
 *
 *      weir_resp *reply;
 *      err = weir_resp_create_text(WEIR_RESP_SIMPLE, "PONG", 4, &reply);
 *      if (!err)
 *          weir_write_and_flush(ctx, weir_resp_msg(reply), NULL);
 *
 * A value is a message (weir/msg.h): counted, passed on or released once. An aggregate keeps its
 * elements; one that is to live longer is retained. Once a value is on its way nobody changes it.
 * weir/resp.h makes values of bytes, and bytes of values.
 */
#ifndef WEIR_RESP_H
#define WEIR_RESP_H

#include <weir/buf.h>
#include <weir/options.h>
#include <weir/pipeline.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Each is the byte that such a value begins with. */
enum weir_resp_kind {
    /* RESP2 */
    WEIR_RESP_SIMPLE = '+', /* a text without line ends */
    WEIR_RESP_ERROR = '-',  /* the same: "ERR unknown command" */
    WEIR_RESP_INTEGER = ':',
    WEIR_RESP_BULK = '$', /* any bytes */
    WEIR_RESP_ARRAY = '*',
    /* RESP3 */
    WEIR_RESP_NULL = '_', /* RESP2's "$-1" and "*-1", too */
    WEIR_RESP_BOOLEAN = '#',
    WEIR_RESP_DOUBLE = ',',
    WEIR_RESP_BIG_NUMBER = '(', /* as text */
    WEIR_RESP_BULK_ERROR = '!',
    WEIR_RESP_VERBATIM = '=', /* "txt:" or such, then a text */
    WEIR_RESP_MAP = '%',      /* key, value, key, value, ... */
    WEIR_RESP_SET = '~',
    WEIR_RESP_PUSH = '>',      /* an array that nobody has asked for */
    WEIR_RESP_ATTRIBUTE = '|', /* a map about the value that follows: weir_resp_attributes */
};

typedef struct weir_resp weir_resp;

/*
 * What a message's type is if it is such a value: weir_resp_of asks.
 * Thread: any.
 */
extern WEIR_API const weir_msg_type weir_resp_type;

/* ---- life ---- */

/*
 * Creates a text of the kind SIMPLE, ERROR, BULK, BIG_NUMBER, BULK_ERROR or VERBATIM, with a copy
 * of these bytes.
 * Thread: any.  Gives: value.  Fails: -ENOMEM, -EINVAL (another kind; a line end in a SIMPLE or an
 * ERROR; not a number; VERBATIM without its "txt:").
 */
WEIR_API int weir_resp_create_text(enum weir_resp_kind kind, const void *bytes, size_t length,
                                   weir_resp **ret_value);

/*
 * The same of what is readable in a buffer, which is not copied.
 * Thread: any.  Takes: text.  Gives: value.  Fails: as weir_resp_create_text.
 */
WEIR_API int weir_resp_create_from(enum weir_resp_kind kind, weir_buf *text, weir_resp **ret_value);

/*
 * Creates the head of a BULK of `length` bytes, which follow it in buffers, composites, file ranges
 * or chunks whose length is known. Once written, none of these can be cancelled; and one that
 * cannot be sent, such as a file that has got shorter, is an error event and the end of the
 * connection: its length has been promised.
 * Thread: any.  Gives: value.  Fails: -ENOMEM.
 */
WEIR_API int weir_resp_create_bulk_header(uint64_t length, weir_resp **ret_value);

/*
 * Creates a value without bytes.
 * Thread: any.  Gives: value.  Fails: -ENOMEM.
 */
WEIR_API int weir_resp_create_null(weir_resp **ret_value);
WEIR_API int weir_resp_create_integer(int64_t integer, weir_resp **ret_value);
WEIR_API int weir_resp_create_boolean(bool boolean, weir_resp **ret_value);
WEIR_API int weir_resp_create_double(double number, weir_resp **ret_value);

/*
 * Creates an empty ARRAY, MAP, SET, PUSH or ATTRIBUTE.
 * Thread: any.  Gives: value.  Fails: -ENOMEM, -EINVAL (another kind).
 */
WEIR_API int weir_resp_create_aggregate(enum weir_resp_kind kind, weir_resp **ret_value);

/*
 * Adds an element at the end of an aggregate; to a map, keys and values by turns.
 * Thread: its holder's.  Takes: element.  Fails: -ENOMEM, -EINVAL (not an aggregate; the element is
 * an ATTRIBUTE, or a head).
 */
WEIR_API int weir_resp_add(weir_resp *value, weir_resp *element);

/*
 * Gives a value its attributes, instead of those that it had.
 * Thread: its holder's.  Takes: attributes.  Fails: -EINVAL (not an ATTRIBUTE).
 */
WEIR_API int weir_resp_set_attributes(weir_resp *value, weir_resp *attributes);

/*
 * Takes one more reference.
 * Thread: any.
 */
WEIR_API weir_resp *weir_resp_retain(weir_resp *value);

/*
 * Gives a reference back; NULL is fine.
 * Thread: any.  Takes: value.
 */
WEIR_API void weir_resp_release(weir_resp *value);

/*
 * The value that a message is, or NULL if it is something else; and the other way round.
 * Thread: any.
 */
WEIR_API weir_resp *weir_resp_of(weir_msg *msg);
WEIR_API weir_msg *weir_resp_msg(weir_resp *value);

/* ---- what it is ---- */

/*
 * Its kind.
 * Thread: its holder's.
 */
WEIR_API enum weir_resp_kind weir_resp_kind(const weir_resp *value);

/*
 * Whether it is a text that says this, whatever kind of text.
 * Thread: its holder's.
 */
WEIR_API bool weir_resp_is(const weir_resp *value, const char *text);

/*
 * The bytes of a text, those after "txt:" of a VERBATIM; of anything else none.
 * Thread: its holder's.  Lends until the value is released: the bytes.
 */
WEIR_API weir_span weir_resp_text(const weir_resp *value);

/*
 * The buffer with all the bytes of a text, borrowed: retain it to keep it without the value. NULL
 * of anything else.
 * Thread: its holder's.
 */
WEIR_API weir_buf *weir_resp_buf(const weir_resp *value);

/*
 * Whether it is the head of a BULK whose bytes follow in buffers; and how many do.
 * Thread: its holder's.
 */
WEIR_API bool weir_resp_is_bulk_header(const weir_resp *value);
WEIR_API uint64_t weir_resp_bulk_length(const weir_resp *value);

/*
 * The number of an INTEGER, 1 or 0 of a BOOLEAN, the whole part of a DOUBLE, what a text says if it
 * is such a number; 0 of anything else.
 * Thread: its holder's.
 */
WEIR_API int64_t weir_resp_integer(const weir_resp *value);

/*
 * The number of a DOUBLE, of an INTEGER, what a text says if it is a number; 0 of anything else.
 * Thread: its holder's.
 */
WEIR_API double weir_resp_double(const weir_resp *value);

/*
 * How many elements an aggregate has: of a map, keys and values; 0 of anything else.
 * Thread: its holder's.
 */
WEIR_API size_t weir_resp_count(const weir_resp *value);

/*
 * An element of an aggregate, borrowed; NULL beyond the last.
 * Thread: its holder's.
 */
WEIR_API weir_resp *weir_resp_at(const weir_resp *value, size_t index);

/*
 * The value to a key of a map, borrowed; NULL if there is none. In an array, as RESP2 has for maps,
 * keys are the elements 0, 2, 4, ...
 * Thread: its holder's.
 */
WEIR_API weir_resp *weir_resp_find(const weir_resp *value, const char *key);

/*
 * The attributes that came before it, borrowed; NULL if none did.
 * Thread: its holder's.
 */
WEIR_API weir_resp *weir_resp_attributes(const weir_resp *value);

/* --- resp codec ------------------------------------------------------------------------------- */

/*
 * The protocol of Redis in a pipeline: values (weir/resp.h) instead of bytes.
 *
 *      weir_resp_codec_add(pipeline, WEIR_RESP_OPTIONS(.inline_commands = true));
 *
 * What comes is read as values of RESP2 and RESP3 alike; their texts are views of the bytes that
 * came. A value beyond a limit is an error event, WEIR_ETOOLONG: it is skipped, and the next one is
 * read. Bytes that are no RESP are WEIR_EMALFORMED, and the end of reading. What RESP3 calls
 * streamed ("$?", "*?"), and no Redis sends, is not understood.
 *
 * Values that are written become bytes; other messages pass.
 */

/* The memory that an element counts as, besides the bytes of its text. */
#define WEIR_RESP_ELEMENT_MEMORY 256

/*
 * Zero means default. Build with WEIR_RESP_OPTIONS(.max_depth = 8, ...). The defaults are for a
 * server that has not authenticated its client. Each limit applies to one value as it is read.
 */
typedef struct weir_resp_options {
    size_t size;
    size_t max_bytes;    /* of all texts in a value: default 1 MiB, at most 2 GiB */
    size_t max_elements; /* of all aggregates in a value: default 4096 */
    size_t max_line;     /* a SIMPLE, an ERROR, a BIG_NUMBER, an inline command: default 64 KiB */
    unsigned max_depth;  /* aggregates within each other: default 8, at most 1024 */
    uint64_t stream_threshold; /* a BULK that is no element comes as a head and buffers if it has so
                             many bytes, max_bytes or not; default: none does */
    bool inline_commands; /* for servers: a line such as "SET key 'a value'" is an array of BULKs */
    int version;          /* what is written: 2 (default) or 3 */
    size_t max_memory;    /* of a value and its elements, each of which counts as its text and
                             WEIR_RESP_ELEMENT_MEMORY: default 2 MiB */
} weir_resp_options;

#define WEIR_RESP_OPTIONS(...) WEIR_OPTIONS(weir_resp_options, __VA_ARGS__)

/*
 * Adds the codec at the end of a pipeline, as "resp"; NULL = all default.
 * Thread: any.  Fails: -EINVAL (a limit that is too high, another version), and as
 * weir_pipeline_add.
 */
WEIR_API int weir_resp_codec_add(weir_pipeline *pipeline, const weir_resp_options *options);

/*
 * Changes the version that is written from here on: what a server does at HELLO.
 * Thread: loop.  Fails: -EINVAL (neither 2 nor 3), -ENOENT (there is no codec).
 */
WEIR_API int weir_resp_codec_set_version(weir_pipeline *pipeline, int version);

/*
 * Appends a value as bytes. In version 2 what only RESP3 has is written as Redis does: maps, sets
 * and pushes as arrays, booleans as integers, doubles, big numbers and verbatim texts as bulks;
 * attributes are left out.
 * Thread: the holder's of both.  Fails: -ENOMEM, -EINVAL (a key without a value; another version),
 * WEIR_EBOUNDS (beyond the buffer's max): then a part may have been written.
 */
WEIR_API int weir_resp_write(const weir_resp *value, int version, weir_buf *out);

/*
 * Appends a command: an array of bulks.
 * Thread: its holder's.  Fails: -ENOMEM, WEIR_EBOUNDS: then a part may have been written.
 */
WEIR_API int weir_resp_write_command(const weir_span *arguments, size_t count, weir_buf *out);

#ifdef __cplusplus
}
#endif

#endif
