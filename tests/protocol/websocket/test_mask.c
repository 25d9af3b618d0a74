/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "protocol/websocket/mask.h"
#include "support/test.h"

#define LENGTH 300

static const uint8_t key[4] = {0x37, 0xfa, 0x21, 0x3d};

static void expect_masked(const uint8_t *bytes, size_t length, uint64_t offset)
{
    for (size_t i = 0; i < length; i++)
        assert_int_equal(bytes[i], (uint8_t)i ^ key[(offset + i) % 4]);
}

/* Every length, alignment and offset, in memory that ends with the bytes. */
static void check(weir__ws_mask_fn *mask)
{
    for (size_t length = 0; length <= LENGTH; length++) {
        for (size_t start = 0; start < 8; start++) {
            uint8_t *memory = malloc(start + length + 1), *bytes = memory + start;
            uint64_t offset = UINT32_MAX - 3 + (start + length) % 7;

            memset(memory, 0x55, start);
            for (size_t i = 0; i < length; i++)
                bytes[i] = (uint8_t)i;
            bytes[length] = 0xaa;
            mask(bytes, length, key, offset);
            expect_masked(bytes, length, offset);
            assert_int_equal(bytes[length], 0xaa);
            for (size_t i = 0; i < start; i++)
                assert_int_equal(memory[i], 0x55);
            free(memory);
        }
    }
}

TEST(mask, gives_the_same_in_every_variant)
{
    for (const weir__ws_masker *masker = weir__ws_maskers; masker->name != NULL; masker++)
        if (masker->is_there())
            check(masker->mask);
    check(weir__ws_mask);
}

/* RFC 6455, 5.7 */
TEST(mask, unmasks_the_example_of_the_rfc)
{
    uint8_t bytes[] = {0x7f, 0x9f, 0x4d, 0x51, 0x58};

    weir__ws_mask(bytes, sizeof(bytes), key, 0);
    assert_memory_equal(bytes, "Hello", 5);
}

TEST(mask, continues_at_any_offset)
{
    uint8_t whole[LENGTH], parts[LENGTH];

    for (size_t cut = 0; cut <= LENGTH; cut++) {
        memset(whole, 'x', LENGTH);
        memset(parts, 'x', LENGTH);
        weir__ws_mask(whole, LENGTH, key, 0);
        weir__ws_mask(parts, cut, key, 0);
        weir__ws_mask(parts + cut, LENGTH - cut, key, cut);
        assert_memory_equal(whole, parts, LENGTH);
    }
}

TEST(mask, copies_short_payloads)
{
    static const uint8_t zeros[4];
    uint8_t from[140], to[140];

    for (size_t length = 0; length <= 130; length++)
        for (size_t high = 0; high <= length; high++)
            for (int masked = 0; masked < 2; masked++) {
                const uint8_t *used = masked ? key : zeros;

                for (size_t i = 0; i < length; i++)
                    from[i] = (uint8_t)((i == high ? 0x80 : i % 128) ^ used[i % 4]);
                memset(to, 0xee, sizeof(to));
                assert_int_equal(weir__ws_copy_unmasked(to, from, length, masked ? key : NULL),
                                 high == length);
                for (size_t i = 0; i < length; i++)
                    assert_int_equal(to[i], i == high ? 0x80 : i % 128);
                assert_int_equal(to[length], 0xee);
            }
}
