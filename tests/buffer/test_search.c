/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding, comparing and hashing: vector and scalar code compared, at every length and offset
 * around the width of a vector, and within bounds.
 */
#include "buffer/search.h"

#include "os/random.h"
#include "support/buffer/buf.h"

#define LENGTH_MAX 70 /* beyond four vectors */

static weir_byte_set set_of(const char *bytes)
{
    weir_byte_set set;

    weir_byte_set_init(&set, bytes, strlen(bytes));
    return set;
}

/* ---- sets ---- */

TEST(search, a_set_contains_its_bytes)
{
    weir_byte_set none, all;
    uint8_t bytes[256];

    for (int i = 0; i < 256; i++)
        bytes[i] = (uint8_t)i;
    weir_byte_set_init(&none, NULL, 0);
    weir_byte_set_init(&all, bytes, 256);
    for (int i = 0; i < 256; i++) {
        weir_byte_set one;

        weir_byte_set_init(&one, &bytes[i], 1);
        assert_false(weir_byte_set_has(&none, bytes[i]));
        assert_true(weir_byte_set_has(&all, bytes[i]));
        for (int j = 0; j < 256; j++)
            assert_int_equal(weir_byte_set_has(&one, bytes[j]), i == j);
    }
}

TEST(search, a_byte_that_comes_twice_is_in_the_set_once)
{
    weir_byte_set set = set_of("aaaaaaaaaaaabaaaaaaaaa");

    assert_true(weir_byte_set_has(&set, 'a'));
    assert_true(weir_byte_set_has(&set, 'b'));
    assert_int_equal(weir_span_find_any(weir_span_of_text("................b"), &set), 16);
}

/* ---- any of a set ---- */

/* Sets of all sizes around WEIR_BYTE_SET_SMALL, and none with an 'x'. */
static const char *const sets[] = {"",        "a",        "ab",        "abc",
                                   "abcdefg", "abcdefgh", "abcdefghi", "abcdefghijklmnop"};

#define SETS (sizeof(sets) / sizeof(sets[0]))

TEST(search, any_of_a_set_is_found_at_every_place_of_every_length)
{
    for (size_t s = 0; s < SETS; s++) {
        weir_byte_set set = set_of(sets[s]);

        for (size_t length = 0; length <= LENGTH_MAX; length++) {
            char bytes[LENGTH_MAX];

            memset(bytes, 'x', sizeof(bytes));
            assert_int_equal(weir_span_find_any(weir_span_of(bytes, length), &set), -ENOENT);
            for (size_t at = length; sets[s][0] != '\0' && at-- > 0;) {
                bytes[at] = sets[s][at % strlen(sets[s])]; /* later matches are not found */
                assert_int_equal(weir_span_find_any(weir_span_of(bytes, length), &set), at);
            }
        }
    }
}

TEST(search, vector_and_scalar_search_agree)
{
    weir__random random;
    uint8_t memory[LENGTH_MAX + 16];

    weir__random_init(&random, weir__random_process_seed());
    for (int i = 0; i < 20000; i++) {
        size_t offset = weir__random_below(&random, 16); /* aligned or not */
        size_t length = weir__random_below(&random, LENGTH_MAX + 1);
        size_t members = weir__random_below(&random, 12);
        weir_span span = weir_span_of(memory + offset, length);
        weir_byte_set set;
        uint8_t bytes[12];

        for (size_t j = 0; j < sizeof(memory); j++)
            memory[j] = (uint8_t)weir__random_next(&random);
        for (size_t j = 0; j < members; j++)
            bytes[j] = (uint8_t)weir__random_next(&random);
        weir_byte_set_init(&set, bytes, members);
        assert_int_equal(weir_span_find_any(span, &set), weir__span_find_any_plain(span, &set));
    }
}

/* ---- a sequence ---- */

static ssize_t find_sequence_plain(weir_span span, weir_span sequence)
{
    for (size_t i = 0; i + sequence.length <= span.length; i++)
        if (sequence.length == 0 || memcmp(span.data + i, sequence.data, sequence.length) == 0)
            return (ssize_t)i;
    return -ENOENT;
}

