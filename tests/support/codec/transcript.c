/* SPDX-License-Identifier: Apache-2.0 */
#include "support/codec/transcript.h"

#include <stdlib.h>
#include <string.h>

#include <weir/composite.h>
#include <weir/embedded.h>

/* ---- records: a byte that says what it is, a number, bytes ---- */

static void append(struct transcript *transcript, const void *bytes, size_t length)
{
    if (transcript->capacity - transcript->length < length) {
        transcript->capacity = (transcript->capacity + length) * 2;
        transcript->records = realloc(transcript->records, transcript->capacity);
        if (transcript->records == NULL)
            abort();
    }
    if (length > 0)
        memcpy(transcript->records + transcript->length, bytes, length);
    transcript->length += length;
}

static void append_record(struct transcript *transcript, char kind, int64_t number)
{
    append(transcript, &kind, sizeof(kind));
    append(transcript, &number, sizeof(number));
}

void transcript_add_message(struct transcript *transcript, const void *bytes, size_t length)
{
    append_record(transcript, 'm', (int64_t)length);
    append(transcript, bytes, length);
}

void transcript_add_error(struct transcript *transcript, int err)
{
    append_record(transcript, 'e', err);
}

static bool is_equal(const struct transcript *a, const struct transcript *b)
{
    return a->length == b->length &&
           (a->length == 0 || memcmp(a->records, b->records, a->length) == 0);
}

void transcript_clear(struct transcript *transcript)
{
    free(transcript->records);
    *transcript = (struct transcript){0};
}

/* ---- the last handler ---- */

static void note_bytes(struct transcript *transcript, weir_msg *msg)
{
    weir_composite *composite = weir_composite_of(msg);
    weir_buf *buf = weir_buf_of(msg);

    if (composite != NULL) {
        if (weir_composite_copy(composite, weir_composite_read_index(composite),
                                weir_composite_readable(composite), &buf) < 0)
            abort();
        transcript_add_message(transcript, weir_buf_bytes(buf), weir_buf_readable(buf));
        weir_buf_release(buf);
    } else if (buf != NULL) {
        transcript_add_message(transcript, weir_buf_bytes(buf), weir_buf_readable(buf));
    }
}

static int init_scribe(void *state, const void *transcript)
{
    memcpy(state, &transcript, sizeof(transcript));
    return 0;
}

static struct transcript *transcript_of_scribe(weir_ctx *ctx)
{
    return *(struct transcript **)weir_ctx_state(ctx);
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    note_bytes(transcript_of_scribe(ctx), msg);
    weir_msg_release(msg);
}

static void on_error(weir_ctx *ctx, int err, const char *detail)
{
    (void)detail;
    transcript_add_error(transcript_of_scribe(ctx), err);
}

static const weir_handler scribe = {
    .name = "scribe",
    .state_size = sizeof(struct transcript *),
    .init = init_scribe,
    .read = on_read,
    .error = on_error,
};

/* ---- feeding ---- */

static void put(weir_embedded *embedded, const uint8_t *bytes, size_t length)
{
    weir_buf *buf;

    if (weir_buf_create_from(bytes, length, &buf) < 0)
        abort();
    (void)weir_embedded_write_inbound(embedded, weir_buf_msg(buf));
}

static size_t next_piece(uint32_t *cuts, size_t left)
{
    size_t piece;

    if (*cuts == TRANSCRIPT_WHOLE)
        return left;
    if (*cuts == TRANSCRIPT_BYTEWISE)
        return 1;
    *cuts = *cuts * 1664525u + 1013904223u;
    *cuts += *cuts <= TRANSCRIPT_BYTEWISE ? 2u : 0u;
    piece = 1 + (*cuts >> 16) % 13;
    return piece < left ? piece : left;
}

/* The output for these bytes, split in this way and followed by the end of the stream. */
static void transcribe(struct transcript *ret_transcript, transcript_add_fn *add,
                       const void *options, const void *bytes, size_t length, uint32_t cuts)
{
    weir_embedded *embedded;
    size_t piece;

    *ret_transcript = (struct transcript){0};
    if (weir_embedded_create(NULL, &embedded) < 0 ||
        add(weir_embedded_pipeline(embedded), options) < 0 ||
        weir_pipeline_add_last(weir_embedded_pipeline(embedded), &scribe, ret_transcript) < 0)
        abort();
    for (size_t at = 0; at < length; at += piece) {
        piece = next_piece(&cuts, length - at);
        put(embedded, (const uint8_t *)bytes + at, piece);
    }
    weir_embedded_end_input(embedded);
    (void)weir_embedded_finish(embedded);
    weir_embedded_release(embedded);
}

bool transcript_is_same_for_cuts(const struct transcript *expected, transcript_add_fn *add,
                                 const void *options, const void *bytes, size_t length,
                                 uint32_t cuts)
{
    const uint32_t ways[] = {TRANSCRIPT_WHOLE, TRANSCRIPT_BYTEWISE, cuts};
    bool is_same = true;

    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]) && is_same; i++) {
        struct transcript found;

        transcribe(&found, add, options, bytes, length, ways[i]);
        is_same = is_equal(expected, &found);
        transcript_clear(&found);
    }
    return is_same;
}

void transcript_expect(struct transcript *expected, transcript_add_fn *add, const void *options,
                       const void *bytes, size_t length, uint32_t cuts)
{
    if (!transcript_is_same_for_cuts(expected, add, options, bytes, length, cuts))
        abort();
    transcript_clear(expected);
}
