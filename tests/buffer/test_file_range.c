/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File ranges: validation, progress, ownership of the descriptor.
 */
#include <weir/file_range.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <weir/log.h>

#include "support/memory.h"
#include "support/test.h"

static int open_file(void)
{
    int descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC);

    assert_true(descriptor >= 0);
    return descriptor;
}

static bool is_open(int descriptor)
{
    return fcntl(descriptor, F_GETFD) >= 0;
}

static weir_file_range *make_range(int descriptor, int64_t offset, int64_t length, uint32_t flags)
{
    weir_file_range *range = NULL;

    assert_int_equal(weir_file_range_create(descriptor, offset, length, flags, &range), 0);
    return range;
}

TEST(file_range, has_a_descriptor_offset_and_length)
{
    int descriptor = open_file();
    weir_file_range *range = make_range(descriptor, 100, 50, 0);

    assert_int_equal(weir_file_range_descriptor(range), descriptor);
    assert_int_equal(weir_file_range_offset(range), 100);
    assert_int_equal(weir_file_range_length(range), 50);
    assert_int_equal(weir_file_range_position(range), 100);
    assert_int_equal(weir_file_range_sent(range), 0);
    assert_int_equal(weir_file_range_remaining(range), 50);
    weir_file_range_release(range);
    close(descriptor);
}

TEST(file_range, knows_how_far_it_has_been_sent)
{
    weir_file_range *range = make_range(open_file(), 100, 50, WEIR_FILE_RANGE_CLOSE);

    assert_int_equal(weir_file_range_advance(range, 0), 0);
    assert_int_equal(weir_file_range_advance(range, 20), 0);
    assert_int_equal(weir_file_range_position(range), 120);
    assert_int_equal(weir_file_range_sent(range), 20);
    assert_int_equal(weir_file_range_remaining(range), 30);
    assert_int_equal(weir_file_range_advance(range, 31), WEIR_EBOUNDS);
    assert_int_equal(weir_file_range_advance(range, INT64_MAX), WEIR_EBOUNDS);
    assert_int_equal(weir_file_range_advance(range, -1), -EINVAL);
    assert_int_equal(weir_file_range_sent(range), 20);
    assert_int_equal(weir_file_range_advance(range, 30), 0);
    assert_int_equal(weir_file_range_remaining(range), 0);
    assert_int_equal(weir_file_range_offset(range), 100);
    assert_int_equal(weir_file_range_length(range), 50);
    weir_file_range_release(range);
}

TEST(file_range, can_be_empty_and_can_reach_to_the_end_of_all_files)
{
    int descriptor = open_file();
    weir_file_range *empty = make_range(descriptor, 0, 0, 0);
    weir_file_range *last = make_range(descriptor, INT64_MAX, 0, 0);
    weir_file_range *all = make_range(descriptor, 0, INT64_MAX, 0);

    assert_int_equal(weir_file_range_advance(all, INT64_MAX), 0);
    assert_true(weir_file_range_position(all) == INT64_MAX);
    assert_int_equal(weir_file_range_advance(all, 1), WEIR_EBOUNDS);
    weir_file_range_release(empty);
    weir_file_range_release(last);
    weir_file_range_release(all);
    close(descriptor);
}

TEST(file_range, rejects_invalid_ranges)
{
    weir_file_range *range = NULL;
    int descriptor = open_file();

    assert_int_equal(weir_file_range_create(-1, 0, 1, 0, &range), -EBADF);
    assert_int_equal(weir_file_range_create(-1, 0, 1, WEIR_FILE_RANGE_CLOSE, &range), -EBADF);
    assert_int_equal(weir_file_range_create(descriptor, -1, 1, 0, &range), -EINVAL);
    assert_int_equal(weir_file_range_create(descriptor, 0, -1, 0, &range), -EINVAL);
    assert_int_equal(weir_file_range_create(descriptor, INT64_MAX, 1, 0, &range), -EINVAL);
    assert_int_equal(weir_file_range_create(descriptor, 1, INT64_MAX, 0, &range), -EINVAL);
    assert_int_equal(weir_file_range_create(descriptor, 0, 1, 2, &range), -EINVAL);
    assert_null(range);
    assert_true(is_open(descriptor));
    close(descriptor);
}

TEST(file_range, with_the_flag_closes_the_descriptor_with_its_last_reference)
{
    int descriptor = open_file();
    weir_file_range *range = make_range(descriptor, 0, 1, WEIR_FILE_RANGE_CLOSE);

    assert_ptr_equal(weir_file_range_retain(range), range);
    weir_file_range_release(range);
    assert_true(is_open(descriptor));
    weir_file_range_release(range);
    assert_false(is_open(descriptor));
    weir_file_range_release(NULL);
}

TEST(file_range, without_the_flag_leaves_the_descriptor_open)
{
    int descriptor = open_file();

    weir_file_range_release(make_range(descriptor, 0, 1, 0));
    assert_true(is_open(descriptor));
    close(descriptor);
}

