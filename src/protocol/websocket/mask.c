/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/websocket/mask.h"

#include <stdatomic.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define LONG 128 /* bytes from which on the choice of a function pays off */

/* The key as it applies to four bytes at `offset`: turned by as many bytes. */
static uint32_t turned_key(const uint8_t key[4], uint64_t offset)
{
    unsigned turn = 8 * (offset & 3);
    uint32_t word;

    memcpy(&word, key, sizeof(word));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return word << turn | word >> (-turn & 31);
#else
    return word >> turn | word << (-turn & 31);
#endif
}

/* 8 bytes at a time; `turned` is the key of the first four. */
static void mask_words(uint8_t *bytes, size_t length, uint32_t turned)
{
    const uint64_t keys = turned | (uint64_t)turned << 32;

    for (; length >= sizeof(keys); bytes += sizeof(keys), length -= sizeof(keys)) {
        uint64_t word;

        memcpy(&word, bytes, sizeof(word));
        word ^= keys;
        memcpy(bytes, &word, sizeof(word));
    }
    if (length >= sizeof(turned)) {
        uint32_t word;

        memcpy(&word, bytes, sizeof(word));
        word ^= turned;
        memcpy(bytes, &word, sizeof(word));
        bytes += sizeof(word);
        length -= sizeof(word);
    }
    for (size_t i = 0; i < length; i++)
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        bytes[i] ^= (uint8_t)(turned >> (24 - 8 * i));
#else
        bytes[i] ^= (uint8_t)(turned >> (8 * i));
#endif
}

static bool always(void)
{
    return true;
}

static void mask_by_8(uint8_t *bytes, size_t length, const uint8_t key[4], uint64_t offset)
{
    mask_words(bytes, length, turned_key(key, offset));
}

/* ---- 16 bytes at a time ---- */

#if defined(__x86_64__)

static void mask_vectors(uint8_t *bytes, size_t length, uint32_t turned)
{
    const __m128i keys = _mm_set1_epi32((int)turned);

    for (; length >= 16; bytes += 16, length -= 16) {
        __m128i *vector = (__m128i *)(void *)bytes;

        _mm_storeu_si128(vector, _mm_xor_si128(_mm_loadu_si128(vector), keys));
    }
    mask_words(bytes, length, turned);
}

#elif defined(__aarch64__)

static void mask_vectors(uint8_t *bytes, size_t length, uint32_t turned)
{
    const uint8x16_t keys = vreinterpretq_u8_u32(vdupq_n_u32(turned));

    for (; length >= 16; bytes += 16, length -= 16)
        vst1q_u8(bytes, veorq_u8(vld1q_u8(bytes), keys));
    mask_words(bytes, length, turned);
}

#else

static void mask_vectors(uint8_t *bytes, size_t length, uint32_t turned)
{
    mask_words(bytes, length, turned);
}

#endif

static void mask_by_16(uint8_t *bytes, size_t length, const uint8_t key[4], uint64_t offset)
{
    mask_vectors(bytes, length, turned_key(key, offset));
}

/* ---- 32 bytes at a time ---- */

#if defined(__x86_64__)

static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") != 0;
}

__attribute__((target("avx2"))) static void mask_by_32(uint8_t *bytes, size_t length,
                                                       const uint8_t key[4], uint64_t offset)
{
    const uint32_t turned = turned_key(key, offset);
    const __m256i keys = _mm256_set1_epi32((int)turned);

    for (; length >= 64; bytes += 64, length -= 64) {
        __m256i *vectors = (__m256i *)(void *)bytes;

        _mm256_storeu_si256(vectors, _mm256_xor_si256(_mm256_loadu_si256(vectors), keys));
        _mm256_storeu_si256(vectors + 1, _mm256_xor_si256(_mm256_loadu_si256(vectors + 1), keys));
    }
    mask_vectors(bytes, length, turned);
}

#endif

/* ---- choice ---- */

const weir__ws_masker weir__ws_maskers[] = {
#if defined(__x86_64__)
    {"32 bytes", mask_by_32, has_avx2},
#endif
    {"16 bytes", mask_by_16, always},
    {"8 bytes", mask_by_8, always},
    {NULL, NULL, NULL},
};

/* The best function. Relaxed: it points to code, and every thread finds the same one. */
static weir__ws_mask_fn *best(void)
{
    static _Atomic(weir__ws_mask_fn *) found;
    weir__ws_mask_fn *mask = atomic_load_explicit(&found, memory_order_relaxed);
    const weir__ws_masker *masker = weir__ws_maskers;

    if (mask != NULL)
        return mask;
    while (!masker->is_there())
        masker++;
    atomic_store_explicit(&found, masker->mask, memory_order_relaxed);
    return masker->mask;
}

void weir__ws_mask(uint8_t *bytes, size_t length, const uint8_t key[4], uint64_t offset)
{
    if (length < LONG)
        mask_by_16(bytes, length, key, offset);
    else
        best()(bytes, length, key, offset);
}

/* ---- short payloads ---- */

static uint64_t copy_word(uint8_t *to, const uint8_t *from, uint32_t turned)
{
    uint64_t word;

    memcpy(&word, from, sizeof(word));
    word ^= turned | (uint64_t)turned << 32;
    memcpy(to, &word, sizeof(word));
    return word;
}

/* The last eight bytes are one word, too, which may overlap the one before. */
bool weir__ws_copy_unmasked(uint8_t *to, const uint8_t *from, size_t length, const uint8_t *key)
{
    static const uint8_t zeros[4];
    uint64_t all = 0;
    uint32_t word;
    size_t i = 0;

    if (key == NULL)
        key = zeros;
    memcpy(&word, key, sizeof(word));
    for (; i + sizeof(all) <= length; i += sizeof(all))
        all |= copy_word(to + i, from + i, word);
    if (i < length && length >= sizeof(all)) {
        i = length - sizeof(all);
        all |= copy_word(to + i, from + i, turned_key(key, i));
    } else {
        for (; i < length; i++) {
            to[i] = from[i] ^ key[i % 4];
            all |= to[i];
        }
    }
    return (all & 0x8080808080808080u) == 0;
}
