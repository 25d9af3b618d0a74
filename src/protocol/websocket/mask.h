/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Masking of payloads (RFC 6455, 5.3): exclusive or with a key of four bytes, several bytes at a
 * time.
 */
#ifndef WEIR_PROTOCOL_WEBSOCKET_MASK_H
#define WEIR_PROTOCOL_WEBSOCKET_MASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Masks bytes in place, or unmasks them. The first one is at `offset` in the payload. */
typedef void weir__ws_mask_fn(uint8_t *bytes, size_t length, const uint8_t key[4], uint64_t offset);

/* All ways to do it, for tests: `name` is NULL behind the last one. */
typedef struct weir__ws_masker {
    const char *name;
    weir__ws_mask_fn *mask;
    bool (*is_there)(void); /* the processor can run it */
} weir__ws_masker;

extern const weir__ws_masker weir__ws_maskers[];

/* The best one. */
weir__ws_mask_fn weir__ws_mask;

/* Copies bytes and unmasks them, for short payloads: it begins at once. `key` NULL: only copies.
 * Returns true if all of them are ASCII. */
bool weir__ws_copy_unmasked(uint8_t *to, const uint8_t *from, size_t length, const uint8_t *key);

#endif