/* Two letters, so that there are many matches and near-matches. */
TEST(search, sequences_are_found_where_a_plain_search_finds_them)
{
    weir__random random;
    uint8_t letters[LENGTH_MAX], sequence[8];

    weir__random_init(&random, weir__random_process_seed());
    for (int i = 0; i < 20000; i++) {
        size_t length = weir__random_below(&random, LENGTH_MAX + 1);
        size_t wanted = weir__random_below(&random, sizeof(sequence) + 1);
        weir_span span = weir_span_of(letters, length);

        for (size_t j = 0; j < length; j++)
            letters[j] = (uint8_t)('a' + weir__random_below(&random, 2));
        for (size_t j = 0; j < wanted; j++)
            sequence[j] = (uint8_t)('a' + weir__random_below(&random, 2));
        assert_int_equal(weir_span_find_sequence(span, weir_span_of(sequence, wanted)),
                         find_sequence_plain(span, weir_span_of(sequence, wanted)));
    }
}

TEST(search, sequences_of_extreme_lengths)
{
    weir_span hello = weir_span_of_text("hello"), none = weir_span_of(NULL, 0);

    assert_int_equal(weir_span_find_sequence(hello, hello), 0);
    assert_int_equal(weir_span_find_sequence(hello, weir_span_of_text("lo")), 3);
    assert_int_equal(weir_span_find_sequence(hello, weir_span_of_text("lo!")), -ENOENT);
    assert_int_equal(weir_span_find_sequence(hello, weir_span_of("lo", 3)), -ENOENT);
    assert_int_equal(weir_span_find_sequence(hello, weir_span_of_text("hello!")), -ENOENT);
    assert_int_equal(weir_span_find_sequence(hello, none), 0);
    assert_int_equal(weir_span_find_sequence(none, none), 0);
    assert_int_equal(weir_span_find_sequence(none, hello), -ENOENT);
}

/* ---- one byte, and in a buffer ---- */

TEST(search, a_byte_is_found_first_to_last)
{
    weir_span span = weir_span_of("a\0b\xff", 4);

    assert_int_equal(weir_span_find(span, 'a'), 0);
    assert_int_equal(weir_span_find(span, 0), 1);
    assert_int_equal(weir_span_find(span, 0xff), 3);
    assert_int_equal(weir_span_find(span, 'c'), -ENOENT);
    assert_int_equal(weir_span_find(weir_span_of("aaa", 0), 'a'), -ENOENT);
    assert_int_equal(weir_span_find(weir_span_of(NULL, 0), 'a'), -ENOENT);
}

TEST(search, a_buffer_returns_an_index)
{
    weir_buf *buf = make_buf_of("hello, hello");
    weir_byte_set set = set_of(",o");

    assert_int_equal(weir_buf_skip(buf, 11), 0); /* the read index does not matter */
    assert_int_equal(weir_buf_find(buf, 0, 'l'), 2);
    assert_int_equal(weir_buf_find(buf, 4, 'l'), 9);
    assert_int_equal(weir_buf_find(buf, 11, 'l'), -ENOENT);
    assert_int_equal(weir_buf_find_any(buf, 0, &set), 4);
    assert_int_equal(weir_buf_find_any(buf, 5, &set), 5);
    assert_int_equal(weir_buf_find_any(buf, 6, &set), 11);
    assert_int_equal(weir_buf_find_sequence(buf, 0, weir_span_of_text("hello")), 0);
    assert_int_equal(weir_buf_find_sequence(buf, 1, weir_span_of_text("hello")), 7);
    assert_int_equal(weir_buf_find_sequence(buf, 8, weir_span_of_text("hello")), -ENOENT);
    assert_int_equal(weir_buf_find_sequence(buf, 12, weir_span_of_text("")), 12);
    weir_buf_release(buf);
}

