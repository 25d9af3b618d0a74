/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Size classes.
 */
#include "buffer/size_class.h"

#include "support/test.h"

TEST(size_class, each_size_is_of_its_own_class_and_one_byte_more_of_the_next)
{
    for (unsigned i = 0; i < WEIR__CLASS_COUNT; i++) {
        assert_int_equal(weir__class_of(weir__class_size(i)), i);
        if (i + 1 < WEIR__CLASS_COUNT)
            assert_int_equal(weir__class_of(weir__class_size(i) + 1), i + 1);
    }
}

TEST(size_class, they_reach_from_nothing_to_the_largest)
{
    assert_int_equal(weir__class_size(0), 0);
    assert_int_equal(weir__class_size(1), 64);
    assert_int_equal(weir__class_size(WEIR__CLASS_COUNT - 1), WEIR__CLASS_SIZE_MAX);
    assert_int_equal(weir__class_of(0), 0);
    assert_int_equal(weir__class_of(1), 1);
}

TEST(size_class, all_are_whole_lines)
{
    for (unsigned i = 0; i < WEIR__CLASS_COUNT; i++)
        assert_int_equal(weir__class_size(i) % WEIR__LINE, 0);
}

TEST(size_class, from_256_bytes_on_no_more_than_a_fifth_is_wasted)
{
    for (unsigned i = 4; i + 1 < WEIR__CLASS_COUNT; i++) {
        size_t smallest = weir__class_size(i) + 1, given = weir__class_size(i + 1);

        assert_true((given - smallest) * 5 <= given);
    }
}
