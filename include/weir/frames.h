/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/frames.h - frames that say how long they are, in a field of their header.
 *
 *      weir_length_field_add(pipeline, WEIR_LENGTH_FIELD_OPTIONS(.width = 2, .strip = 2));
 *
 *      00 05 h e l l o 00 02 o k       ->  "hello", "ok"
 *
 * The field need not be first, nor count just what follows it:
 *
 *      +--------+-----------+-------------+--------------------------+
 *      | offset |   width   |             |                          |
 *      +--------+-----------+-------------+--------------------------+
 *                           |  what the field says, plus adjustment  |
 *
 *      the field counts all of the frame:     .adjustment = -(offset + width)
 *      the field counts what is behind four   .adjustment = 4
 *      bytes of other things:
 *
 * What is passed on are slices of what came in. A frame over the limit is an error, WEIR_ETOOLONG,
 * and is skipped: the channel goes on if somebody handles the error, since at the tail it closes
 * it. A field that says less than nothing is WEIR_EMALFORMED, after which nothing is decoded any
 * more. The other direction is weir/frames.h.
 */
#ifndef WEIR_FRAMES_H
#define WEIR_FRAMES_H

#include <weir/buf.h>
#include <weir/options.h>
#include <weir/pipeline.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zero means default. Build with WEIR_LENGTH_FIELD_OPTIONS(...). */
typedef struct weir_length_field_options {
    size_t size;
    size_t max_length;          /* for the whole frame, header and all; default 1 MiB */
    size_t offset;              /* where the field is in the frame */
    size_t width;               /* 1 to 8 bytes; default 4 */
    enum weir_byte_order order; /* default big-endian */
    int64_t adjustment;         /* see above; may be negative */
    size_t strip;               /* so many bytes at the front are not passed on */
    bool report_after_skip;     /* of a frame over the limit: when it has been skipped */
} weir_length_field_options;

#define WEIR_LENGTH_FIELD_OPTIONS(...) WEIR_OPTIONS(weir_length_field_options, __VA_ARGS__)

/*
 * Adds the decoder, "length-field", at the tail. NULL options: every default.
 * Thread: any.  Lends until it returns: options.  Fails: -EINVAL (no frame could be legal; the log
 * says why), and as weir_pipeline_add.
 */
WEIR_API int weir_length_field_add(weir_pipeline *pipeline,
                                   const weir_length_field_options *options);

/* --- length prepender ------------------------------------------------------------------------- */

/*
 * Says before each message that is written how long it is: the other
 * direction of weir/frames.h.
 *
 *      weir_length_prepender_add(pipeline, WEIR_LENGTH_PREPENDER_OPTIONS(.width = 2));
 *
 *      "hello", "ok"  ->  00 05 h e l l o 00 02 o k
 *
 * Buffers, composites and file ranges become frames, none of which is copied; what is none of these
 * is passed on as it is. One that is too long for the field fails with WEIR_ETOOLONG. A file range
 * goes out in two writes: if one of them fails, the channel is aborted.
 */

/* Zero means default. Build with WEIR_LENGTH_PREPENDER_OPTIONS(...). */
typedef struct weir_length_prepender_options {
    size_t size;
    size_t width;               /* 1 to 8 bytes; default 4 */
    enum weir_byte_order order; /* default big-endian */
    int64_t adjustment;         /* is added to what the field says; may be negative */
    bool counts_itself;         /* the field counts its own bytes, too */
} weir_length_prepender_options;

#define WEIR_LENGTH_PREPENDER_OPTIONS(...) WEIR_OPTIONS(weir_length_prepender_options, __VA_ARGS__)

/*
 * Adds the encoder, "length-prepender", at the tail. NULL options: every default.
 * Thread: any.  Lends until it returns: options.  Fails: -EINVAL (the log says why), and as
 * weir_pipeline_add.
 */
WEIR_API int weir_length_prepender_add(weir_pipeline *pipeline,
                                       const weir_length_prepender_options *options);

/* --- lines ------------------------------------------------------------------------------------ */

/*
 * A line of text is a message.
 *
 *      weir_lines_add(pipeline, NULL);
 *
 *      "one\ntwo\r\n\nthr"     ->  "one", "two", ""          and "thr", when its end has come
 *
 * What is passed on are slices of what came in. A line over the limit is an error, WEIR_ETOOLONG,
 * and is skipped: the channel goes on if somebody handles the error, since at the tail it closes
 * it. What comes after the last line end of a stream is not a line, and is dropped.
 */

