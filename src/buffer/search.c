/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding, comparing and hashing.
 *
 * Single bytes and sequences are searched by libc, which has the fastest code for the machine.
 * Small sets are searched 16 bytes at a time, with the vector extension of gcc and clang, which
 * compiles to SSE2, AVX or NEON.
 */
#include "buffer/search.h"

/* ---- any of a set ---- */

/* The vector size of every 64-bit machine. */
#define VECTOR_SIZE 16

typedef uint8_t vector __attribute__((vector_size(VECTOR_SIZE)));

void weir_byte_set_init(weir_byte_set *set, const void *bytes, size_t count)
{
    const uint8_t *byte = bytes;

    memset(set, 0, sizeof(*set));
    for (size_t i = 0; i < count; i++) {
        if (weir_byte_set_has(set, byte[i]))
            continue;
        set->bits[byte[i] / 64] |= UINT64_C(1) << byte[i] % 64;
        if (set->count < WEIR_BYTE_SET_SMALL)
            set->small[set->count] = byte[i];
        if (set->count <= WEIR_BYTE_SET_SMALL)
            set->count++;
    }
}

ssize_t weir__span_find_any_plain(weir_span span, const weir_byte_set *set)
{
    for (size_t i = 0; i < span.length; i++)
        if (weir_byte_set_has(set, span.data[i]))
            return (ssize_t)i;
    return -ENOENT;
}

/* The index in memory of the first byte of a word that is not 0. */
static size_t first_in_word(uint64_t word)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return (size_t)__builtin_ctzll(word) / 8;
#else
    return (size_t)__builtin_clzll(word) / 8;
#endif
}

/* The index of the first of 16 bytes that equals a member, or VECTOR_SIZE. */
static size_t find_in_vector(const uint8_t *bytes, const vector *members, size_t count)
{
    vector here, found = {0};
    uint64_t words[2];

    memcpy(&here, bytes, sizeof(here));
    for (size_t i = 0; i < count; i++)
        found |= (vector)(here == members[i]);
    memcpy(words, &found, sizeof(words));
    if ((words[0] | words[1]) == 0)
        return VECTOR_SIZE;
    return words[0] != 0 ? first_in_word(words[0]) : 8 + first_in_word(words[1]);
}

static ssize_t find_any_of_small(weir_span span, const weir_byte_set *set)
{
    vector members[WEIR_BYTE_SET_SMALL];
    size_t offset;

    for (size_t i = 0; i < set->count; i++)
        memset(&members[i], set->small[i], sizeof(members[i]));
    for (offset = 0; offset + VECTOR_SIZE < span.length; offset += VECTOR_SIZE) {
        size_t at = find_in_vector(span.data + offset, members, set->count);

        if (at < VECTOR_SIZE)
            return (ssize_t)(offset + at);
    }
    /* The last vector ends at the end of the span, and overlaps the one before. */
    offset = span.length - VECTOR_SIZE;
    offset += find_in_vector(span.data + offset, members, set->count);
    return offset < span.length ? (ssize_t)offset : -ENOENT;
}

ssize_t weir_span_find_any(weir_span span, const weir_byte_set *set)
{
    if (span.length < VECTOR_SIZE || set->count > WEIR_BYTE_SET_SMALL)
        return weir__span_find_any_plain(span, set);
    return find_any_of_small(span, set);
}

/* ---- one byte, a sequence ---- */

static ssize_t offset_of(weir_span span, const void *found)
{
    return found != NULL ? (const uint8_t *)found - span.data : -ENOENT;
}

ssize_t weir_span_find(weir_span span, uint8_t byte)
{
    return span.length > 0 ? offset_of(span, memchr(span.data, byte, span.length)) : -ENOENT;
}

ssize_t weir_span_find_sequence(weir_span span, weir_span sequence)
{
    if (sequence.length == 0)
        return 0;
    if (sequence.length > span.length)
        return -ENOENT;
    return offset_of(span, memmem(span.data, span.length, sequence.data, sequence.length));
}

/* Converts an offset in a span that began at `from` to an index in the buffer. */
static ssize_t index_of(size_t from, ssize_t offset)
{
    return offset < 0 ? offset : (ssize_t)from + offset;
}

static int span_from(const weir_buf *buf, size_t from, weir_span *ret_span)
{
    return from <= buf->write ? weir_buf_get_span(buf, from, buf->write - from, ret_span)
                              : WEIR_EBOUNDS;
}

ssize_t weir_buf_find(const weir_buf *buf, size_t from, uint8_t byte)
{
    weir_span span;
    int err = span_from(buf, from, &span);

    return err == 0 ? index_of(from, weir_span_find(span, byte)) : err;
}

ssize_t weir_buf_find_any(const weir_buf *buf, size_t from, const weir_byte_set *set)
{
    weir_span span;
    int err = span_from(buf, from, &span);

    return err == 0 ? index_of(from, weir_span_find_any(span, set)) : err;
}

ssize_t weir_buf_find_sequence(const weir_buf *buf, size_t from, weir_span sequence)
{
    weir_span span;
    int err = span_from(buf, from, &span);

    return err == 0 ? index_of(from, weir_span_find_sequence(span, sequence)) : err;
}

/* ---- comparing, hashing ---- */

int weir_span_compare(weir_span a, weir_span b)
{
    size_t length = a.length < b.length ? a.length : b.length;
    int order = length > 0 ? memcmp(a.data, b.data, length) : 0;

    return order != 0 ? order : (a.length > b.length) - (a.length < b.length);
}

bool weir_span_equal(weir_span a, weir_span b)
{
    return a.length == b.length && (a.length == 0 || memcmp(a.data, b.data, a.length) == 0);
}

#define HASH_FACTOR UINT64_C(0xc6a4a7935bd1e995)

static uint64_t hash_mix(uint64_t hash, uint64_t word)
{
    word *= HASH_FACTOR;
    word ^= word >> 47;
    return (hash ^ word * HASH_FACTOR) * HASH_FACTOR;
}

/* MurmurHash64A by Austin Appleby, public domain; but the rest is mixed as a word of its own. */
uint64_t weir_span_hash(weir_span span, uint64_t seed)
{
    uint64_t hash = seed ^ span.length * HASH_FACTOR;
    uint64_t word = 0;
    size_t i;

    for (i = 0; i + sizeof(word) <= span.length; i += sizeof(word)) {
        memcpy(&word, span.data + i, sizeof(word));
        hash = hash_mix(hash, word);
    }
    if (i < span.length) {
        word = 0;
        memcpy(&word, span.data + i, span.length - i);
        hash = hash_mix(hash, word);
    }
    hash = (hash ^ hash >> 47) * HASH_FACTOR;
    return hash ^ hash >> 47;
}
