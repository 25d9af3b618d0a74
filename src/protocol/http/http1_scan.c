/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/http/http1_scan.h"

#include <stdatomic.h>
#include <stddef.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

static bool always(void)
{
    return true;
}

/* ---- one byte at a time ---- */

static const uint8_t *value_portably(const uint8_t *at, const uint8_t *end)
{
    while (at < end && weir__http_char_is(*at, WEIR__HTTP_VALUE))
        at++;
    return at;
}

static const uint8_t *target_portably(const uint8_t *at, const uint8_t *end)
{
    while (at < end && weir__http_char_is(*at, WEIR__HTTP_TARGET))
        at++;
    return at;
}

/* ---- 16 bytes at a time ---- */

#ifdef WEIR__HTTP1_VECTOR

static const uint8_t *value_by_16(const uint8_t *at, const uint8_t *end)
{
    while (end - at >= WEIR__HTTP1_VECTOR) {
        unsigned fits = weir__http1_value_bytes(at);

        at += fits;
        if (fits < WEIR__HTTP1_VECTOR)
            return at;
    }
    return value_portably(at, end);
}

static const uint8_t *target_by_16(const uint8_t *at, const uint8_t *end)
{
    while (end - at >= WEIR__HTTP1_VECTOR) {
        unsigned fits = weir__http1_target_bytes(at);

        at += fits;
        if (fits < WEIR__HTTP1_VECTOR)
            return at;
    }
    return target_portably(at, end);
}

#endif

/* ---- 32 bytes at a time ---- */

#if defined(__x86_64__)

static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") != 0;
}

__attribute__((target("avx2"))) static const uint8_t *value_by_32(const uint8_t *at,
                                                                  const uint8_t *end)
{
    const __m256i highest_low = _mm256_set1_epi8(0x1f), tabs = _mm256_set1_epi8('\t');
    const __m256i dels = _mm256_set1_epi8(0x7f);

    while (end - at >= 32) {
        __m256i bytes = _mm256_loadu_si256((const __m256i *)(const void *)at);
        __m256i low = _mm256_cmpeq_epi8(_mm256_min_epu8(bytes, highest_low), bytes);
        __m256i del = _mm256_cmpeq_epi8(bytes, dels), tab = _mm256_cmpeq_epi8(bytes, tabs);
        __m256i stop = _mm256_or_si256(_mm256_andnot_si256(tab, low), del);
        unsigned stops = (unsigned)_mm256_movemask_epi8(stop);

        if (stops != 0)
            return at + __builtin_ctz(stops);
        at += 32;
    }
    return value_by_16(at, end);
}

__attribute__((target("avx2"))) static const uint8_t *target_by_32(const uint8_t *at,
                                                                   const uint8_t *end)
{
    const __m256i blanks = _mm256_set1_epi8(0x20), dels = _mm256_set1_epi8(0x7f);

    while (end - at >= 32) {
        __m256i bytes = _mm256_loadu_si256((const __m256i *)(const void *)at);
        __m256i visible = _mm256_cmpgt_epi8(bytes, blanks);
        __m256i fit = _mm256_andnot_si256(_mm256_cmpeq_epi8(bytes, dels), visible);
        unsigned stops = ~(unsigned)_mm256_movemask_epi8(fit);

        if (stops != 0)
            return at + __builtin_ctz(stops);
        at += 32;
    }
    return target_by_16(at, end);
}

#endif

/* ---- choice ---- */

const weir__http1_scanner weir__http1_scanners[] = {
#if defined(__x86_64__)
    {"32 bytes", value_by_32, target_by_32, has_avx2},
#endif
#ifdef WEIR__HTTP1_VECTOR
    {"16 bytes", value_by_16, target_by_16, always},
#endif
    {"portable", value_portably, target_portably, always},
    {NULL, NULL, NULL, NULL},
};

/* The best scanner. Relaxed: it points to constants, and every thread finds the same one. */
static const weir__http1_scanner *best(void)
{
    static _Atomic(const weir__http1_scanner *) found;
    const weir__http1_scanner *scanner = atomic_load_explicit(&found, memory_order_relaxed);

    if (scanner != NULL)
        return scanner;
    for (scanner = weir__http1_scanners; !scanner->is_there();)
        scanner++;
    atomic_store_explicit(&found, scanner, memory_order_relaxed);
    return scanner;
}

const uint8_t *weir__http1_scan_long_value(const uint8_t *at, const uint8_t *end)
{
    return best()->value(at, end);
}

const uint8_t *weir__http1_scan_long_target(const uint8_t *at, const uint8_t *end)
{
    return best()->target(at, end);
}