/* What a line ends with. */
enum weir_line_end {
    WEIR_LINE_END_ANY, /* either of: */
    WEIR_LINE_END_LF,  /* a CR is a character like others */
    WEIR_LINE_END_CRLF,
};

/* Zero means default. Build with WEIR_LINES_OPTIONS(...). */
typedef struct weir_lines_options {
    size_t size;
    size_t max_length; /* for a line without its end, in bytes; default 64 KiB */
    enum weir_line_end end;
    bool keep_end;          /* it is passed on with the line */
    bool report_after_skip; /* of a line over the limit: when it has been skipped */
} weir_lines_options;

#define WEIR_LINES_OPTIONS(...) WEIR_OPTIONS(weir_lines_options, __VA_ARGS__)

/*
 * Adds the decoder, "lines", at the tail. NULL options: every default.
 * Thread: any.  Lends until it returns: options.  Fails: -EINVAL (the log says why), and as
 * weir_pipeline_add.
 */
WEIR_API int weir_lines_add(weir_pipeline *pipeline, const weir_lines_options *options);

/* --- delimited -------------------------------------------------------------------------------- */

/*
 * Frames that end with a delimiter, or with one of several.
 *
 *      const weir_span ends[] = {weir_span_of_text(";"), weir_span_of("\0", 1)};
 *      weir_delimited_add(pipeline, WEIR_DELIMITED_OPTIONS(.delimiters = ends, .count = 2));
 *
 *      "one;two\0thr"          ->  "one", "two"               and "thr", when its end has come
 *
 * The delimiter that begins first ends the frame; of those that begin at the same place, the first
 * of the list. So of "\r\n" and "\r" the longer one comes first.
 *
 * What is passed on are slices of what came in. A frame over the limit is an error, WEIR_ETOOLONG,
 * and is skipped: the channel goes on if somebody handles the error, since at the tail it closes
 * it. What comes after the last delimiter of a stream is dropped.
 */

/* The most bytes that a delimiter may have. */
#define WEIR_DELIMITER_MAX 256

/* Zero means default. Build with WEIR_DELIMITED_OPTIONS(...). */
typedef struct weir_delimited_options {
    size_t size;
    const weir_span *delimiters; /* at least one, none of them empty; copied */
    size_t count;
    size_t max_length;      /* for a frame without its delimiter, in bytes; default 64 KiB */
    bool keep_delimiter;    /* it is passed on with the frame */
    bool report_after_skip; /* of a frame over the limit: when it has been skipped */
} weir_delimited_options;

#define WEIR_DELIMITED_OPTIONS(...) WEIR_OPTIONS(weir_delimited_options, __VA_ARGS__)

/*
 * Adds the decoder, "delimited", at the tail.
 * Thread: any.  Lends until it returns: options, delimiters.  Fails: -EINVAL (the log says why),
 * and as weir_pipeline_add.
 */
WEIR_API int weir_delimited_add(weir_pipeline *pipeline, const weir_delimited_options *options);

/* --- fixed frames ----------------------------------------------------------------------------- */

/*
 * Frames that all have the same length.
 *
 *      weir_fixed_frames_add(pipeline, 3);
 *
 *      "abcdefgh"      ->  "abc", "def"               and "gh?", when its end has come
 *
 * What is passed on are slices of what came in. What is left at the end of a stream is dropped.
 */

/*
 * Adds the decoder, "fixed-frames", at the tail: frames of `length` bytes.
 * Thread: any.  Fails: -EINVAL (the length is 0, or beyond what a buffer can hold), and as
 * weir_pipeline_add.
 */
WEIR_API int weir_fixed_frames_add(weir_pipeline *pipeline, size_t length);

/* --- varint frames ---------------------------------------------------------------------------- */

/*
 * Frames with their length before them as a varint of at most 32 bits, as
 * Protocol Buffers write messages one after the other; both ways.
 *
 *      weir_varint_frames_add(pipeline, NULL);
 *
 *      ac 02 <300 bytes> 02 o k        <->  <300 bytes>, "ok"
 *
 * In: slices of what came. A frame over the limit is an error, WEIR_ETOOLONG, and is skipped: the
 * channel goes on if somebody handles the error, since at the tail it closes it. A length of more
 * than 32 bits, or one that is not in its shortest form, is WEIR_EMALFORMED, after which nothing is
 * decoded any more.
 *
 * Out: buffers, composites and file ranges become frames, none of which is copied; what is none of
 * these is passed on as it is. A file range goes out in two writes: if one of them fails, the
 * channel is aborted.
 */

