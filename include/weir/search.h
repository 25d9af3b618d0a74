/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir/search.h - finding, comparing and hashing bytes.
 *
 * weir_span_* work on any memory and answer with an offset into it; weir_buf_find* search from an
 * index to the write index and answer with an index. What is not there is -ENOENT.
 */
#ifndef WEIR_SEARCH_H
#define WEIR_SEARCH_H

#include <sys/types.h>

#include <weir/bytes.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Up to so many different bytes a set is searched for by vector instructions. */
#define WEIR_BYTE_SET_FEW 8

/* A set of bytes to look for, such as delimiters; the fields are private. */
typedef struct weir_byte_set {
    uint64_t bits[4];
    uint8_t count; /* WEIR_BYTE_SET_FEW + 1 = more than `few` holds */
    uint8_t few[WEIR_BYTE_SET_FEW];
} weir_byte_set;

/*
 * Makes a set of these bytes; the same one may come twice.
 * Thread: any.
 */
WEIR_API void weir_byte_set_init(weir_byte_set *set, const void *bytes, size_t count);

/*
 * Whether the byte is in the set.
 * Thread: any.
 */
static inline bool weir_byte_set_has(const weir_byte_set *set, uint8_t byte)
{
    return (set->bits[byte / 64] >> byte % 64 & 1) != 0;
}

/* ---- in a span ---- */

/*
 * The offset of the first such byte.
 * Thread: any.  Fails: -ENOENT.
 */
WEIR_API ssize_t weir_span_find(weir_span span, uint8_t byte);

/*
 * The offset of the first byte that is in the set.
 * Thread: any.  Fails: -ENOENT.
 */
WEIR_API ssize_t weir_span_find_any(weir_span span, const weir_byte_set *set);

/*
 * The offset where the sequence first begins; an empty one begins everywhere.
 * Thread: any.  Fails: -ENOENT.
 */
WEIR_API ssize_t weir_span_find_sequence(weir_span span, weir_span sequence);

/*
 * Less than, equal to or greater than 0, by the first byte that differs, else by length.
 * Thread: any.
 */
WEIR_API int weir_span_compare(weir_span a, weir_span b);

/*
 * Whether both have the same bytes.
 * Thread: any.
 */
WEIR_API bool weir_span_equal(weir_span a, weir_span b);

/*
 * A number that is the same for the same bytes and seed: for tables. It may differ between versions
 * and machines, and does not withstand who wants collisions.
 * Thread: any.
 */
WEIR_API uint64_t weir_span_hash(weir_span span, uint64_t seed);

/* ---- in a buffer ---- */

/*
 * The index of the first such byte between `from` and the write index.
 * Thread: its holder's.  Fails: -ENOENT, WEIR_EBOUNDS (`from` is beyond the write index).
 */
WEIR_API ssize_t weir_buf_find(const weir_buf *buf, size_t from, uint8_t byte);

/*
 * The index of the first byte between `from` and the write index that is in the set.
 * Thread: its holder's.  Fails: -ENOENT, WEIR_EBOUNDS (`from` is beyond the write index).
 */
WEIR_API ssize_t weir_buf_find_any(const weir_buf *buf, size_t from, const weir_byte_set *set);

/*
 * The index where the sequence first begins, between `from` and the write index.
 * Thread: its holder's.  Fails: -ENOENT, WEIR_EBOUNDS (`from` is beyond the write index).
 */
WEIR_API ssize_t weir_buf_find_sequence(const weir_buf *buf, size_t from, weir_span sequence);

/*
 * weir_span_compare of the readable bytes of both.
 * Thread: the holder's of both.
 */
static inline int weir_buf_compare(const weir_buf *a, const weir_buf *b)
{
    return weir_span_compare(weir_buf_span(a), weir_buf_span(b));
}

/*
 * Whether both have the same readable bytes.
 * Thread: the holder's of both.
 */
static inline bool weir_buf_equal(const weir_buf *a, const weir_buf *b)
{
    return weir_span_equal(weir_buf_span(a), weir_buf_span(b));
}

/*
 * weir_span_hash of the readable bytes.
 * Thread: its holder's.
 */
static inline uint64_t weir_buf_hash(const weir_buf *buf, uint64_t seed)
{
    return weir_span_hash(weir_buf_span(buf), seed);
}

#ifdef __cplusplus
}
#endif

#endif
