/* SPDX-License-Identifier: Apache-2.0 */
#include "support/codec/decoder_fixture.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/buf.h>
#include <weir/error.h>

#include "support/memory.h"

static char last_error[160];

static void note_error(weir_ctx *ctx, int err, const char *detail)
{
    (void)ctx;
    (void)snprintf(last_error, sizeof(last_error), "%s: %s", weir_error_name(err),
                   detail != NULL ? detail : "");
}

static const weir_handler noter = {.name = "noter", .error = note_error};

const char *fixture_error(void)
{
    return last_error;
}

weir_embedded *fixture_open(transcript_add_fn *add, const void *options)
{
    weir_embedded *embedded = NULL;

    last_error[0] = '\0';
    assert_int_equal(weir_embedded_create(NULL, &embedded), 0);
    assert_int_equal(add(weir_embedded_pipeline(embedded), options), 0);
    assert_int_equal(weir_pipeline_add_last(weir_embedded_pipeline(embedded), &noter, NULL), 0);
    return embedded;
}

void fixture_write(weir_embedded *embedded, const void *bytes, size_t length)
{
    assert_int_equal(weir_embedded_write_inbound(embedded, feed_bytes(bytes, length)), 0);
}

int fixture_try_add(transcript_add_fn *add, const void *options)
{
    weir_embedded *embedded = NULL;
    int err;

    assert_int_equal(weir_embedded_create(NULL, &embedded), 0);
    err = add(weir_embedded_pipeline(embedded), options);
    weir_embedded_release(embedded);
    return err;
}

void fixture_assert_no_growth(weir_embedded *embedded, const void *bytes, size_t length)
{
    size_t live;

    for (int i = 0; i < 10; i++)
        fixture_write(embedded, bytes, length);
    live = test_memory_live();
    for (int i = 0; i < 1000; i++)
        fixture_write(embedded, bytes, length);
    assert_int_equal(test_memory_live(), live);
}

void fixture_assert_slice(transcript_add_fn *add, const void *options, const void *bytes,
                          size_t length, size_t n, size_t offset)
{
    weir_embedded *embedded = fixture_open(add, options);
    weir_msg *in = feed_bytes(bytes, length), *out;
    const uint8_t *begin = weir_buf_bytes(weir_buf_of(in));

    assert_int_equal(weir_embedded_write_inbound(embedded, in), 0);
    for (; n > 0; n--)
        weir_msg_release(weir_embedded_read_inbound(embedded));
    out = weir_embedded_read_inbound(embedded);
    assert_non_null(out);
    assert_ptr_equal(weir_buf_bytes(weir_buf_of(out)), begin + offset);
    weir_msg_release(out);
    weir_embedded_release(embedded);
}

/* ---- without memory ---- */

#define PIECE 3

static bool survives_without(unsigned n, transcript_add_fn *add, const void *options,
                             const uint8_t *bytes, size_t length)
{
    weir_embedded *embedded = NULL;
    weir_msg *pieces[64];
    size_t count = 0;
    bool failed;
    int err;

    assert_int_equal(weir_embedded_create(NULL, &embedded), 0);
    for (size_t at = 0; at < length; at += PIECE, count++) {
        assert_true(count < sizeof(pieces) / sizeof(pieces[0]));
        pieces[count] = feed_bytes(bytes + at, length - at < PIECE ? length - at : PIECE);
    }
    test_memory_fail_at(n);
    err = add(weir_embedded_pipeline(embedded), options);
    assert_true(err == 0 || err == -ENOMEM);
    for (size_t i = 0; i < count; i++)
        (void)weir_embedded_write_inbound(embedded, pieces[i]);
    failed = test_memory_failed();
    test_memory_fail_at(0);
    weir_embedded_release(embedded);
    return failed;
}

void fixture_assert_survives(transcript_add_fn *add, const void *options, const void *bytes,
                             size_t length)
{
    for (unsigned n = 1; survives_without(n, add, options, bytes, length); n++)
        continue;
}