/* Zero means default. Build with WEIR_VARINT_FRAMES_OPTIONS(...). */
typedef struct weir_varint_frames_options {
    size_t size;
    size_t max_length;      /* for what comes in, without its length, in bytes; default 1 MiB */
    bool report_after_skip; /* of a frame over the limit: when it has been skipped */
} weir_varint_frames_options;

#define WEIR_VARINT_FRAMES_OPTIONS(...) WEIR_OPTIONS(weir_varint_frames_options, __VA_ARGS__)

/*
 * Adds the codec, "varint-frames", at the tail. NULL options: every default.
 * Thread: any.  Lends until it returns: options.  Fails: -EINVAL (the log says why), and as
 * weir_pipeline_add.
 */
WEIR_API int weir_varint_frames_add(weir_pipeline *pipeline,
                                    const weir_varint_frames_options *options);

/* --- netstrings ------------------------------------------------------------------------------- */

/*
 * Netstrings (D. J. Bernstein, 1997), as SCGI and QMTP use them; both ways.
 *
 *      weir_netstrings_add(pipeline, NULL);
 *
 *      "5:hello,0:,2:ok,"      <->  "hello", "", "ok"
 *
 * In: slices of what came. A string over the limit is an error, WEIR_ETOOLONG, and is skipped: the
 * channel goes on if somebody handles the error, since at the tail it closes it. What is no
 * netstring is WEIR_EMALFORMED, after which nothing is decoded any more.
 *
 * Out: buffers, composites and file ranges become netstrings, none of which is copied; what is none
 * of these is passed on as it is. A file range goes out in three writes: if one of them fails, the
 * channel is aborted.
 */

/* Zero means default. Build with WEIR_NETSTRINGS_OPTIONS(...). */
typedef struct weir_netstrings_options {
    size_t size;
    size_t max_length;      /* for a string that comes in, in bytes; default 1 MiB */
    bool report_after_skip; /* of a string over the limit: when it has been skipped */
} weir_netstrings_options;

#define WEIR_NETSTRINGS_OPTIONS(...) WEIR_OPTIONS(weir_netstrings_options, __VA_ARGS__)

/*
 * Adds the codec, "netstrings", at the tail. NULL options: every default.
 * Thread: any.  Lends until it returns: options.  Fails: -EINVAL (the log says why), and as
 * weir_pipeline_add.
 */
WEIR_API int weir_netstrings_add(weir_pipeline *pipeline, const weir_netstrings_options *options);

/* --- json splitter ---------------------------------------------------------------------------- */

/*
 * JSON values one after the other, each a message: objects and arrays, with
 * white space between them or none.
 *
 *      weir_json_splitter_add(pipeline, NULL);
 *
 *      {"a":[1,2]} {"b":"}"}[3]        ->  {"a":[1,2]}   {"b":"}"}   [3]
 *
 * It finds where a value ends, and no more: brackets outside of strings are counted, however deep.
 * Whether what is between them makes sense, the parser behind it says.
 *
 * What is passed on are slices of what came in. A value over the limit is an error, WEIR_ETOOLONG,
 * and is skipped: the channel goes on if somebody handles the error, since at the tail it closes
 * it. Anything else than white space between values is WEIR_EMALFORMED, after which nothing is
 * decoded any more. What is left at the end of a stream is dropped.
 */

/* Zero means default. Build with WEIR_JSON_SPLITTER_OPTIONS(...). */
typedef struct weir_json_splitter_options {
    size_t size;
    size_t max_length;      /* for a value, in bytes; default 1 MiB */
    bool report_after_skip; /* of a value over the limit: when it has been skipped */
} weir_json_splitter_options;

#define WEIR_JSON_SPLITTER_OPTIONS(...) WEIR_OPTIONS(weir_json_splitter_options, __VA_ARGS__)

/*
 * Adds the decoder, "json-splitter", at the tail. NULL options: every default.
 * Thread: any.  Lends until it returns: options.  Fails: -EINVAL (the log says why), and as
 * weir_pipeline_add.
 */
WEIR_API int weir_json_splitter_add(weir_pipeline *pipeline,
                                    const weir_json_splitter_options *options);

#ifdef __cplusplus
}
#endif

#endif
