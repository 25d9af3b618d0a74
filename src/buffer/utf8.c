/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UTF-8 validation. Whole characters of long texts are checked many bytes at a time, by a function
 * that is chosen at run time; what it does not take is checked byte by byte.
 */
#include "buffer/utf8.h"

#include <stdatomic.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define LONG 64 /* bytes from which on the choice of a function pays off */

/* ---- one byte at a time ---- */

#define TAIL_LOW 0x80
#define TAIL_HIGH 0xbf

static int set_state(weir_utf8 *utf8, uint8_t missing, uint8_t low, uint8_t high)
{
    *utf8 = (weir_utf8){missing, low, high};
    return 0;
}

/* An empty range, so that every later check fails. */
static int reject(weir_utf8 *utf8)
{
    *utf8 = (weir_utf8){1, 1, 0};
    return -EILSEQ;
}

/* Table 3-7 of the Unicode standard: the first byte of a character determines the following. */
static int start_character(weir_utf8 *utf8, uint8_t byte)
{
    if (byte < 0x80)
        return 0;
    if (byte >= 0xc2 && byte <= 0xdf)
        return set_state(utf8, 1, TAIL_LOW, TAIL_HIGH);
    if (byte >= 0xe0 && byte <= 0xef)
        return set_state(utf8, 2, byte == 0xe0 ? 0xa0 : TAIL_LOW, byte == 0xed ? 0x9f : TAIL_HIGH);
    if (byte >= 0xf0 && byte <= 0xf4)
        return set_state(utf8, 3, byte == 0xf0 ? 0x90 : TAIL_LOW, byte == 0xf4 ? 0x8f : TAIL_HIGH);
    return reject(utf8);
}

static int continue_character(weir_utf8 *utf8, uint8_t byte)
{
    if (byte < utf8->low || byte > utf8->high)
        return reject(utf8);
    return set_state(utf8, (uint8_t)(utf8->missing - 1), TAIL_LOW, TAIL_HIGH);
}

/* ---- 8 bytes at a time ---- */

/* The number of leading ASCII bytes, in whole words. */
static size_t skip_words(const uint8_t *bytes, size_t length)
{
    uint64_t word;
    size_t i;

    for (i = 0; i + sizeof(word) <= length; i += sizeof(word)) {
        memcpy(&word, bytes + i, sizeof(word));
        if ((word & UINT64_C(0x8080808080808080)) != 0)
            break;
    }
    return i;
}

static bool always(void)
{
    return true;
}

/* ---- 16 bytes at a time ---- */

#if defined(__x86_64__)

static bool is_ascii_16(const uint8_t *bytes)
{
    return _mm_movemask_epi8(_mm_loadu_si128((const __m128i *)(const void *)bytes)) == 0;
}

#elif defined(__aarch64__)

static bool is_ascii_16(const uint8_t *bytes)
{
    return vmaxvq_u8(vld1q_u8(bytes)) < 0x80;
}

#endif

#if defined(__x86_64__) || defined(__aarch64__)

/* ASCII only. */
static size_t skip_16(const uint8_t *bytes, size_t length)
{
    size_t i = 0;

    while (i + 16 <= length && is_ascii_16(bytes + i))
        i += 16;
    return i + skip_words(bytes + i, length - i);
}

#endif

/* ---- 32 bytes at a time ---- */

#if defined(__x86_64__)

/*
 * All characters, by the algorithm of Keiser and Lemire, "Validating UTF-8 in less than one
 * instruction per byte" (2021). Each kind of mistake is visible in 12 bits: a byte and the upper
 * half of the next one. Three tables say which kinds a half byte can be part of; a kind that all
 * three agree on is there.
 */
