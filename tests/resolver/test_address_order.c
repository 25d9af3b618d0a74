/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of addresses.
 */
#include "resolver/address_order.h"

#include <string.h>

#include "support/test.h"

#define COUNT 5

/* 4 a, 6 b, 6 c, 4 d, 4 e: letters are ports. */
static void make(weir_address *addresses)
{
    static const char *const hosts[COUNT] = {"192.0.2.1:97", "[2001:db8::1]:98", "[2001:db8::2]:99",
                                             "192.0.2.2:100", "192.0.2.3:101"};

    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(weir_address_parse(hosts[i], &addresses[i]), 0);
}

static const char *letters_of(const weir_address *addresses, size_t count)
{
    static char letters[COUNT + 1];

    memset(letters, 0, sizeof(letters));
    for (size_t i = 0; i < count; i++)
        letters[i] = (char)weir_address_port(&addresses[i]);
    return letters;
}

static const char *arranged(enum weir_family family)
{
    weir_address addresses[COUNT];

    make(addresses);
    return letters_of(addresses, weir__address_order(family, addresses, COUNT));
}

TEST(address_order, prefers_a_family_and_leaves_the_rest_as_it_is)
{
    assert_string_equal(arranged(WEIR_FAMILY_ANY), "abcde");
    assert_string_equal(arranged(WEIR_FAMILY_IPV4_FIRST), "adebc");
    assert_string_equal(arranged(WEIR_FAMILY_IPV6_FIRST), "bcade");
    assert_string_equal(arranged(WEIR_FAMILY_IPV4_ONLY), "ade");
    assert_string_equal(arranged(WEIR_FAMILY_IPV6_ONLY), "bc");
}

/* 4 a, 6 b, 6 c, 6 d, 4 e */
TEST(address_order, keeps_the_order_within_each_family)
{
    static const char *const hosts[COUNT] = {"192.0.2.1:97", "[2001:db8::1]:98", "[2001:db8::2]:99",
                                             "[2001:db8::3]:100", "192.0.2.2:101"};
    weir_address addresses[COUNT];

    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(weir_address_parse(hosts[i], &addresses[i]), 0);
    assert_int_equal(weir__address_order(WEIR_FAMILY_IPV4_FIRST, addresses, COUNT), COUNT);
    assert_string_equal(letters_of(addresses, COUNT), "aebcd");
}

/* The ports are overwritten, so compare the hosts. */
TEST(address_order, turns_round_within_each_family)
{
    static const size_t orders[4][COUNT] = {
        {0, 1, 2, 3, 4}, {3, 2, 1, 4, 0}, {4, 1, 2, 0, 3}, {0, 2, 1, 3, 4}};
    weir_address addresses[COUNT];
    const weir_addresses given = {.count = COUNT, .addresses = addresses};

    make(addresses);
    for (unsigned turn = 0; turn < 4; turn++) {
        weir_addresses *turned = weir__address_rotate(&given, turn, 80);

        for (size_t i = 0; i < COUNT; i++) {
            weir_address expected = addresses[orders[turn][i]];

            weir_address_set_port(&expected, 80);
            assert_true(weir_address_equal(&turned->addresses[i], &expected));
        }
        weir_addresses_release(turned);
    }
}
