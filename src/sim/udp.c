/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include "sim/network.h"
int weir__sim_udp_socket(int domain) { (void)domain; return -EPROTONOSUPPORT; }