enum mistake {
    TOO_SHORT = 1 << 0,    /* a lead byte without a continuation */
    TOO_LONG = 1 << 1,     /* a continuation behind ASCII */
    OVERLONG_3 = 1 << 2,   /* e0 80 to e0 9f */
    TOO_LARGE = 1 << 3,    /* above U+10FFFF: f4 90 and more */
    SURROGATE = 1 << 4,    /* ed a0 to ed bf */
    OVERLONG_2 = 1 << 5,   /* c0, c1 */
    TOO_LARGE_80 = 1 << 6, /* f5 80 and more; the same bit as that of f0 80 to f0 8f, overlong */
    TWO_TAILS = 1 << 7,    /* two continuations: right only behind a lead byte of three or four */
};

/* Whatever the lower half of the first byte is. */
#define ANY_LOW (TOO_SHORT | TOO_LONG | TWO_TAILS)
#define ABOVE_F4 (ANY_LOW | TOO_LARGE | TOO_LARGE_80)
#define TAIL (TOO_LONG | OVERLONG_2 | TWO_TAILS)

#define TABLE(...) _mm256_broadcastsi128_si256(_mm_setr_epi8(__VA_ARGS__))

static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") != 0;
}

__attribute__((target("avx2"))) static __m256i half_kinds(__m256i table, __m256i halves)
{
    return _mm256_shuffle_epi8(table, _mm256_and_si256(halves, _mm256_set1_epi8(0x0f)));
}

/* The kinds of mistakes at each byte; `before` are the bytes, each with the one before it. */
__attribute__((target("avx2"))) static __m256i find_kinds(__m256i bytes, __m256i before)
{
    const __m256i first_high = TABLE(
        TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG, TOO_LONG,
        (char)TWO_TAILS, (char)TWO_TAILS, (char)TWO_TAILS, (char)TWO_TAILS, TOO_SHORT | OVERLONG_2,
        TOO_SHORT, TOO_SHORT | OVERLONG_3 | SURROGATE, TOO_SHORT | TOO_LARGE | TOO_LARGE_80);
    const __m256i first_low = TABLE(
        (char)(ANY_LOW | OVERLONG_2 | OVERLONG_3 | TOO_LARGE_80), (char)(ANY_LOW | OVERLONG_2),
        (char)ANY_LOW, (char)ANY_LOW, (char)(ANY_LOW | TOO_LARGE), (char)ABOVE_F4, (char)ABOVE_F4,
        (char)ABOVE_F4, (char)ABOVE_F4, (char)ABOVE_F4, (char)ABOVE_F4, (char)ABOVE_F4,
        (char)ABOVE_F4, (char)(ABOVE_F4 | SURROGATE), (char)ABOVE_F4, (char)ABOVE_F4);
    const __m256i second_high =
        TABLE(TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT,
              TOO_SHORT, (char)(TAIL | OVERLONG_3 | TOO_LARGE_80),
              (char)(TAIL | OVERLONG_3 | TOO_LARGE), (char)(TAIL | SURROGATE | TOO_LARGE),
              (char)(TAIL | SURROGATE | TOO_LARGE), TOO_SHORT, TOO_SHORT, TOO_SHORT, TOO_SHORT);

    return _mm256_and_si256(_mm256_and_si256(half_kinds(first_high, _mm256_srli_epi16(before, 4)),
                                             half_kinds(first_low, before)),
                            half_kinds(second_high, _mm256_srli_epi16(bytes, 4)));
}

/* True if the characters in `bytes` are right, as far as they go; `previous` are the bytes before.
 */
