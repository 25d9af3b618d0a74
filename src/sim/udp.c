/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/network.h"
#include <errno.h>
int weir__sim_udp_socket(int domain)
{
    (void)domain;
    return -EPROTONOSUPPORT;
}
