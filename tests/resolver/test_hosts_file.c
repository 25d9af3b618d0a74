/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hosts files: parsing, and rereading when they change.
 */
#include "resolver/hosts_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/executor/log_capture.h"
#include "support/memory.h"
#include "support/test.h"

#define MAX 8

/* The addresses of a host in a text, separated by spaces. */
static const char *find(const char *text, const char *host, char *buffer, size_t size)
{
    weir_address found[MAX];
    size_t count = weir__hosts_find_in(text, strlen(text), host, found, MAX), length = 0;

    buffer[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        char address[WEIR_ADDRESS_TEXT_SIZE];

        length += (size_t)snprintf(buffer + length, size - length, "%s%s", i > 0 ? " " : "",
                                   weir_address_format(&found[i], address, sizeof(address)));
    }
    return buffer;
}

#define assert_found(text, host, addresses)                                       \
    do {                                                                          \
        char found_[MAX * WEIR_ADDRESS_TEXT_SIZE];                                \
        assert_string_equal(find(text, host, found_, sizeof(found_)), addresses); \
    } while (0)

TEST(hosts, finds_a_name_and_its_aliases)
{
    static const char text[] = "127.0.0.1 localhost\n"
                               "\n"
                               "# a comment\n"
                               "192.0.2.1\tone.test  One ein\r\n"
                               "  192.0.2.2 two.test# and more: one.test\n"
                               "2001:db8::1 one.test";

    assert_found(text, "one.test", "192.0.2.1:0 [2001:db8::1]:0");
    assert_found(text, "one.test.", "192.0.2.1:0 [2001:db8::1]:0");
    assert_found(text, "one", "192.0.2.1:0");
    assert_found(text, "ein", "192.0.2.1:0");
    assert_found(text, "two.test", "192.0.2.2:0");
    assert_found(text, "192.0.2.1", "");
    assert_found(text, "three.test", "");
}

TEST(hosts, passes_over_what_is_no_line)
{
    assert_found("", "x", "");
    assert_found("x\nnot.an.address x\n1.2.3 x\n::1%9 x\n", "x", "[::1%9]:0");
    assert_found("192.0.2.1\n192.0.2.2 y x", "x", "192.0.2.2:0");
    assert_found("192.0.2.1 x\n192.0.2.1 x\n", "x", "192.0.2.1:0");
}

TEST(hosts, stops_at_the_end_of_the_room)
{
    char text[64 * 32] = "";
    weir_address found[MAX];

    for (int i = 0; i < 64; i++)
        (void)sprintf(text + strlen(text), "192.0.2.%d x\n", i);
    assert_int_equal(weir__hosts_find_in(text, strlen(text), "x", found, MAX), MAX);
}

/* ---- files ---- */

static void write_file(const char *path, const char *text, int64_t second)
{
    FILE *file = fopen(path, "w");
    struct timespec times[2] = {{.tv_sec = second}, {.tv_sec = second}};

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

TEST(hosts, reads_a_file_again_when_it_has_changed)
{
    char path[] = "/tmp/weir-hosts-XXXXXX";
    weir_address found[MAX];
    weir__hosts hosts;

    assert_int_equal(close(mkstemp(path)), 0);
    weir__hosts_init(&hosts, path);
    write_file(path, "192.0.2.1 x\n", 1000);
    assert_int_equal(weir__hosts_find(&hosts, "x", found, MAX), 1);
    write_file(path, "192.0.2.1 y\n", 1000); /* the change is not detectable */
    assert_int_equal(weir__hosts_find(&hosts, "x", found, MAX), 1);
    write_file(path, "192.0.2.1 y\n", 1001);
    assert_int_equal(weir__hosts_find(&hosts, "x", found, MAX), 0);
    assert_int_equal(weir__hosts_find(&hosts, "y", found, MAX), 1);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(weir__hosts_find(&hosts, "y", found, MAX), 0);
    weir__hosts_clear(&hosts);
}

TEST(hosts, keeps_the_old_text_when_the_file_cannot_be_read)
{
    char path[] = "/tmp/weir-hosts-XXXXXX";
    weir_address found[MAX];
    weir__hosts hosts;

    log_capture_start();
    assert_int_equal(close(mkstemp(path)), 0);
    weir__hosts_init(&hosts, path);
    write_file(path, "192.0.2.1 x\n", 1000);
    assert_int_equal(weir__hosts_find(&hosts, "x", found, MAX), 1);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0); /* opened, but not read */
    assert_int_equal(weir__hosts_find(&hosts, "x", found, MAX), 1);
    assert_true(log_capture_last_contains("cannot be read"));
    assert_int_equal(rmdir(path), 0);
    weir__hosts_clear(&hosts);
}

TEST(hosts, does_without_a_file_when_there_is_no_memory)
{
    char path[] = "/tmp/weir-hosts-XXXXXX";
    weir_address found[MAX];
    weir__hosts hosts;

    log_capture_start();
    assert_int_equal(close(mkstemp(path)), 0);
    write_file(path, "192.0.2.1 x\n", 1000);
    weir__hosts_init(&hosts, path);
    test_memory_fail_at(1);
    assert_int_equal(weir__hosts_find(&hosts, "x", found, MAX), 0);
    test_memory_fail_at(0);
    assert_int_equal(weir__hosts_find(&hosts, "x", found, MAX), 1);
    assert_int_equal(unlink(path), 0);
    weir__hosts_clear(&hosts);
}