__attribute__((target("avx2"))) static bool are_right(__m256i bytes, __m256i previous)
{
    __m256i joined = _mm256_permute2x128_si256(previous, bytes, 0x21);
    __m256i before_1 = _mm256_alignr_epi8(bytes, joined, 15);
    __m256i before_2 = _mm256_alignr_epi8(bytes, joined, 14);
    __m256i before_3 = _mm256_alignr_epi8(bytes, joined, 13);
    /* The third byte of a character of three or four, and the fourth: bit 7 is set. */
    __m256i third = _mm256_subs_epu8(before_2, _mm256_set1_epi8((char)(0xe0 - 0x80)));
    __m256i fourth = _mm256_subs_epu8(before_3, _mm256_set1_epi8((char)(0xf0 - 0x80)));
    __m256i tails =
        _mm256_and_si256(_mm256_or_si256(third, fourth), _mm256_set1_epi8((char)TWO_TAILS));
    __m256i wrong = _mm256_xor_si256(find_kinds(bytes, before_1), tails);

    return _mm256_testz_si256(wrong, wrong) != 0;
}

/* The number of bytes before `end` that belong to a character that is not complete there. */
static size_t count_incomplete(const uint8_t *end)
{
    if (end[-1] >= 0xc0)
        return 1;
    if (end[-2] >= 0xe0)
        return 2;
    return end[-3] >= 0xf0 ? 3 : 0;
}

__attribute__((target("avx2"))) static size_t skip_32(const uint8_t *bytes, size_t length)
{
    __m256i previous = _mm256_setzero_si256();
    bool was_ascii = true;
    size_t i = 0;

    for (; i + 32 <= length; i += 32) {
        __m256i next = _mm256_loadu_si256((const __m256i *)(const void *)(bytes + i));
        bool is_ascii = _mm256_movemask_epi8(next) == 0;

        if (!(is_ascii && was_ascii) && !are_right(next, previous))
            break;
        previous = next;
        was_ascii = is_ascii;
    }
    return i > 0 ? i - count_incomplete(bytes + i) : 0;
}

#endif

/* ---- choice ---- */

const weir__utf8_skipper weir__utf8_skippers[] = {
#if defined(__x86_64__)
    {"32 bytes", skip_32, has_avx2},
#endif
#if defined(__x86_64__) || defined(__aarch64__)
    {"16 bytes", skip_16, always},
#endif
    {"8 bytes", skip_words, always},
    {NULL, NULL, NULL},
};

/* The best function. Relaxed: it points to code, and every thread finds the same one. */
static weir__utf8_skip_fn *best(void)
{
    static _Atomic(weir__utf8_skip_fn *) found;
    weir__utf8_skip_fn *skip = atomic_load_explicit(&found, memory_order_relaxed);
    const weir__utf8_skipper *skipper = weir__utf8_skippers;

    if (skip != NULL)
        return skip;
    while (!skipper->is_there())
        skipper++;
    atomic_store_explicit(&found, skipper->skip, memory_order_relaxed);
    return skipper->skip;
}

int weir_utf8_check(weir_utf8 *utf8, weir_span span)
{
    int err = utf8->low > utf8->high ? -EILSEQ : 0; /* failed before */

    for (size_t i = 0; i < span.length && err == 0; i++) {
        size_t left = span.length - i;

        if (utf8->missing > 0) {
            err = continue_character(utf8, span.data[i]);
            continue;
        }
        i += left < LONG ? skip_words(span.data + i, left) : best()(span.data + i, left);
        if (i < span.length)
            err = start_character(utf8, span.data[i]);
    }
    return err;
}

/* For short texts. The last word overlaps the one before. */
static bool is_ascii(const uint8_t *bytes, size_t length)
{
    uint64_t all = 0, word;

    if (length < sizeof(word))
        return false;
    for (size_t i = 0; i + sizeof(word) < length; i += sizeof(word)) {
        memcpy(&word, bytes + i, sizeof(word));
        all |= word;
    }
    memcpy(&word, bytes + length - sizeof(word), sizeof(word));
    return ((all | word) & UINT64_C(0x8080808080808080)) == 0;
}

bool weir_span_is_utf8(weir_span span)
{
    weir_utf8 utf8 = {0, 0, 0};

    if (span.length < LONG && is_ascii(span.data, span.length))
        return true;
    return weir_utf8_check(&utf8, span) == 0 && weir_utf8_is_complete(&utf8);
}
