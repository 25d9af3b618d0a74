/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/frames.h - codecs that split a byte stream into frames.
 *
 *      weir_length_field_add       a length in the header of the frame
 *      weir_length_prepender_add   the encoder for it
 *      weir_lines_add              lines of text
 *      weir_delimited_add          frames that end with a delimiter
 *      weir_fixed_frames_add       frames of one fixed length
 *      weir_varint_frames_add      a varint length, as Protocol Buffers use it; both directions
 *      weir_netstrings_add         "5:hello,"; both directions
 *      weir_json_splitter_add      JSON objects and arrays
 *
 * Inbound: frames are slices of the input; nothing is copied. A frame over the limit fires
 * WEIR_ETOOLONG and is skipped; decoding continues with the next frame, if a handler catches the
 * error: at the tail of the pipeline it closes the channel. Malformed input fires WEIR_EMALFORMED
 * and ends decoding. An incomplete frame at the end of the stream is discarded.
 *
 * Outbound: buffers, composites and file ranges are framed without a copy. Other messages are
 * passed on. A file range is sent in two or three writes; if one of them fails, the channel is
 * aborted.
 */
#ifndef WEIR_FRAMES_H
#define WEIR_FRAMES_H

#include <weir/buf.h>
#include <weir/options.h>
#include <weir/pipeline.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- length field ----------------------------------------------------------------------------- */

/*
 *      err = weir_length_field_add(pipeline, WEIR_LENGTH_FIELD_OPTIONS(.width = 2, .strip = 2));
 *
 *      00 05 h e l l o 00 02 o k       ->  "hello", "ok"
 *
 * The field need not come first, and may count more or less than what follows it:
 *
 *      +--------+-----------+-------------+--------------------------+
 *      | offset |   width   |             |                          |
 *      +--------+-----------+-------------+--------------------------+
 *                           |    value of the field + adjustment     |
 *
 *      the field counts the whole frame:           .adjustment = -(offset + width)
 *      the field does not count 4 more header      .adjustment = 4
 *      bytes that follow it:
 */

/* Zero means default. Build with WEIR_LENGTH_FIELD_OPTIONS(...). */
typedef struct weir_length_field_options {
    size_t size;
    size_t max_length;          /* of the whole frame with its header; default 1 MiB */
    size_t offset;              /* of the field in the frame */
    size_t width;               /* 1 to 8 bytes; default 4 */
    enum weir_byte_order order; /* default big-endian */
    int64_t adjustment;         /* see above; may be negative */
    size_t strip;               /* bytes to remove from the front of the frame */
    bool report_after_skip;     /* fire WEIR_ETOOLONG after the frame was skipped, not before */
} weir_length_field_options;

#define WEIR_LENGTH_FIELD_OPTIONS(...) WEIR_OPTIONS(weir_length_field_options, __VA_ARGS__)

/*
 * Adds the decoder "length-field" at the tail. NULL options = defaults.
 * Thread: any.  Lends until it returns: options.  Fails: -EINVAL (logged: options that allow no
 * frame), and as weir_pipeline_add.
 */
WEIR_API WEIR_MUST_USE int weir_length_field_add(weir_pipeline *pipeline,
                                                 const weir_length_field_options *options);

/* --- length prepender ------------------------------------------------------------------------- */

/*
 *      err = weir_length_prepender_add(pipeline, WEIR_LENGTH_PREPENDER_OPTIONS(.width = 2));
 *
 *      "hello", "ok"  ->  00 05 h e l l o 00 02 o k
 *
 * A write whose length does not fit into the field fails with WEIR_ETOOLONG.
 */

/* Zero means default. Build with WEIR_LENGTH_PREPENDER_OPTIONS(...). */
typedef struct weir_length_prepender_options {
    size_t size;
    size_t width;               /* 1 to 8 bytes; default 4 */
    enum weir_byte_order order; /* default big-endian */
    int64_t adjustment;         /* added to the length; may be negative */
    bool counts_itself;         /* the length includes the field */
} weir_length_prepender_options;

