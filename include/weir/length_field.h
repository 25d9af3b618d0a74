/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/length_field.h - frames that say how long they are, in a field of their header.
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
 * more. The other direction is weir/length_prepender.h.
 */
#ifndef WEIR_LENGTH_FIELD_H
#define WEIR_LENGTH_FIELD_H

#include <weir/number.h>
#include <weir/pipeline.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zero means default. Build with WEIR_LENGTH_FIELD_OPTIONS(...). */
typedef struct weir_length_field_options {
    size_t size;
    size_t limit;               /* for the whole frame, header and all; default 1 MiB */
    size_t offset;              /* where the field is in the frame */
    size_t width;               /* 1 to 8 bytes; default 4 */
    enum weir_byte_order order; /* default big-endian */
    int64_t adjustment;         /* see above; may be negative */
    size_t strip;               /* so many bytes at the front are not passed on */
    bool tell_late;             /* of a frame over the limit: when it has been skipped */
} weir_length_field_options;

#define WEIR_LENGTH_FIELD_OPTIONS(...) \
    (&(const weir_length_field_options){.size = sizeof(weir_length_field_options), __VA_ARGS__})

/*
 * Makes options that are all default.
 * Thread: any.
 */
WEIR_API void weir_length_field_options_init(weir_length_field_options *options);

/*
 * Adds the decoder, "length-field", at the tail. NULL options: every default.
 * Thread: any.  Lends until it returns: options.  Fails: -EINVAL (no frame could be legal; the log
 * says why), and as weir_pipeline_add.
 */
WEIR_API int weir_length_field_add(weir_pipeline *pipeline,
                                   const weir_length_field_options *options);

#ifdef __cplusplus
}
#endif

#endif
