/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The adaptive receive size.
 */
#include "transport/receive_size.h"

#include "support/test.h"

static const weir_channel_options options = {
    .receive_min = 64, .receive_initial = 2048, .receive_max = 65536};

/* Notes a read of `length` bytes into the present size; returns the next size. */
static size_t after(weir__receive_size *guess, size_t length)
{
    (void)weir__receive_size_update(guess, &options, weir__receive_size_size(guess, &options),
                                    length);
    return weir__receive_size_size(guess, &options);
}

TEST(guess, begins_with_the_initial_size)
{
    weir__receive_size guess = weir__receive_size_first(&options);

    assert_int_equal(weir__receive_size_size(&guess, &options), 2048);
}

TEST(guess, grows_by_four_steps_when_a_read_fills_it)
{
    weir__receive_size guess = weir__receive_size_first(&options);

    assert_int_equal(after(&guess, 2048), 32768);
    assert_int_equal(after(&guess, 32768), 65536); /* the maximum */
    assert_int_equal(after(&guess, 65536), 65536);
}

TEST(guess, shrinks_by_one_step_after_two_small_reads)
{
    weir__receive_size guess = weir__receive_size_first(&options);

    assert_int_equal(after(&guess, 1023), 2048);
    assert_int_equal(after(&guess, 1023), 1024);
    assert_int_equal(after(&guess, 1), 1024);
    assert_int_equal(after(&guess, 512), 1024); /* not small: a step down would just hold it */
    assert_int_equal(after(&guess, 1), 1024);
    assert_int_equal(after(&guess, 1), 512);
}

TEST(guess, stays_above_the_minimum)
{
    weir__receive_size guess = weir__receive_size_first(&options);

    for (int i = 0; i < 200; i++)
        assert_true(after(&guess, 1) >= 64);
    assert_int_equal(weir__receive_size_size(&guess, &options), 64);
    assert_true(after(&guess, 64) > 64);
}

TEST(guess, reports_whether_it_has_changed)
{
    weir__receive_size guess = weir__receive_size_first(&options);

    assert_false(weir__receive_size_update(&guess, &options, 2048, 2000));
    assert_false(weir__receive_size_update(&guess, &options, 2048, 1));
    assert_true(weir__receive_size_update(&guess, &options, 2048, 1));
    assert_true(weir__receive_size_update(&guess, &options, 1024, 1024));
}
