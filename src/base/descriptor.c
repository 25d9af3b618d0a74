/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system calls behind base/descriptor.h.
 */
#include "base/descriptor.h"

#include <errno.h>
#include <unistd.h>

int weir__descriptor_close(int descriptor)
{
    if (close(descriptor) == 0 || errno == EINTR)
        return 0;
    return -errno;
}
