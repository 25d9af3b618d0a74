/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Closing descriptors.
 */
#include "base/descriptor.h"

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

TEST(descriptor, that_is_none_is_an_error)
{
    assert_int_equal(weir__descriptor_close(-1), -EBADF);
}
