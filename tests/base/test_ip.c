/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Subnets: parsing and matching.
 */
#include "base/ip.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "support/test.h"

static bool contains(const char *subnet, const char *address)
{
    weir_address parsed;
    weir__subnet net;
    weir__ip ip;

    assert_int_equal(weir__subnet_parse(subnet, &net), 0);
    assert_int_equal(weir_address_parse(address, &parsed), 0);
    ip = weir__ip_of(&parsed);
    return weir__subnet_contains(&net, &ip);
}

TEST(ip, is_in_a_subnet_with_the_same_prefix)
{
    assert_true(contains("10.0.0.0/8", "10.255.1.2:80"));
    assert_false(contains("10.0.0.0/8", "11.0.0.0:80"));
    assert_true(contains("192.0.2.128/25", "192.0.2.128:1"));
    assert_false(contains("192.0.2.128/25", "192.0.2.127:1"));
    assert_true(contains("10.1.2.3/8", "10.9.9.9:1")); /* bits behind the prefix are ignored */
    assert_true(contains("0.0.0.0/0", "255.255.255.255:1"));
    assert_true(contains("2001:db8::/33", "[2001:db8:7fff::1]:1"));
    assert_false(contains("2001:db8::/33", "[2001:db8:8000::1]:1"));
    assert_true(contains("::/0", "[::1]:1"));
}

TEST(ip, without_a_prefix_is_a_subnet_of_one_address)
{
    assert_true(contains("192.0.2.7", "192.0.2.7:1"));
    assert_false(contains("192.0.2.7", "192.0.2.6:1"));
    assert_true(contains("::1", "[::1]:1"));
    assert_false(contains("::1/128", "[::2]:1"));
}

TEST(ip, of_one_family_is_in_no_subnet_of_the_other)
{
    assert_false(contains("::/0", "10.0.0.1:1"));
    assert_false(contains("0.0.0.0/0", "[::1]:1"));
    assert_false(contains("0.0.0.0/0", "unix:/run/x"));
    assert_false(contains("::/0", "inproc:x"));
}

TEST(ip, a_mapped_ipv4_address_is_an_ipv4_address)
{
    assert_true(contains("10.0.0.0/8", "[::ffff:10.1.1.1]:1"));
    assert_false(contains("::/0", "[::ffff:10.1.1.1]:1"));
    assert_true(contains("::ffff:10.0.0.0/104", "10.1.1.1:1"));
    assert_false(contains("::ffff:10.0.0.0/104", "11.1.1.1:1"));
}

/* Every prefix length, compared bit by bit. */
TEST(ip, is_compared_bit_by_bit)
{
    const char *address = "[2001:db8:5555:aaaa:1234:8000:1:ffff]:1";
    weir_address parsed;
    weir__ip ip;

    assert_int_equal(weir_address_parse(address, &parsed), 0);
    ip = weir__ip_of(&parsed);
    for (unsigned bits = 0; bits <= 128; bits++)
        for (unsigned flipped = 0; flipped < 128; flipped++) {
            weir__subnet net = {.ip = ip, .bits = bits};

            net.ip.bytes[flipped / 8] ^= (uint8_t)(0x80u >> flipped % 8);
            assert_int_equal(weir__subnet_contains(&net, &ip), flipped >= bits);
        }
}

TEST(ip, invalid_subnets_are_rejected)
{
    static const char *const bad[] = {"",
                                      "/",
                                      "10.0.0.0/",
                                      "10.0.0.0/33",
                                      "10.0.0/8",
                                      "::/129",
                                      "10.0.0.0/-1",
                                      "10.0.0.0/8 ",
                                      "10.0.0.0/ 8",
                                      "fe80::1%2",
                                      "host/8",
                                      "10.0.0.0:80/8",
                                      "[::1]/128",
                                      "::ffff:1.2.3.4/95",
                                      "10.0.0.0/8/8",
                                      "10.0.0.0/99999999999999999999"};
    weir__subnet subnet;
    char endless[300];

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (weir__subnet_parse(bad[i], &subnet) != -EINVAL)
            fail_msg("%s was taken", bad[i]);
    assert_int_equal(weir__subnet_parse(NULL, &subnet), -EINVAL);
    memset(endless, '1', sizeof(endless) - 1);
    endless[sizeof(endless) - 1] = '\0';
    assert_int_equal(weir__subnet_parse(endless, &subnet), -EINVAL);
}
