/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CRC-32C (Castagnoli), as of RFC 3720, four bits at a time: for headers, not for bulk.
 */
#ifndef WEIR_BASE_CRC32C_H
#define WEIR_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* The sum of `crc`'s bytes and these; 0 is the sum of nothing. */
uint32_t weir__crc32c(uint32_t crc, const void *bytes, size_t length);

#endif
