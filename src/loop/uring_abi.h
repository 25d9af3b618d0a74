/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel interface missing from the headers of liburing 2.3. */
#ifndef WEIR_LOOP_URING_ABI_H
#define WEIR_LOOP_URING_ABI_H

#include <liburing.h>

#ifndef IORING_ENTER_NO_IOWAIT
#define IORING_ENTER_NO_IOWAIT \
    (1U << 7) /* a waiting loop counts as idle, not as waiting for a disk */
#endif

#ifndef IORING_FEAT_NO_IOWAIT
#define IORING_FEAT_NO_IOWAIT (1U << 17)
#endif

#endif
