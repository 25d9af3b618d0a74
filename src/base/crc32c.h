/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CRC-32C (Castagnoli, RFC 3720), four bits at a time: for short headers, not for bulk data.
 */
#ifndef WEIR_BASE_CRC32C_H
#define WEIR_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Continues the checksum `crc` with `length` bytes. Begin with 0. */
uint32_t weir__crc32c(uint32_t crc, const void *bytes, size_t length);

#endif
