/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers for tests: made of a text, compared with one.
 */
#ifndef WEIR_TEST_BUFFER_BUF_H
#define WEIR_TEST_BUFFER_BUF_H

#include <string.h>

#include <weir/buf.h>

#include "support/test.h"

static inline weir_buf *make_buf(size_t capacity, size_t max)
{
    weir_buf *buf = NULL;

    assert_int_equal(weir_buf_create(capacity, max, &buf), 0);
    return buf;
}

static inline weir_buf *make_buf_of(const char *text)
{
    weir_buf *buf = NULL;

    assert_int_equal(weir_buf_create_from(text, strlen(text), &buf), 0);
    return buf;
}

static inline weir_buf *make_read_only_of(const char *text)
{
    weir_buf *buf = NULL;

    assert_int_equal(weir_buf_wrap_static(text, strlen(text), &buf), 0);
    return buf;
}

/* The readable bytes are these. */
static inline void assert_readable(const weir_buf *buf, const char *text)
{
    assert_int_equal(weir_buf_readable(buf), strlen(text));
    assert_memory_equal(weir_buf_bytes(buf), text, strlen(text));
}

static inline void assert_indices(const weir_buf *buf, size_t read, size_t write)
{
    assert_int_equal(weir_buf_read_index(buf), read);
    assert_int_equal(weir_buf_write_index(buf), write);
}

#endif
