/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading and writing files.
 */
#include "os/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "os/system.h"
#include "support/memory.h"
#include "support/test.h"

#define SIZE 10000

/* A file of SIZE bytes, each its offset. */
static void make(char *path)
{
    char bytes[SIZE];
    int file = mkstemp(path);

    for (size_t i = 0; i < SIZE; i++)
        bytes[i] = (char)i;
    assert_int_equal(write(file, bytes, SIZE), SIZE);
    assert_int_equal(close(file), 0);
}

TEST(file, is_read_whole)
{
    char path[] = "/tmp/weir-file-XXXXXX";
    char *text = NULL;
    size_t length = 0;

    make(path);
    assert_int_equal(weir__file_read(path, SIZE, &text, &length), 0);
    assert_int_equal(length, SIZE);
    for (size_t i = 0; i < SIZE; i++)
        assert_int_equal(text[i], (char)i);
    assert_int_equal(text[SIZE], 0);
    weir__free(text);
    assert_int_equal(weir__file_read(path, SIZE - 1, &text, &length), -EFBIG);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(weir__file_read(path, SIZE, &text, &length), -ENOENT);
    assert_int_equal(weir__file_read("/tmp", SIZE, &text, &length), -EISDIR);
}

TEST(file, needs_memory)
{
    char path[] = "/tmp/weir-file-XXXXXX";
    char *text = NULL;
    size_t length = 0;
    unsigned n = 1;

    make(path);
    for (;; n++) {
        int err;

        test_memory_fail_at(n);
        err = weir__file_read(path, SIZE, &text, &length);
        if (!test_memory_failed())
            break;
        assert_int_equal(err, -ENOMEM);
    }
    test_memory_fail_at(0);
    assert_true(n > 1);
    weir__free(text);
    assert_int_equal(unlink(path), 0);
}

static ssize_t (*real_read)(int descriptor, void *memory, size_t size);
static int read_err;

/* Fails once, and reads a little at a time. */
static ssize_t read_badly(int descriptor, void *memory, size_t size)
{
    if (read_err != 0) {
        errno = read_err;
        read_err = 0;
        return -1;
    }
    return real_read(descriptor, memory, size < 1000 ? size : 1000);
}

TEST(file, read_retries_after_signals_and_fails_on_errors)
{
    char path[] = "/tmp/weir-file-XXXXXX";
    char *text = NULL;
    size_t length = 0;
    int err;

    make(path);
    real_read = weir__sys.read;
    weir__sys.read = read_badly;
    read_err = EINTR;
    err = weir__file_read(path, SIZE, &text, &length);
    weir__free(text);
    read_err = EIO;
    assert_int_equal(weir__file_read(path, SIZE, &text, &length), -EIO);
    weir__sys.read = real_read;
    assert_int_equal(err, 0);
    assert_int_equal(length, SIZE);
    assert_int_equal(unlink(path), 0);
}

TEST(file, has_versions)
{
    char path[] = "/tmp/weir-file-XXXXXX";
    weir__file_version before, after;

    make(path);
    assert_int_equal(weir__file_version_read(path, &before), 0);
    assert_int_equal(weir__file_version_read(path, &after), 0);
    assert_true(weir__file_version_equal(&before, &after));
    assert_int_equal(truncate(path, 1), 0);
    assert_int_equal(weir__file_version_read(path, &after), 0);
    assert_false(weir__file_version_equal(&before, &after));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(weir__file_version_read(path, &after), -ENOENT);
}

/* ---- writing ---- */

static unsigned writes;

/* Interrupts every other call, and writes at most three bytes. */
static ssize_t write_slowly(int file, const void *memory, size_t size)
{
    if (writes++ % 2 == 0) {
        errno = EINTR;
        return -1;
    }
    return write(file, memory, size < 3 ? size : 3);
}

static ssize_t write_nothing(int file, const void *memory, size_t size)
{
    (void)file;
    (void)memory;
    (void)size;
    errno = ENOSPC;
    return -1;
}

TEST(file, write_continues_after_partial_writes)
{
    char path[] = "/tmp/weir-file-XXXXXX";
    ssize_t (*write_as_ever)(int, const void *, size_t) = weir__sys.write;
    char *text = NULL;
    size_t length = 0;
    int file = -1;

    make(path);
    assert_int_equal(weir__file_create(path, &file), 0); /* the old contents are gone */
    weir__sys.write = write_slowly;
    assert_int_equal(weir__file_write(file, "hello, world", 12), 0);
    weir__sys.write = write_nothing;
    assert_int_equal(weir__file_write(file, "x", 1), -ENOSPC);
    weir__sys.write = write_as_ever;
    assert_int_equal(weir__sys.close(file), 0);
    assert_int_equal(weir__file_read(path, SIZE, &text, &length), 0);
    assert_string_equal(text, "hello, world");
    weir__free(text);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(weir__file_create("/nowhere/at/all", &file), -ENOENT);
}