TEST(file_range, with_the_flag_closes_the_descriptor_on_failure)
{
    weir_file_range *range = NULL;
    int descriptor = open_file();

    assert_int_equal(weir_file_range_create(descriptor, -1, 1, WEIR_FILE_RANGE_CLOSE, &range),
                     -EINVAL);
    assert_false(is_open(descriptor));
    descriptor = open_file();
    test_memory_fail_at(1);
    assert_int_equal(weir_file_range_create(descriptor, 0, 1, WEIR_FILE_RANGE_CLOSE, &range),
                     -ENOMEM);
    test_memory_fail_at(0);
    assert_false(is_open(descriptor));
    assert_null(range);
}

static void on_log(void *user_data, enum weir_log_level level, const char *subsystem,
                   const char *object, const char *message)
{
    assert_int_equal(level, WEIR_LOG_WARN);
    assert_string_equal(subsystem, "file_range");
    snprintf(user_data, 128, "%s: %s", object, message);
}

TEST(file_range, logs_a_failed_close)
{
    int descriptor = open_file();
    weir_file_range *range = make_range(descriptor, 0, 1, WEIR_FILE_RANGE_CLOSE);
    char line[128] = "", name[16];

    close(descriptor); /* an error of the user */
    weir_log_set(on_log, line);
    weir_file_range_release(range);
    weir_log_set(NULL, NULL);
    snprintf(name, sizeof(name), "%d: ", descriptor);
    assert_ptr_equal(strstr(line, name), line);
    assert_non_null(strstr(line, weir_error_text(-EBADF)));
}

TEST(file_range, is_a_message_that_counts_nothing_against_water_marks)
{
    int descriptor = open_file();
    weir_file_range *range = make_range(descriptor, 0, 1000000, 0);
    weir_msg *msg = weir_file_range_msg(range);

    assert_int_equal(weir_msg_size(msg), 0);
    assert_ptr_equal(weir_file_range_of(msg), range);
    assert_null(weir_file_range_of(NULL));
    assert_string_equal(msg->type->name, "file_range");
    weir_msg_touch(msg, "nobody watches");
    weir_msg_release(msg);
    close(descriptor);
}

TEST(file_range, is_shared_from_where_it_is_and_keeps_the_descriptor)
{
    int descriptor = open_file();
    weir_file_range *range = make_range(descriptor, 100, 50, WEIR_FILE_RANGE_CLOSE), *rest;
    weir_msg *share = NULL, *share_of_share = NULL;

    assert_int_equal(weir_file_range_advance(range, 20), 0);
    assert_int_equal(weir_msg_share(weir_file_range_msg(range), &share), 0);
    rest = weir_file_range_of(share);
    assert_int_equal(weir_file_range_position(rest), 120);
    assert_int_equal(weir_file_range_remaining(rest), 30);
    assert_int_equal(weir_file_range_advance(rest, 10), 0);
    assert_int_equal(weir_file_range_position(range), 120);
    assert_int_equal(weir_msg_share(share, &share_of_share), 0);
    assert_int_equal(weir_file_range_position(weir_file_range_of(share_of_share)), 130);

    weir_file_range_release(range);
    weir_msg_release(share);
    assert_true(is_open(descriptor));
    weir_msg_release(share_of_share);
    assert_false(is_open(descriptor));
}

TEST(file_range, is_sliced_anywhere_and_keeps_the_descriptor)
{
    int descriptor = open_file();
    weir_file_range *range = make_range(descriptor, 100, 50, WEIR_FILE_RANGE_CLOSE);
    weir_file_range *slice = NULL, *slice_of_slice = NULL;

    assert_int_equal(weir_file_range_slice(range, 10, -1, &slice), -EINVAL);
    assert_int_equal(weir_file_range_slice(range, -1, 10, &slice), -EINVAL);
    assert_int_equal(weir_file_range_slice(range, 10, 5, &slice), 0);
    weir_file_range_release(range);
    assert_int_equal(weir_file_range_slice(slice, 7, 2, &slice_of_slice), 0);
    weir_file_range_release(slice);
    assert_int_equal(weir_file_range_position(slice_of_slice), 7);
    assert_int_equal(weir_file_range_remaining(slice_of_slice), 2);
    assert_true(is_open(descriptor));
    weir_file_range_release(slice_of_slice);
    assert_false(is_open(descriptor));
}

TEST(file_range, that_cannot_be_shared_stays_as_it_is)
{
    weir_file_range *range = make_range(open_file(), 0, 5, WEIR_FILE_RANGE_CLOSE);
    weir_msg *share = NULL;

    test_memory_fail_at(1);
    assert_int_equal(weir_msg_share(weir_file_range_msg(range), &share), -ENOMEM);
    assert_null(share);
    assert_true(is_open(weir_file_range_descriptor(range)));
    weir_file_range_release(range);
}