TEST(search, a_buffer_is_searched_up_to_the_write_index)
{
    weir_buf *buf = make_buf_of("hello");
    weir_byte_set set = set_of("o");

    assert_int_equal(weir_buf_set_write_index(buf, 4), 0); /* the 'o' is still in memory */
    assert_int_equal(weir_buf_find(buf, 0, 'o'), -ENOENT);
    assert_int_equal(weir_buf_find_any(buf, 0, &set), -ENOENT);
    assert_int_equal(weir_buf_find_sequence(buf, 0, weir_span_of_text("lo")), -ENOENT);
    assert_int_equal(weir_buf_find(buf, 4, 'o'), -ENOENT);
    assert_int_equal(weir_buf_find(buf, 5, 'o'), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_find(buf, SIZE_MAX, 'o'), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_find_any(buf, 5, &set), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_find_any(buf, SIZE_MAX, &set), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_find_sequence(buf, 5, weir_span_of_text("")), WEIR_EBOUNDS);
    assert_int_equal(weir_buf_find_sequence(buf, SIZE_MAX, weir_span_of_text("")), WEIR_EBOUNDS);
    weir_buf_release(buf);
}

/* ---- comparing, hashing ---- */

static int sign(int number)
{
    return (number > 0) - (number < 0);
}

TEST(search, order_is_by_bytes_then_by_length)
{
    static const char *const ordered[] = {"", "a", "aa", "ab", "b", "\x80", "\xff"};
    const int count = sizeof(ordered) / sizeof(ordered[0]);

    for (int i = 0; i < count; i++) {
        for (int j = 0; j < count; j++) {
            weir_buf *a = make_buf_of(ordered[i]), *b = make_read_only_of(ordered[j]);

            assert_int_equal(sign(weir_buf_compare(a, b)), sign(i - j));
            assert_int_equal(weir_buf_equal(a, b), i == j);
            weir_buf_release(a);
            weir_buf_release(b);
        }
    }
    assert_int_equal(weir_span_compare(weir_span_of(NULL, 0), weir_span_of(NULL, 0)), 0);
    assert_true(weir_span_equal(weir_span_of(NULL, 0), weir_span_of("", 0)));
}

TEST(search, only_readable_bytes_are_compared)
{
    weir_buf *a = make_buf_of("xhello"), *b = make_buf_of("helloy");

    assert_int_equal(weir_buf_skip(a, 1), 0);
    assert_int_equal(weir_buf_set_write_index(b, 5), 0);
    assert_true(weir_buf_equal(a, b));
    assert_int_equal(weir_buf_compare(a, b), 0);
    assert_true(weir_buf_hash(a, 1) == weir_buf_hash(b, 1));
    weir_buf_release(a);
    weir_buf_release(b);
}

TEST(search, a_hash_depends_on_bytes_length_and_seed_but_not_on_the_place)
{
    uint8_t bytes[64] = {0}, moved[65] = {0};
    uint64_t seen[64];

    for (size_t length = 0; length < 64; length++) {
        memcpy(moved + 1, bytes, length);
        seen[length] = weir_span_hash(weir_span_of(bytes, length), 0);
        assert_true(weir_span_hash(weir_span_of(moved + 1, length), 0) == seen[length]);
        assert_true(weir_span_hash(weir_span_of(bytes, length), 1) != seen[length]);
        for (size_t i = 0; i < length; i++) {
            assert_true(seen[i] != seen[length]);
            bytes[i] ^= 1;
            assert_true(weir_span_hash(weir_span_of(bytes, length), 0) != seen[length]);
            bytes[i] ^= 1;
        }
    }
    assert_true(weir_span_hash(weir_span_of(NULL, 0), 7) ==
                weir_span_hash(weir_span_of(bytes, 0), 7));
}

/* Consecutive numbers, which bad hashes handle badly. Of 65,536 in 4,096 buckets, 16 are expected
 * in each. */
TEST(search, hashes_are_spread_evenly)
{
    static unsigned low[4096], high[4096];

    for (uint32_t i = 0; i < 65536; i++) {
        uint64_t hash = weir_span_hash(weir_span_of(&i, sizeof(i)), 0);

        low[hash % 4096]++;
        high[hash >> 52]++;
    }
    for (int i = 0; i < 4096; i++) {
        assert_in_range(low[i], 1, 48); /* eight standard deviations; nothing is random here */
        assert_in_range(high[i], 1, 48);
    }
}
