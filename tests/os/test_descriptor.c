/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations on descriptors.
 */
#include "os/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "support/test.h"

TEST(descriptor, is_closed)
{
    int descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC);

    assert_true(descriptor >= 0);
    assert_int_equal(weir__descriptor_close(descriptor), 0);
    assert_int_equal(fcntl(descriptor, F_GETFD), -1);
}

TEST(descriptor, that_is_invalid_is_an_error)
{
    assert_int_equal(weir__descriptor_close(-1), -EBADF);
}

TEST(descriptor, gets_another_and_flags)
{
    int descriptor = open("/dev/null", O_RDONLY), copy = -1;

    assert_int_equal(weir__descriptor_duplicate(descriptor, &copy), 0);
    assert_true(copy != descriptor && fcntl(copy, F_GETFD) == FD_CLOEXEC);
    assert_int_equal(weir__descriptor_set_cloexec(descriptor), 0);
    assert_int_equal(fcntl(descriptor, F_GETFD), FD_CLOEXEC);
    assert_int_equal(weir__descriptor_set_nonblocking(descriptor), 0);
    assert_int_equal(weir__descriptor_set_nonblocking(copy), 0);
    assert_true((fcntl(copy, F_GETFL) & O_NONBLOCK) != 0); /* a property of the open file */
    assert_int_equal(weir__descriptor_close(copy), 0);
    assert_int_equal(weir__descriptor_close(descriptor), 0);
    assert_int_equal(weir__descriptor_duplicate(descriptor, &copy), -EBADF);
    assert_int_equal(weir__descriptor_set_cloexec(descriptor), -EBADF);
    assert_int_equal(weir__descriptor_set_nonblocking(descriptor), -EBADF);
}
