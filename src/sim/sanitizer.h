/* SPDX-License-Identifier: Apache-2.0 */
/*
 * WEIR__SIM_ASAN: 1 if the address sanitizer is on, and its functions.
 */
#ifndef WEIR_SIM_SANITIZER_H
#define WEIR_SIM_SANITIZER_H

#include <stddef.h> /* a header is not empty */

#if defined(__SANITIZE_ADDRESS__)
#define WEIR__SIM_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WEIR__SIM_ASAN 1
#endif
#endif
#ifndef WEIR__SIM_ASAN
#define WEIR__SIM_ASAN 0
#endif

#if WEIR__SIM_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#endif