#define WEIR_LENGTH_PREPENDER_OPTIONS(...) WEIR_OPTIONS(weir_length_prepender_options, __VA_ARGS__)

/*
 * Adds the encoder "length-prepender" at the tail. NULL options = defaults.
 * Thread: any.  Lends until it returns: options.  Fails: -EINVAL (logged), and as
 * weir_pipeline_add.
 */
WEIR_API WEIR_MUST_USE int weir_length_prepender_add(weir_pipeline *pipeline,
                                                     const weir_length_prepender_options *options);

/* --- lines ------------------------------------------------------------------------------------ */

/*
 *      err = weir_lines_add(pipeline, NULL);
 *
 *      "one\ntwo\r\n\nthr"     ->  "one", "two", ""          and "thr...", once its end arrives
 */

/* The accepted line ends. */
enum weir_line_end {
    WEIR_LINE_END_ANY, /* LF or CR LF */
    WEIR_LINE_END_LF,  /* CR is an ordinary character */
    WEIR_LINE_END_CRLF,
};

/* Zero means default. Build with WEIR_LINES_OPTIONS(...). */
typedef struct weir_lines_options {
    size_t size;
    size_t max_length; /* of a line without its end, in bytes; default 64 KiB */
    enum weir_line_end end;
    bool keep_end;          /* leave the line end on the line */
    bool report_after_skip; /* fire WEIR_ETOOLONG after the line was skipped, not before */
} weir_lines_options;

#define WEIR_LINES_OPTIONS(...) WEIR_OPTIONS(weir_lines_options, __VA_ARGS__)

/*
 * Adds the decoder "lines" at the tail. NULL options = defaults.
 * Thread: any.  Lends until it returns: options.  Fails: -EINVAL (logged), and as
 * weir_pipeline_add.
 */
WEIR_API WEIR_MUST_USE int weir_lines_add(weir_pipeline *pipeline,
                                          const weir_lines_options *options);

/* --- delimited -------------------------------------------------------------------------------- */

/*
 *      const weir_span ends[] = {weir_span_of_text(";"), weir_span_of("\0", 1)};
 *      err = weir_delimited_add(pipeline, WEIR_DELIMITED_OPTIONS(.delimiters = ends, .count = 2));
 *
 *      "one;two\0thr"          ->  "one", "two"               and "thr...", once its end arrives
 *
 * The delimiter that starts first ends the frame. If several start at the same position, the first
 * in the list wins: list "\r\n" before "\r".
 */

/* The maximum length of a delimiter. */
#define WEIR_DELIMITER_MAX 256

/* Zero means default. Build with WEIR_DELIMITED_OPTIONS(...). */
typedef struct weir_delimited_options {
    size_t size;
    const weir_span *delimiters; /* at least one, none empty; copied */
    size_t count;
    size_t max_length;      /* of a frame without its delimiter, in bytes; default 64 KiB */
    bool keep_delimiter;    /* leave the delimiter on the frame */
    bool report_after_skip; /* fire WEIR_ETOOLONG after the frame was skipped, not before */
} weir_delimited_options;

#define WEIR_DELIMITED_OPTIONS(...) WEIR_OPTIONS(weir_delimited_options, __VA_ARGS__)

/*
 * Adds the decoder "delimited" at the tail.
 * Thread: any.  Lends until it returns: options, delimiters.  Fails: -EINVAL (logged), and as
 * weir_pipeline_add.
 */
WEIR_API WEIR_MUST_USE int weir_delimited_add(weir_pipeline *pipeline,
                                              const weir_delimited_options *options);

/* --- fixed frames ----------------------------------------------------------------------------- */

/*
 *      err = weir_fixed_frames_add(pipeline, 3);
 *
 *      "abcdefgh"      ->  "abc", "def"               and "gh?", once its end arrives
 */

/*
 * Adds the decoder "fixed-frames" at the tail, for frames of `length` bytes.
 * Thread: any.  Fails: -EINVAL (the length is 0 or above WEIR_BUF_MAX), and as weir_pipeline_add.
 */
