/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parsing of host names.
 */
#include "resolver/host_name.h"

#include <errno.h>
#include <string.h>

#include "support/test.h"

static const char *const names_of_hosts[] = {
    "example.org:80",  "x:0",          "Example.ORG:65535",         "a-b.c_d.e:1",
    "example.org.:80", "1.example:80", "xn--bcher-kva.example:443",
};

static const char *const no_names[] = {
    "",         ":80",    "example.org", "example.org:", "example.org:65536",
    "a..b:80",  ".a:80",  "a b:80",      "1.2.3:80",     "1.2.3.400:80",
    "[::1]:80", "::1:80", "a/b:80",      "\xc3\xbc:80",  "example.org:8o",
    "..:80",    "a,b:80",
};

TEST(host, is_a_name_and_a_port)
{
    weir__host host;

    for (size_t i = 0; i < sizeof(names_of_hosts) / sizeof(names_of_hosts[0]); i++)
        assert_int_equal(weir__host_parse(names_of_hosts[i], &host), 0);
    assert_int_equal(weir__host_parse("Example.ORG:80", &host), 0);
    assert_string_equal(host.name, "example.org");
    assert_int_equal(host.port, 80);
}

TEST(host, rejects_invalid_names)
{
    weir__host host;

    for (size_t i = 0; i < sizeof(no_names) / sizeof(no_names[0]); i++)
        assert_int_equal(weir__host_parse(no_names[i], &host), -EINVAL);
}

/* RFC 1035, 2.3.4 */
TEST(host, has_limits)
{
    char text[300];
    weir__host host;

    memset(text, 'a', sizeof(text));
    memcpy(text + 63, ":80", 4);
    assert_int_equal(weir__host_parse(text, &host), 0);
    memcpy(text + 63, "a:80", 5);
    assert_int_equal(weir__host_parse(text, &host), -EINVAL);
    memset(text, 'a', sizeof(text));
    for (size_t i = 50; i < 253; i += 51)
        text[i] = '.';
    memcpy(text + 253, ":80", 4);
    assert_int_equal(weir__host_parse(text, &host), 0);
    memcpy(text + 253, ".:80", 5);
    assert_int_equal(weir__host_parse(text, &host), 0);
    memcpy(text + 253, "a:80", 5);
    assert_int_equal(weir__host_parse(text, &host), -EINVAL);
}

/* RFC 6761, 6.3 and 6.4 */
TEST(host, may_be_this_machine_or_none)
{
    assert_true(weir__host_is_local("localhost"));
    assert_true(weir__host_is_local("localhost."));
    assert_true(weir__host_is_local("a.localhost"));
    assert_false(weir__host_is_local("notlocalhost"));
    assert_false(weir__host_is_local("localhost.example"));
    assert_false(weir__host_is_local("host"));
    assert_true(weir__host_is_invalid("x.invalid"));
    assert_false(weir__host_is_invalid("invalid.example"));
}
