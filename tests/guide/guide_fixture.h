/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the guide's code stands on in its tests: event loops, or an embedded channel, and a look at
 * what comes out of it.
 */
#ifndef WEIR_TEST_GUIDE_FIXTURE_H
#define WEIR_TEST_GUIDE_FIXTURE_H

#include <string.h>

#include <weir/weir.h>

#include "support/channel/test_channel.h"
#include "support/executor/group.h"
#include "support/test.h"

/* A group of event loops; end_group ends it. */
static inline weir_group *make_loops(int threads)
{
    weir_group *group = NULL;

    assert_int_equal(weir_group_create(WEIR_GROUP_OPTIONS(.threads = threads), &group), 0);
    return group;
}

static inline weir_embedded *embed(const weir_handler *handler, const void *options)
{
    weir_embedded *embedded = NULL;

    assert_int_equal(weir_embedded_create(NULL, &embedded), 0);
    assert_int_equal(weir_pipeline_add_last(weir_embedded_pipeline(embedded), handler, options), 0);
    return embedded;
}

/* Takes the message. */
static inline void assert_text(weir_msg *msg, const char *text)
{
    assert_non_null(msg);
    assert_int_equal(weir_buf_readable(weir_buf_of(msg)), strlen(text));
    assert_memory_equal(weir_buf_bytes(weir_buf_of(msg)), text, strlen(text));
    weir_msg_release(msg);
}

#endif
