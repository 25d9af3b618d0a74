/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/resp_codec.h - the protocol of Redis in a pipeline: values (weir/resp.h) instead of bytes.
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
#ifndef WEIR_RESP_CODEC_H
#define WEIR_RESP_CODEC_H

#include <weir/pipeline.h>
#include <weir/resp.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The memory that an element counts as, besides the bytes of its text. */
#define WEIR_RESP_ELEMENT_MEMORY 256

/*
 * Zero means default. Build with WEIR_RESP_OPTIONS(.max_depth = 8, ...). The defaults are for a
 * server that has not authenticated its client. Each limit applies to one value as it is read.
 */
typedef struct weir_resp_options {
    size_t size;
    size_t max_bytes;     /* of all texts in a value: default 1 MiB, at most 2 GiB */
    size_t max_elements;  /* of all aggregates in a value: default 4096 */
    size_t max_line;      /* a SIMPLE, an ERROR, a BIG_NUMBER, an inline command: default 64 KiB */
    unsigned max_depth;   /* aggregates within each other: default 8, at most 1024 */
    uint64_t stream_from; /* a BULK that is no element comes as a head and buffers if it has so many
                             bytes, max_bytes or not; default: none does */
    bool inline_commands; /* for servers: a line such as "SET key 'a value'" is an array of BULKs */
    int version;          /* what is written: 2 (default) or 3 */
    size_t max_memory;    /* of a value and its elements, each of which counts as its text and
                             WEIR_RESP_ELEMENT_MEMORY: default 2 MiB */
} weir_resp_options;

#define WEIR_RESP_OPTIONS(...) \
    (&(const weir_resp_options){.size = sizeof(weir_resp_options), __VA_ARGS__})

/*
 * Makes options that are all default.
 * Thread: any.
 */
WEIR_API void weir_resp_options_init(weir_resp_options *options);

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
WEIR_API int weir_resp_write(weir_buf *out, const weir_resp *value, int version);

/*
 * Appends a command: an array of bulks.
 * Thread: its holder's.  Fails: -ENOMEM, WEIR_EBOUNDS: then a part may have been written.
 */
WEIR_API int weir_resp_write_command(weir_buf *out, const weir_span *arguments, size_t count);

#ifdef __cplusplus
}
#endif

#endif
