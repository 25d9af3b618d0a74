/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parsing, formatting and parts of addresses.
 */
#include <weir/address.h>

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/un.h>

#include "base/address.h"
#include "support/test.h"

static weir_address parsed(const char *text)
{
    weir_address address;

    assert_int_equal(weir_address_parse(text, &address), 0);
    return address;
}

static void assert_format(const weir_address *address, const char *text)
{
    char buffer[WEIR_ADDRESS_TEXT_SIZE];

    assert_string_equal(weir_address_format(address, buffer, sizeof(buffer)), text);
}

TEST(address, is_formatted_as_it_was_parsed)
{
    static const char *const texts[] = {
        "127.0.0.1:8007", "0.0.0.0:0",   "255.255.255.255:65535", "[::1]:8007",    "[::]:0",
        "[fe80::1%3]:80", "unix:/run/x", "unix:@an abstraction",  "inproc:a name",
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        weir_address address = parsed(texts[i]);

        assert_format(&address, texts[i]);
    }
}

TEST(address, without_a_host_is_every_ipv4_address)
{
    weir_address address = parsed(":80");

    assert_format(&address, "0.0.0.0:80");
}

TEST(address, that_is_invalid_is_rejected_without_output)
{
    static const char *const texts[] = {
        "",        "80",       "localhost:80", "127.0.0.1",    "127.0.0.1:",    "1.2.3:80", "[::1]",
        "[::1:80", "[::g]:80", "::1:80",       ":65536",       ":-1",           ": 80",     ":80x",
        "unix:",   "inproc:",  "[]:1",         "[fe80::1%]:1", "[fe80::1%x]:1", "]:1",      "[:1",
        ":+1",
    };
    weir_address address = {.length = 7};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_int_equal(weir_address_parse(texts[i], &address), -EINVAL);
    assert_int_equal(weir_address_parse(NULL, &address), -EINVAL);
    assert_int_equal(address.length, 7);
}

TEST(address, rejects_names_that_are_too_long)
{
    char text[256];
    weir_address address;

    memset(text, 'x', sizeof(text));
    memcpy(text, "unix:", 5);
    text[5 + 107] = '\0';
    address = parsed(text);
    assert_format(&address, text);
    memset(text + 5, 'x', 108);
    text[5 + 108] = '\0';
    assert_int_equal(weir_address_parse(text, &address), -ENAMETOOLONG);

    memset(text, 'x', sizeof(text));
    memcpy(text, "inproc:", 7);
    text[WEIR_ADDRESS_TEXT_SIZE - 1] = '\0';
    address = parsed(text);
    assert_format(&address, text);
    text[WEIR_ADDRESS_TEXT_SIZE - 1] = 'x';
    text[WEIR_ADDRESS_TEXT_SIZE] = '\0';
    assert_int_equal(weir_address_parse(text, &address), -ENAMETOOLONG);

    memset(text, '1', sizeof(text));
    text[200] = ':';
    text[202] = '\0';
    assert_int_equal(weir_address_parse(text, &address), -EINVAL);
}

TEST(address, has_a_family_and_perhaps_a_port)
{
    weir_address ipv4 = parsed("1.2.3.4:5"), ipv6 = parsed("[::1]:6"), path = parsed("unix:/x"),
                 name = parsed("inproc:x"), none = {0};

    assert_int_equal(weir_address_family(&ipv4), AF_INET);
    assert_int_equal(weir_address_family(&ipv6), AF_INET6);
    assert_int_equal(weir_address_family(&path), AF_UNIX);
    assert_int_equal(weir_address_family(&name), WEIR_AF_INPROC);
    assert_int_equal(weir_address_family(&none), AF_UNSPEC);
    assert_int_equal(weir_address_port(&ipv4), 5);
    assert_int_equal(weir_address_port(&ipv6), 6);
    assert_int_equal(weir_address_port(&path), 0);

    weir_address_set_port(&ipv4, 7);
    weir_address_set_port(&ipv6, 8);
    weir_address_set_port(&path, 9);
    assert_format(&ipv4, "1.2.3.4:7");
    assert_format(&ipv6, "[::1]:8");
    assert_format(&path, "unix:/x");
    assert_format(&none, "-");
}

TEST(address, is_converted_from_a_sockaddr)
{
    struct sockaddr_un unnamed = {.sun_family = AF_UNIX};
    weir_address there = parsed("[fe80::1%3]:80"), here;
    struct sockaddr_storage large[2] = {{0}};

    assert_int_equal(weir_address_from_sockaddr(weir_address_sockaddr(&there), there.length, &here),
                     0);
    assert_true(weir_address_equal(&there, &here));

    assert_int_equal(
        weir_address_from_sockaddr((struct sockaddr *)&unnamed, sizeof(sa_family_t), &here), 0);
    assert_format(&here, "unix:");
    assert_int_equal(weir_address_from_sockaddr(NULL, 0, &here), 0);
    assert_format(&here, "-");
    assert_int_equal(weir_address_from_sockaddr((struct sockaddr *)large, sizeof(large), &here),
                     -EINVAL);
    assert_int_equal(weir_address_from_sockaddr((struct sockaddr *)large, 1, &here), -EINVAL);
}

TEST(address, equality_ignores_undefined_members)
{
    weir_address a = parsed("[::1]:80"), b = parsed("[0:0::1]:80");

    ((struct sockaddr_in6 *)&b.storage)->sin6_flowinfo = 7;
    assert_true(weir_address_equal(&a, &b));
    weir_address_set_port(&b, 81);
    assert_false(weir_address_equal(&a, &b));

    a = parsed("unix:/x");
    b = parsed("unix:/xy");
    assert_false(weir_address_equal(&a, &b));
    b = parsed("inproc:x");
    assert_false(weir_address_equal(&a, &b));
    a = parsed("inproc:x");
    assert_true(weir_address_equal(&a, &b));
}

TEST(address, is_built_from_its_parts)
{
    const uint8_t host4[] = {192, 0, 2, 1}, host6[16] = {0x20, 0x01, 0x0d, 0xb8, [15] = 1};
    char text[WEIR_ADDRESS_TEXT_SIZE];
    weir_address address = weir__address_of_host(AF_INET, host4, 80);
    size_t length;

    assert_string_equal(weir_address_format(&address, text, sizeof(text)), "192.0.2.1:80");
    assert_memory_equal(weir__address_host(&address, &length), host4, 4);
    assert_int_equal(length, 4);
    address = weir__address_of_host(AF_INET6, host6, 443);
    assert_string_equal(weir_address_format(&address, text, sizeof(text)), "[2001:db8::1]:443");
    assert_memory_equal(weir__address_host(&address, &length), host6, 16);
    assert_int_equal(length, 16);
    address = weir__address_of_name("/run/x", 7);
    assert_string_equal(weir_address_format(&address, text, sizeof(text)), "unix:/run/x");
    assert_memory_equal(weir__address_name(&address, &length), "/run/x", 7);
    assert_int_equal(length, 7);
    address = weir__address_of_name("", 0);
    (void)weir__address_name(&address, &length);
    assert_int_equal(length, 0);
}
