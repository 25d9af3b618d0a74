/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scanning for the end of a field value or of a request target, several bytes at a time.
 *
 * SSE2 and NEON are part of their architectures. Texts longer than two vectors are passed to a
 * function that is chosen at run time: AVX2 if the processor has it.
 */
#ifndef WEIR_PROTOCOL_HTTP_HTTP1_SCAN_H
#define WEIR_PROTOCOL_HTTP_HTTP1_SCAN_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/http/chars.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

/* The first byte from `at` on that is not part of the text; `end` if there is none. */
typedef const uint8_t *weir__http1_scan_fn(const uint8_t *at, const uint8_t *end);

/* All ways to do it, for tests: `name` is NULL behind the last one. */
typedef struct weir__http1_scanner {
    const char *name;
    weir__http1_scan_fn *value;
    weir__http1_scan_fn *target;
    bool (*is_there)(void); /* the processor can run it */
} weir__http1_scanner;

extern const weir__http1_scanner weir__http1_scanners[];

/* The best one. */
weir__http1_scan_fn weir__http1_scan_long_value;
weir__http1_scan_fn weir__http1_scan_long_target;

#if defined(__SSE2__)

#define WEIR__HTTP1_VECTOR 16

/* The number of bytes at `at` that are part of a value; 16 if all of them. */
static inline unsigned weir__http1_value_bytes(const uint8_t *at)
{
    __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
    __m128i low = _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(0x1f)), bytes);
    __m128i tab = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\t'));
    __m128i del = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(0x7f));
    unsigned stops = (unsigned)_mm_movemask_epi8(_mm_or_si128(_mm_andnot_si128(tab, low), del));

    return (unsigned)__builtin_ctz(stops | 0x10000u);
}

/* The number of bytes before the first one that is `byte`; 16 if there is none. */
static inline unsigned weir__http1_bytes_before(const uint8_t *at, uint8_t byte)
{
    __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
    __m128i found = _mm_cmpeq_epi8(bytes, _mm_set1_epi8((char)byte));

    return (unsigned)__builtin_ctz((unsigned)_mm_movemask_epi8(found) | 0x10000u);
}

/* Bytes above 127 are negative. */
static inline unsigned weir__http1_target_bytes(const uint8_t *at)
{
    __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
    __m128i visible = _mm_cmpgt_epi8(bytes, _mm_set1_epi8(0x20));
    __m128i del = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(0x7f));
    unsigned fits = (unsigned)_mm_movemask_epi8(_mm_andnot_si128(del, visible));

    return (unsigned)__builtin_ctz(~fits);
}

#elif defined(__aarch64__)

#define WEIR__HTTP1_VECTOR 16

/* Four bits per byte: the number of bytes before the first one that stops. */
static inline unsigned weir__http1_first_stop(uint8x16_t stops)
{
    uint64_t mask =
        vget_lane_u64(vreinterpret_u64_u8(vshrn_n_u16(vreinterpretq_u16_u8(stops), 4)), 0);

    return mask != 0 ? (unsigned)__builtin_ctzll(mask) / 4 : WEIR__HTTP1_VECTOR;
}

static inline unsigned weir__http1_bytes_before(const uint8_t *at, uint8_t byte)
{
    return weir__http1_first_stop(vceqq_u8(vld1q_u8(at), vdupq_n_u8(byte)));
}

static inline unsigned weir__http1_value_bytes(const uint8_t *at)
{
    uint8x16_t bytes = vld1q_u8(at);
    uint8x16_t low = vcltq_u8(bytes, vdupq_n_u8(0x20));
    uint8x16_t tab = vceqq_u8(bytes, vdupq_n_u8('\t'));
    uint8x16_t del = vceqq_u8(bytes, vdupq_n_u8(0x7f));

    return weir__http1_first_stop(vorrq_u8(vbicq_u8(low, tab), del));
}

static inline unsigned weir__http1_target_bytes(const uint8_t *at)
{
    uint8x16_t bytes = vld1q_u8(at);

    return weir__http1_first_stop(
        vorrq_u8(vcleq_u8(bytes, vdupq_n_u8(0x20)), vcgeq_u8(bytes, vdupq_n_u8(0x7f))));
}

#endif

static inline const uint8_t *weir__http1_scan_value(const uint8_t *at, const uint8_t *end)
{
#ifdef WEIR__HTTP1_VECTOR
    for (int i = 0; i < 2 && end - at >= WEIR__HTTP1_VECTOR; i++) {
        unsigned fits = weir__http1_value_bytes(at);

        at += fits;
        if (fits < WEIR__HTTP1_VECTOR)
            return at;
    }
    if (end - at >= WEIR__HTTP1_VECTOR)
        return weir__http1_scan_long_value(at, end);
#endif
    while (at < end && weir__http_char_is(*at, WEIR__HTTP_VALUE))
        at++;
    return at;
}

static inline const uint8_t *weir__http1_scan_target(const uint8_t *at, const uint8_t *end)
{
#ifdef WEIR__HTTP1_VECTOR
    for (int i = 0; i < 2 && end - at >= WEIR__HTTP1_VECTOR; i++) {
        unsigned fits = weir__http1_target_bytes(at);

        at += fits;
        if (fits < WEIR__HTTP1_VECTOR)
            return at;
    }
    if (end - at >= WEIR__HTTP1_VECTOR)
        return weir__http1_scan_long_target(at, end);
#endif
    while (at < end && weir__http_char_is(*at, WEIR__HTTP_TARGET))
        at++;
    return at;
}

#endif