WEIR_API WEIR_MUST_USE int weir_fixed_frames_add(weir_pipeline *pipeline, size_t length);

/* --- varint frames ---------------------------------------------------------------------------- */

/*
 *      err = weir_varint_frames_add(pipeline, NULL);
 *
 *      ac 02 <300 bytes> 02 o k        <->  <300 bytes>, "ok"
 *
 * The length is a varint of at most 32 bits in its shortest form; any other is WEIR_EMALFORMED.
 */

/* Zero means default. Build with WEIR_VARINT_FRAMES_OPTIONS(...). */
typedef struct weir_varint_frames_options {
    size_t size;
    size_t max_length;      /* of an inbound frame without its length, in bytes; default 1 MiB */
    bool report_after_skip; /* fire WEIR_ETOOLONG after the frame was skipped, not before */
} weir_varint_frames_options;

#define WEIR_VARINT_FRAMES_OPTIONS(...) WEIR_OPTIONS(weir_varint_frames_options, __VA_ARGS__)

/*
 * Adds the codec "varint-frames" at the tail. NULL options = defaults.
 * Thread: any.  Lends until it returns: options.  Fails: -EINVAL (logged), and as
 * weir_pipeline_add.
 */
WEIR_API WEIR_MUST_USE int weir_varint_frames_add(weir_pipeline *pipeline,
                                                  const weir_varint_frames_options *options);

/* --- netstrings ------------------------------------------------------------------------------- */

/*
 * Netstrings (D. J. Bernstein, 1997), as used by SCGI and QMTP.
 *
 *      err = weir_netstrings_add(pipeline, NULL);
 *
 *      "5:hello,0:,2:ok,"      <->  "hello", "", "ok"
 */

/* Zero means default. Build with WEIR_NETSTRINGS_OPTIONS(...). */
typedef struct weir_netstrings_options {
    size_t size;
    size_t max_length;      /* of an inbound string, in bytes; default 1 MiB */
    bool report_after_skip; /* fire WEIR_ETOOLONG after the string was skipped, not before */
} weir_netstrings_options;

#define WEIR_NETSTRINGS_OPTIONS(...) WEIR_OPTIONS(weir_netstrings_options, __VA_ARGS__)

/*
 * Adds the codec "netstrings" at the tail. NULL options = defaults.
 * Thread: any.  Lends until it returns: options.  Fails: -EINVAL (logged), and as
 * weir_pipeline_add.
 */
WEIR_API WEIR_MUST_USE int weir_netstrings_add(weir_pipeline *pipeline,
                                               const weir_netstrings_options *options);

/* --- json splitter ---------------------------------------------------------------------------- */

/*
 * A stream of JSON objects and arrays, with or without white space between them.
 *
 *      err = weir_json_splitter_add(pipeline, NULL);
 *
 *      {"a":[1,2]} {"b":"}"}[3]        ->  {"a":[1,2]}   {"b":"}"}   [3]
 *
 * The splitter only finds the end of each value, by counting brackets outside of strings to any
 * depth. It does not validate the JSON. Anything but white space between values is WEIR_EMALFORMED.
 */

/* Zero means default. Build with WEIR_JSON_SPLITTER_OPTIONS(...). */
typedef struct weir_json_splitter_options {
    size_t size;
    size_t max_length;      /* of a value, in bytes; default 1 MiB */
    bool report_after_skip; /* fire WEIR_ETOOLONG after the value was skipped, not before */
} weir_json_splitter_options;

#define WEIR_JSON_SPLITTER_OPTIONS(...) WEIR_OPTIONS(weir_json_splitter_options, __VA_ARGS__)

/*
 * Adds the decoder "json-splitter" at the tail. NULL options = defaults.
 * Thread: any.  Lends until it returns: options.  Fails: -EINVAL (logged), and as
 * weir_pipeline_add.
 */
WEIR_API WEIR_MUST_USE int weir_json_splitter_add(weir_pipeline *pipeline,
                                                  const weir_json_splitter_options *options);

#ifdef __cplusplus
}
#endif

#endif
