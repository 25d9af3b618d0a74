/* SPDX-License-Identifier: Apache-2.0 */
#include "support/codec/round_trip.h"

#include <stdio.h>
#include <string.h>

#include <weir/buf.h>
#include <weir/composite.h>
#include <weir/embedded.h>

#include "support/codec/feed.h"
#include "support/property.h"

#define RUNS 30
#define STEPS 20
#define BYTES_MAX 4096 /* of a message, encoded or not */

static const struct round_trip *current; /* steps of a property have no argument */

struct ends {
    weir_embedded *encoder;
    weir_embedded *decoder;
};

static weir_embedded *open_end(transcript_add_fn *add, const void *options)
{
    weir_embedded *embedded = NULL;

    assert_int_equal(weir_embedded_create(NULL, &embedded), 0);
    assert_int_equal(add(weir_embedded_pipeline(embedded), options), 0);
    return embedded;
}

static void begin(void *state)
{
    struct ends *ends = state;

    ends->encoder = open_end(current->add_encoder, current->encoder);
    ends->decoder = open_end(current->add_decoder, current->decoder);
}

static void end(void *state)
{
    struct ends *ends = state;

    weir_embedded_release(ends->encoder);
    weir_embedded_release(ends->decoder);
}

/* ---- a message: its length, its bytes, how it is cut ---- */

enum { AS_BUF, AS_COMPOSITE, KIND_COUNT };

static uint32_t next_random(uint32_t *random)
{
    *random = *random * 1664525u + 1013904223u;
    return *random >> 8;
}

static void fill(uint8_t *bytes, size_t length, uint32_t random)
{
    for (size_t i = 0; i < length; i++)
        do
            bytes[i] = (uint8_t)next_random(&random);
        while (current->spared != NULL &&
               memchr(current->spared, bytes[i], strlen(current->spared)) != NULL);
}

static weir_msg *make_message(uint32_t kind, const uint8_t *bytes, size_t length)
{
    weir_composite *composite = NULL;

    if (kind == AS_BUF)
        return feed_bytes(bytes, length);
    assert_int_equal(weir_composite_create(0, &composite), 0);
    assert_int_equal(weir_composite_add(composite, feed_bytes(bytes, length / 3)), 0);
    assert_int_equal(
        weir_composite_add(composite, feed_bytes(bytes + length / 3, length - length / 3)), 0);
    return weir_composite_msg(composite);
}

static size_t copy_bytes(weir_msg *msg, uint8_t *ret_bytes)
{
    weir_buf *buf = weir_buf_of(msg);
    size_t length = weir_msg_size(msg);

    assert_true(length <= BYTES_MAX);
    if (buf != NULL)
        assert_int_equal(weir_buf_peek_bytes(buf, ret_bytes, length), 0);
    else
        assert_int_equal(weir_composite_peek_bytes(weir_composite_of(msg), ret_bytes, length), 0);
    weir_msg_release(msg);
    return length;
}

static bool decode(struct ends *ends, const uint8_t *bytes, size_t length, uint32_t cuts)
{
    size_t piece;

    for (size_t at = 0; at < length; at += piece) {
        piece = 1 + next_random(&cuts) % (next_random(&cuts) % 40 + 1);
        piece = piece < length - at ? piece : length - at;
        PROPERTY(weir_embedded_write_inbound(ends->decoder, feed_bytes(bytes + at, piece)) == 0);
    }
    return true;
}

static bool send_one(void *state, const struct property_step *step)
{
    struct ends *ends = state;
    uint8_t before[BYTES_MAX], between[BYTES_MAX], after[BYTES_MAX];
    size_t length = step->numbers[0] % (current->length_max + 1);
    weir_msg *msg;

    fill(before, length, step->numbers[1]);
    msg = make_message(step->kind, before, length);
    PROPERTY(weir_embedded_write_outbound(ends->encoder, msg) == 0);
    while ((msg = weir_embedded_read_outbound(ends->encoder)) != NULL) {
        size_t encoded = copy_bytes(msg, between);

        if (!decode(ends, between, encoded, step->numbers[2]))
            return false;
    }
    msg = weir_embedded_read_inbound(ends->decoder);
    PROPERTY(msg != NULL);
    PROPERTY(copy_bytes(msg, after) == length);
    PROPERTY(memcmp(before, after, length) == 0);
    PROPERTY(weir_embedded_read_inbound(ends->decoder) == NULL);
    return true;
}

static void describe(const struct property_step *step, char *text, size_t size)
{
    (void)snprintf(text, size, "%s of %zu bytes, seed %u, cuts %u",
                   step->kind == AS_BUF ? "a buffer" : "a composite",
                   step->numbers[0] % (current->length_max + 1), step->numbers[1],
                   step->numbers[2]);
}

void check_round_trip(const struct round_trip *round_trip)
{
    const struct property property = {
        .name = round_trip->name,
        .state_size = sizeof(struct ends),
        .kinds = KIND_COUNT,
        .begin = begin,
        .step = send_one,
        .describe = describe,
        .end = end,
    };

    current = round_trip;
    property_check(&property, RUNS, STEPS);
}
