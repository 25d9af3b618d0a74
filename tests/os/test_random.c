/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The generator, its range, and the process seed: this program runs with WEIR_SEED=42.
 */
#include "support/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <weir/random.h>

#include "os/random.h"
#include "os/thread.h"

__attribute__((constructor)) static void fix_the_seed(void)
{
    setenv("WEIR_SEED", "42", 1);
}

TEST(random, numbers_are_those_of_the_reference_implementation)
{
    weir__random random = {{1, 2, 3, 4}};

    assert_true(weir__random_next(&random) == 11520);
    assert_true(weir__random_next(&random) == 0);
    assert_true(weir__random_next(&random) == 1509978240);
    assert_true(weir__random_next(&random) == UINT64_C(1215971899390074240));
}

TEST(random, seeds_are_spread_by_splitmix)
{
    weir__random random;

    weir__random_init(&random, 0);
    assert_true(random.state[0] == UINT64_C(0xe220a8397b1dcdaf));
    assert_true(random.state[1] == UINT64_C(0x6e789e6aa1b965f4));
    assert_true(random.state[2] == UINT64_C(0x06c45d188009454f));
    assert_true(random.state[3] == UINT64_C(0xf88bb8a8724c81ec));
}

TEST(random, equal_seeds_give_equal_numbers)
{
    weir__random a, b, c;
    int differences = 0;

    weir__random_init(&a, 7);
    weir__random_init(&b, 7);
    weir__random_init(&c, 8);
    for (int i = 0; i < 100; i++) {
        uint64_t number = weir__random_next(&a);

        assert_true(number == weir__random_next(&b));
        differences += number != weir__random_next(&c);
    }
    assert_int_equal(differences, 100);
}

TEST(random, below_stays_below)
{
    const uint64_t limits[] = {1,         2, 3, 1000, UINT64_C(1) << 63, (UINT64_C(1) << 63) + 1,
                               UINT64_MAX};
    weir__random random;

    weir__random_init(&random, 1);
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
        for (int j = 0; j < 1000; j++)
            assert_true(weir__random_below(&random, limits[i]) < limits[i]);
}

TEST(random, below_is_even)
{
    unsigned counts[10] = {0};
    weir__random random;

    weir__random_init(&random, 1);
    for (int i = 0; i < 100000; i++)
        counts[weir__random_below(&random, 10)]++;
    for (int i = 0; i < 10; i++)
        assert_in_range(counts[i], 9600, 10400); /* four standard deviations; the seed is fixed */
}

/* With a limit of 3 * 2^62 and without rejection, multiples of three would be twice as frequent. */
TEST(random, below_has_no_bias_at_large_limits)
{
    unsigned counts[3] = {0};
    weir__random random;

    weir__random_init(&random, 1);
    for (int i = 0; i < 30000; i++)
        counts[weir__random_below(&random, UINT64_C(3) << 62) % 3]++;
    for (int i = 0; i < 3; i++)
        assert_in_range(counts[i], 9600, 10400);
}

static void draw(void *arg)
{
    *(uint64_t *)arg = weir__random_next(weir__random_thread());
}

TEST(random, each_thread_has_a_generator_of_its_own)
{
    weir__thread threads[2];
    uint64_t numbers[2];

    for (int i = 0; i < 2; i++)
        assert_int_equal(weir__thread_start("draw", draw, &numbers[i], &threads[i]), 0);
    for (int i = 0; i < 2; i++)
        weir__thread_join(&threads[i]);
    assert_true(numbers[0] != numbers[1]);
    assert_ptr_equal(weir__random_thread(), weir__random_thread());
}

TEST(random, the_environment_seeds_the_process)
{
    assert_int_equal(weir__random_process_seed(), 42);
}

TEST(random, a_seed_is_a_number_and_nothing_else)
{
    const char *const refused[] = {"", "x", "42x", "4 2", "18446744073709551616"};
    uint64_t seed = 7;

    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
        assert_int_equal(weir__random_parse_seed(refused[i], &seed), -EINVAL);
    assert_int_equal(seed, 7);
    assert_int_equal(weir__random_parse_seed("0x1f", &seed), 0);
    assert_int_equal(seed, 31);
    assert_int_equal(weir__random_parse_seed("18446744073709551615", &seed), 0);
    assert_true(seed == UINT64_MAX);
}

TEST(random, bytes_fill_any_length)
{
    uint8_t bytes[2][19];
    unsigned ones = 0;

    memset(bytes, 0, sizeof(bytes));
    weir_random_bytes(bytes[0], 13);
    for (size_t i = 13; i < 19; i++)
        assert_int_equal(bytes[0][i], 0);
    for (size_t i = 0; i < 13; i++)
        ones += (unsigned)__builtin_popcount(bytes[0][i]);
    assert_in_range(ones, 20, 84);
    weir_random_bytes(bytes[1], 13);
    assert_memory_not_equal(bytes[0], bytes[1], 13);
    weir_random_bytes(bytes[1], 0);
}
