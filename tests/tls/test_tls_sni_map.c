/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "support/memory.h"
#include "support/test.h"
#include "tls/tls_sni_map.h"

/* Nobody looks into what a name stands for. */
static weir_tls_context *thing(uintptr_t n)
{
    return (weir_tls_context *)n;
}

static void set(weir__sni_map *names, const char *name, uintptr_t n, uintptr_t former)
{
    weir_tls_context *was;

    assert_int_equal(weir__sni_map_set(names, name, thing(n), &was), 0);
    assert_ptr_equal(was, thing(former));
}

static void assert_finds(const weir__sni_map *names, const char *name, uintptr_t n)
{
    assert_ptr_equal(weir__sni_map_find(names, name), thing(n));
}

static void empty(weir__sni_map *names)
{
    while (weir__sni_map_pop(names) != NULL)
        ;
    weir__sni_map_deinit(names);
}

TEST(tls_names, a_name_is_found_before_the_wildcard_that_covers_it)
{
    weir__sni_map names = {0};

    set(&names, "example.com", 1, 0);
    set(&names, "*.example.com", 2, 0);
    set(&names, "www.example.com", 3, 0);
    assert_finds(&names, "example.com", 1);
    assert_finds(&names, "www.example.com", 3);
    assert_finds(&names, "mail.example.com", 2);
    assert_finds(&names, "a.b.example.com", 0);
    assert_finds(&names, "badexample.com", 0);
    assert_finds(&names, ".example.com", 0);
    assert_finds(&names, "*.example.com", 0);
    assert_finds(&names, "com", 0);
    assert_finds(&names, "", 0);
    empty(&names);
}

TEST(tls_names, case_and_a_last_dot_do_not_matter)
{
    weir__sni_map names = {0};

    set(&names, "Example.COM", 1, 0);
    set(&names,
        "b\xc3\xbc"
        "cher.example.",
        2, 0);
    assert_finds(&names, "eXample.com", 1);
    assert_finds(&names, "example.com.", 1);
    assert_finds(&names,
                 "b\xc3\xbc"
                 "cher.example",
                 2);
    assert_finds(&names, "xn--bcher-kva.example", 0);
    empty(&names);
}

TEST(tls_names, names_are_replaced_and_forgotten)
{
    weir__sni_map names = {0};
    weir_tls_context *was;

    assert_int_equal(weir__sni_map_set(&names, "a.test", NULL, &was), -ENOENT);
    set(&names, "a.test", 1, 0);
    set(&names, "A.test", 2, 1);
    assert_finds(&names, "a.test", 2);
    set(&names, "a.test", 0, 2);
    assert_finds(&names, "a.test", 0);
    assert_int_equal(names.count, 0);
    empty(&names);
}

TEST(tls_names, many_names_are_all_found)
{
    weir__sni_map names = {0};
    char name[32];

    for (uintptr_t i = 0; i < 1000; i++) {
        (void)snprintf(name, sizeof(name), "n%u.test", (unsigned)(i * 7919 % 1000));
        set(&names, name, i * 7919 % 1000 + 1, 0);
    }
    for (uintptr_t i = 0; i < 1000; i++) {
        (void)snprintf(name, sizeof(name), "n%u.test", (unsigned)i);
        assert_finds(&names, name, i + 1);
    }
    empty(&names);
}

TEST(tls_names, what_can_be_a_name)
{
    static const char *const good[] = {"a", "localhost", "a-b.c_d.e", "*.x", "1.2.3.4", "x.test."};
    static const char *const bad[] = {"",     ".",     "*",    "*.",  "a..b", ".a", "a b",
                                      "a*.b", "*.*.b", "**.b", "a/b", "a:1",  "..", "*..a"};
    char label[70];

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        if (!weir__tls_name_is_valid(good[i]))
            fail_msg("\"%s\" is good", good[i]);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (weir__tls_name_is_valid(bad[i]))
            fail_msg("\"%s\" is bad", bad[i]);
    assert_false(weir__tls_name_is_valid(NULL));
    memset(label, 'a', sizeof(label));
    label[64] = '\0';
    assert_false(weir__tls_name_is_valid(label));
    label[63] = '\0';
    assert_true(weir__tls_name_is_valid(label));
}

TEST(tls_names, a_name_that_is_too_long_is_none)
{
    weir__sni_map names = {0};
    weir_tls_context *was;
    char name[400];

    for (size_t i = 0; i < sizeof(name); i++)
        name[i] = i % 2 == 0 ? 'a' : '.';
    name[sizeof(name) - 1] = '\0';
    assert_false(weir__tls_name_is_valid(name));
    assert_int_equal(weir__sni_map_set(&names, name, thing(1), &was), -EINVAL);
    set(&names, "a.test", 1, 0);
    assert_finds(&names, name, 0);
    empty(&names);
}

TEST(tls_names, adding_survives_without_memory)
{
    for (unsigned n = 1;; n++) {
        weir__sni_map names = {0};
        weir_tls_context *was;
        bool failed;
        int err;

        test_memory_fail_at(n);
        err = weir__sni_map_set(&names, "a.test", thing(1), &was);
        failed = test_memory_failed();
        test_memory_fail_at(0);
        assert_int_equal(err, failed ? -ENOMEM : 0);
        assert_finds(&names, "a.test", failed ? 0 : 1);
        empty(&names);
        if (!failed)
            break;
    }
}
