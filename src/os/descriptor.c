/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations on any descriptor.
 */
#include "os/descriptor.h"

#include <errno.h>
#include <fcntl.h>

#include "os/system.h"

int weir__descriptor_close(int descriptor)
{
    if (weir__sys.close(descriptor) == 0 || errno == EINTR)
        return 0;
    return -errno;
}

int weir__descriptor_duplicate(int descriptor, int *ret_copy)
{
    int copy = weir__sys.fcntl(descriptor, F_DUPFD_CLOEXEC, 0);

    if (copy < 0)
        return -errno;
    *ret_copy = copy;
    return 0;
}

int weir__descriptor_set_nonblocking(int descriptor)
{
    int flags = weir__sys.fcntl(descriptor, F_GETFL, 0);

    if (flags >= 0 && (flags & O_NONBLOCK) != 0)
        return 0;
    if (flags < 0 || weir__sys.fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) < 0)
        return -errno;
    return 0;
}

int weir__descriptor_set_cloexec(int descriptor)
{
    int flags = weir__sys.fcntl(descriptor, F_GETFD, 0);

    if (flags < 0 || weir__sys.fcntl(descriptor, F_SETFD, flags | FD_CLOEXEC) < 0)
        return -errno;
    return 0;
}
