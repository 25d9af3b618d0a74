/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Composites for tests: made of texts, compared with one.
 */
#ifndef WEIR_TEST_BUFFER_COMPOSITE_H
#define WEIR_TEST_BUFFER_COMPOSITE_H

#include <weir/composite.h>

#include "support/buffer/buf.h"

static inline weir_composite *make_composite(size_t max_components)
{
    weir_composite *composite = NULL;

    assert_int_equal(weir_composite_create(max_components, &composite), 0);
    return composite;
}

static inline void add_text(weir_composite *composite, const char *text)
{
    assert_int_equal(weir_composite_add(composite, weir_buf_msg(make_buf_of(text))), 0);
}

/* "one", "two", "three": eleven bytes. */
static inline weir_composite *make_one_two_three(void)
{
    weir_composite *composite = make_composite(0);

    add_text(composite, "one");
    add_text(composite, "two");
    add_text(composite, "three");
    return composite;
}

static inline void assert_unread(weir_composite *composite, const char *text)
{
    char bytes[256];

    assert_int_equal(weir_composite_readable(composite), strlen(text));
    assert_int_equal(weir_composite_peek_bytes(composite, bytes, strlen(text)), 0);
    assert_memory_equal(bytes, text, strlen(text));
}

static inline void assert_component(const weir_composite *composite, size_t i, const char *text)
{
    weir_span span;

    assert_int_equal(weir_composite_component(composite, i, &span), 0);
    assert_int_equal(span.length, strlen(text));
    assert_memory_equal(span.data, text, span.length);
}

#endif
