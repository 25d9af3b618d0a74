/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages with descriptors: validation, ownership, sharing.
 */
#include "buffer/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "support/litmus.h"
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

static weir_descriptors *make(const char *text, const int *numbers, size_t count)
{
    weir_descriptors *descriptors = NULL;
    weir_buf *bytes = NULL;

    if (text != NULL)
        assert_int_equal(weir_buf_create_from(text, strlen(text), &bytes), 0);
    assert_int_equal(weir_descriptors_create(bytes, numbers, count, &descriptors), 0);
    return descriptors;
}

TEST(descriptors, go_with_bytes)
{
    int numbers[] = {open_file(), open_file()};
    weir_descriptors *descriptors = make("abc", numbers, 2);

    assert_ptr_equal(weir_descriptors_of(weir_descriptors_msg(descriptors)), descriptors);
    assert_int_equal(weir_descriptors_count(descriptors), 2);
    assert_int_equal(weir_descriptors_at(descriptors, 1), numbers[1]);
    assert_int_equal(weir_descriptors_at(descriptors, 2), -EINVAL);
    assert_int_equal(weir_buf_readable(weir_descriptors_bytes(descriptors)), 3);
    assert_int_equal(weir_msg_size(weir_descriptors_msg(descriptors)), 3);
    weir_descriptors_release(descriptors);
    assert_false(is_open(numbers[0]) || is_open(numbers[1]));
}

TEST(descriptors, go_with_a_zero_if_nothing_is_given)
{
    weir_descriptors *descriptors = NULL;

    assert_int_equal(weir_descriptors_create_one(open_file(), &descriptors), 0);
    assert_int_equal(weir_buf_readable(weir_descriptors_bytes(descriptors)), 1);
    assert_int_equal(*(const char *)weir_buf_bytes(weir_descriptors_bytes(descriptors)), 0);
    weir_descriptors_release(descriptors);
}

TEST(descriptors, are_the_takers_once)
{
    int numbers[] = {open_file(), open_file()}, left[WEIR_DESCRIPTORS_MAX];
    weir_descriptors *descriptors = make(NULL, numbers, 2);

    assert_int_equal(weir_descriptors_take(descriptors, 0), numbers[0]);
    assert_int_equal(weir_descriptors_take(descriptors, 0), -EBADF);
    assert_int_equal(weir_descriptors_at(descriptors, 0), -EBADF);
    assert_int_equal(weir_descriptors_take(descriptors, 2), -EINVAL);
    assert_int_equal(weir__descriptors_to_send(descriptors, left), 1);
    assert_int_equal(left[0], numbers[1]);
    weir_descriptors_release(descriptors);
    assert_true(is_open(numbers[0]));
    assert_false(is_open(numbers[1]));
    close(numbers[0]);
}

TEST(descriptors, are_sent_once)
{
    int number = open_file(), left[WEIR_DESCRIPTORS_MAX];
    weir_descriptors *descriptors = make(NULL, &number, 1);

    assert_int_equal(weir__descriptors_to_send(descriptors, left), 1);
    weir__descriptors_sent(descriptors);
    assert_int_equal(weir__descriptors_to_send(descriptors, left), 0);
    weir_descriptors_release(descriptors);
    assert_false(is_open(number));
}

TEST(descriptors, are_closed_if_create_fails)
{
    int numbers[] = {open_file(), -1}, many[WEIR_DESCRIPTORS_MAX + 1];
    weir_descriptors *descriptors = NULL;
    weir_buf *empty;

    assert_int_equal(weir_descriptors_create(NULL, numbers, 2, &descriptors), -EBADF);
    assert_false(is_open(numbers[0]));
    assert_int_equal(weir_descriptors_create(NULL, numbers, 0, &descriptors), -EINVAL);
    assert_int_equal(weir_buf_create(16, 0, &empty), 0);
    numbers[0] = open_file();
    assert_int_equal(weir_descriptors_create(empty, numbers, 1, &descriptors), -EINVAL);
    assert_false(is_open(numbers[0]));
    for (size_t i = 0; i < WEIR_DESCRIPTORS_MAX + 1; i++)
        many[i] = open_file();
    assert_int_equal(weir_descriptors_create(NULL, many, WEIR_DESCRIPTORS_MAX + 1, &descriptors),
                     -EINVAL);
    assert_false(is_open(many[WEIR_DESCRIPTORS_MAX]));
    assert_null(descriptors);
}

TEST(descriptors, are_shared_and_closed_with_the_last)
{
    int number = open_file(), left[WEIR_DESCRIPTORS_MAX];
    weir_descriptors *descriptors = make("abc", &number, 1);
    weir_msg *share, *second;

    assert_int_equal(weir_msg_share(weir_descriptors_msg(descriptors), &share), 0);
    assert_int_equal(weir_msg_share(share, &second), 0);
    assert_int_equal(weir_descriptors_take(descriptors, 0), -EBUSY);
    assert_int_equal(weir_descriptors_take(weir_descriptors_of(share), 0), -EBUSY);
    weir__descriptors_sent(descriptors);
    assert_int_equal(weir__descriptors_to_send(weir_descriptors_of(share), left), 1);
    weir_descriptors_release(descriptors);
    weir_msg_release(share);
    assert_true(is_open(number));
    assert_int_equal(weir_msg_size(second), 3);
    weir_msg_release(second);
    assert_false(is_open(number));
}

TEST(descriptors, fail_without_memory)
{
    for (unsigned n = 1;; n++) {
        int number = open_file();
        weir_descriptors *descriptors = NULL;
        weir_msg *share = NULL;
        int err;

        test_memory_fail_at(n);
        err = weir_descriptors_create_one(number, &descriptors);
        if (err == 0)
            err = weir_msg_share(weir_descriptors_msg(descriptors), &share);
        test_memory_fail_at(0);
        weir_msg_release(share);
        weir_descriptors_release(descriptors);
        assert_false(is_open(number));
        if (err == 0)
            break;
        assert_int_equal(err, -ENOMEM);
    }
}

static void read_and_release(void *arg)
{
    weir_descriptors *descriptors = arg;

    (void)!weir_descriptors_at(descriptors, 0);
    weir_descriptors_release(descriptors);
}

static void take_first(void *descriptors)
{
    int number = weir_descriptors_take(descriptors, 0);

    assert_true(number >= 0);
    (void)close(number);
}

/* Nothing but the count orders the two threads. */
TEST(descriptors, are_taken_after_another_thread_has_read_them)
{
    int number = open_file();
    weir_descriptors *descriptors = make("abc", &number, 1);

    (void)weir_msg_retain(weir_descriptors_msg(descriptors));
    litmus_last_use(read_and_release, descriptors, take_first, descriptors);
    weir_descriptors_release(descriptors);
}
