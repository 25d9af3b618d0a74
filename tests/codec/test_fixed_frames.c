/* SPDX-License-Identifier: Apache-2.0 */
#include <weir/frames.h>

#include <errno.h>
#include <string.h>

#include <weir/buf.h>

#include "support/codec/decoder_fixture.h"

static const size_t three = 3;

static int add_options(weir_pipeline *pipeline, const void *length)
{
    return weir_fixed_frames_add(pipeline, *(const size_t *)length);
}

static void add(weir_pipeline *pipeline, const struct feed *feed)
{
    assert_int_equal(weir_fixed_frames_add(pipeline, *(const size_t *)feed->arg), 0);
}

TEST(fixed_frames, have_the_given_length)
{
    const struct feed feed = {.add = add, .arg = &three};

    assert_text_fed(&feed, "abcdefghi", "abc|def|ghi");
    assert_text_fed(&feed, "abcdefgh", "abc|def");
    assert_text_fed(&feed, "ab", "");
}

TEST(fixed_frames, may_be_single_bytes)
{
    const size_t one = 1;
    const struct feed feed = {.add = add, .arg = &one};

    assert_text_fed(&feed, "abc", "a|b|c");
}

TEST(fixed_frames, are_slices_of_the_input)
{
    fixture_assert_slice(add_options, &three, "abcdefg", 7, 1, 3);
}

TEST(fixed_frames, reject_an_invalid_length)
{
    const size_t none = 0, most = WEIR_BUF_MAX, more = WEIR_BUF_MAX + 1;

    assert_int_equal(fixture_try_add(add_options, &none), -EINVAL);
    assert_int_equal(fixture_try_add(add_options, &most), 0);
    assert_int_equal(fixture_try_add(add_options, &more), -EINVAL);
}

TEST(fixed_frames, survive_allocation_failures)
{
    const size_t five = 5;

    fixture_assert_survives(add_options, &five, "abcdefghijklmnopqrst", 20);
}
