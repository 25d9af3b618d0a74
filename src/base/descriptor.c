/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What may be done with any descriptor.
 */
#include "base/descriptor.h"

#include <errno.h>

#include "base/system.h"

int weir__descriptor_close(int descriptor)
{
    if (weir__sys.close(descriptor) == 0 || errno == EINTR)
        return 0;
    return -errno;
}
