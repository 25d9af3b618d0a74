/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files written by a background thread, and pipes whose reader has stopped.
 */
#include "os/file_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/log.h>

#include "os/clock.h"
#include "os/thread.h"
#include "support/memory.h"
#include "support/test.h"

#define PIECE 1000
#define QUEUE WEIR_FILE_WRITER_QUEUE_MIN
#define MANY 20000

static void restore(void)
{
    weir_log_set_level(WEIR_LOG_WARN);
    atomic_store(&weir__file_writer_grace_ns, weir_seconds(5));
}

__attribute__((constructor)) static void restore_after_each_test(void)
{
    test_before_leak_check(restore);
}

static weir_file_writer *make_writer(int file)
{
    weir_file_writer *writer = NULL;

    assert_int_equal(weir_file_writer_create(file, QUEUE, "test", &writer), 0);
    return writer;
}

/* A piece begins with its number. */
static bool put(weir_file_writer *writer, uint32_t number)
{
    uint8_t *place = weir_file_writer_begin(writer, PIECE);

    if (place == NULL)
        return false;
    memset(place, (int)number, PIECE);
    memcpy(place, &number, sizeof(number));
    weir_file_writer_end(writer);
    return true;
}

/* Writes pieces until the queue is full. Returns their number. */
static uint32_t put_all(weir_file_writer *writer)
{
    uint32_t count = 0;

    while (count < MANY && put(writer, count))
        count++;
    assert_true(count < MANY);
    return count;
}

static bool is_piece(const uint8_t *bytes, uint32_t number)
{
    uint8_t expected[PIECE];

    memset(expected, (int)number, PIECE);
    memcpy(expected, &number, sizeof(number));
    return memcmp(bytes, expected, PIECE) == 0;
}

/* False at the end of the file. */
static bool read_piece(int file, uint8_t bytes[PIECE])
{
    size_t length = 0;

    while (length < PIECE) {
        ssize_t more = read(file, bytes + length, PIECE - length);

        if (more < 0 && errno == EINTR)
            continue;
        if (more <= 0)
            break;
        length += (size_t)more;
    }
    assert_true(length == 0 || length == PIECE);
    return length > 0;
}

static void assert_pieces(int file, uint32_t count)
{
    uint8_t bytes[PIECE];

    for (uint32_t i = 0; i < count; i++) {
        assert_true(read_piece(file, bytes));
        assert_true(is_piece(bytes, i));
    }
}

static void assert_end(int file)
{
    uint8_t byte;

    assert_int_equal(read(file, &byte, 1), 0);
}

static int make_file(void)
{
    char path[] = "/tmp/weir-background-XXXXXX";
    int file = mkstemp(path);

    assert_true(file >= 0);
    unlink(path);
    return file;
}

TEST(file_writer, writes_pieces_in_their_order)
{
    int file = make_file();
    weir_file_writer *writer = make_writer(dup(file));

    for (uint32_t i = 0; i < 200; i++)
        assert_true(put(writer, i));
    assert_int_equal(weir_file_writer_flush(writer), 0);
    lseek(file, 0, SEEK_SET);
    assert_pieces(file, 200);
    assert_true(put(writer, 200));
    weir_file_writer_close(writer, true);
    lseek(file, 0, SEEK_SET);
    assert_pieces(file, 201);
    assert_end(file);
    close(file);
}

TEST(file_writer, writes_a_full_chunk_and_what_is_pushed_by_itself)
{
    weir_file_writer *writer;
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    writer = make_writer(ends[1]);
    assert_true(put(writer, 0));
    weir_file_writer_push(writer);
    assert_pieces(ends[0], 1);
    assert_int_equal(weir_file_writer_flush(writer), 0); /* the chunk is free again */
    for (uint32_t i = 0; i < 132; i++)                   /* 131 fill a chunk */
        assert_true(put(writer, i));
    assert_pieces(ends[0], 131);
    weir_file_writer_close(writer, true);
    close(ends[0]);
}

TEST(file_writer, rejects_pieces_while_its_queue_is_full)
{
    weir_file_writer *writer;
    uint32_t count;
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    writer = make_writer(ends[1]);
    count = put_all(writer);
    assert_in_range(count, 200, 2000);
    weir_file_writer_push(writer);
    assert_pieces(ends[0], count);
    assert_int_equal(weir_file_writer_error(writer), 0);
    assert_int_equal(weir_file_writer_flush(writer), 0);
    assert_true(put(writer, 0));
    weir_file_writer_close(writer, true);
    assert_pieces(ends[0], 1);
    assert_end(ends[0]);
    close(ends[0]);
}

TEST(file_writer, finishes_in_the_background)
{
    weir_file_writer *writer;
    uint32_t count;
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    writer = make_writer(ends[1]);
    count = put_all(writer);
    weir_file_writer_close(writer, false);
    assert_false(weir__file_writers_wait(0));
    assert_pieces(ends[0], count);
    assert_end(ends[0]);
    assert_true(weir__file_writers_wait(TEST_TIMEOUT_NS));
    close(ends[0]);
}

TEST(file_writer, close_gives_up_on_a_file_that_accepts_nothing)
{
    weir_file_writer *writer;
    uint32_t count;
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    writer = make_writer(ends[1]);
    count = put_all(writer);
    weir_log_set_level(WEIR_LOG_OFF);
    atomic_store(&weir__file_writer_grace_ns, weir_ms(1));
    weir_file_writer_close(writer, true);
    assert_pieces(ends[0], count);
    assert_end(ends[0]);
    assert_true(weir__file_writers_wait(TEST_TIMEOUT_NS));
    close(ends[0]);
}

/* In a separate process. */
static void fill_and_exit(int file)
{
    weir_file_writer *writer = make_writer(file);

    (void)put_all(writer);
    weir_file_writer_close(writer, false);
    atomic_store(&weir__file_writer_exit_ns, TEST_TIMEOUT_NS);
    exit(0);
}

TEST(file_writer, is_waited_for_at_the_end_of_the_process)
{
    uint8_t bytes[PIECE];
    uint32_t count = 0;
    int ends[2], status;
    pid_t child;

    assert_int_equal(pipe(ends), 0);
    (void)fflush(NULL);
    child = fork();
    assert_true(child >= 0);
    if (child == 0)
        fill_and_exit(ends[1]);
    close(ends[1]);
    for (; read_piece(ends[0], bytes); count++)
        assert_true(is_piece(bytes, count));
    assert_in_range(count, 200, 2000);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    close(ends[0]);
}

TEST(file_writer, reports_the_first_error_and_writes_nothing_more)
{
    int file = open("/dev/full", O_WRONLY | O_CLOEXEC);
    weir_file_writer *writer = make_writer(file);

    weir_log_set_level(WEIR_LOG_OFF);
    assert_int_equal(weir_file_writer_error(writer), 0);
    assert_true(put(writer, 0));
    assert_int_equal(weir_file_writer_flush(writer), -ENOSPC);
    assert_int_equal(weir_file_writer_error(writer), -ENOSPC);
    assert_false(put(writer, 1));
    assert_int_equal(weir_file_writer_flush(writer), -ENOSPC);
    weir_file_writer_close(writer, true);
}

#define THREADS 4
#define PIECES_EACH 2000

struct producer {
    weir_file_writer *writer;
    uint32_t taken;
    weir__thread thread;
};

static void produce(void *arg)
{
    struct producer *producer = arg;

    for (uint32_t i = 0; i < PIECES_EACH; i++) {
        producer->taken += put(producer->writer, i);
        if (i % 64 == 0)
            weir_file_writer_push(producer->writer);
    }
}

TEST(file_writer, keeps_the_pieces_of_many_threads_whole)
{
    int file = make_file();
    weir_file_writer *writer = make_writer(dup(file));
    struct producer producers[THREADS] = {{0}};
    uint32_t taken = 0, found = 0, number;
    uint8_t bytes[PIECE];

    for (int i = 0; i < THREADS; i++) {
        producers[i].writer = writer;
        assert_int_equal(
            weir__thread_start("producer", produce, &producers[i], &producers[i].thread), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        weir__thread_join(&producers[i].thread);
        taken += producers[i].taken;
    }
    weir_file_writer_close(writer, true);
    lseek(file, 0, SEEK_SET);
    for (; read_piece(file, bytes); found++) {
        memcpy(&number, bytes, sizeof(number));
        assert_true(is_piece(bytes, number));
    }
    assert_int_equal(found, taken);
    close(file);
}

TEST(file_writer, create_fails_without_memory)
{
    weir_file_writer *writer = NULL;
    unsigned n = 0;
    int ends[2], err;

    assert_int_equal(pipe(ends), 0);
    do {
        test_memory_fail_at(++n);
        err = weir_file_writer_create(ends[1], QUEUE, "test", &writer);
        assert_true(err == 0 || err == -ENOMEM);
    } while (err < 0);
    assert_true(n > 1);
    test_memory_fail_at(1);
    assert_false(put(writer, 0));
    assert_true(put(writer, 0));
    weir_file_writer_close(writer, true);
    assert_pieces(ends[0], 1);
    assert_end(ends[0]);
    close(ends[0]);
}

static void assert_content(const char *path, const char *expected)
{
    char content[64] = "";
    int file = open(path, O_RDONLY);

    assert_true(file >= 0);
    assert_int_equal(read(file, content, sizeof(content) - 1), strlen(expected));
    assert_string_equal(content, expected);
    close(file);
}

static void put_text(weir_file_writer *writer, const char *text)
{
    uint8_t *place = weir_file_writer_begin(writer, strlen(text));

    assert_non_null(place);
    memcpy(place, text, strlen(text));
    weir_file_writer_end(writer);
}

TEST(file_writer, appends_to_a_path_and_opens_it_anew)
{
    char folder[] = "/tmp/weir-file-writer-XXXXXX", path[64], renamed[64];
    weir_file_writer *writer = NULL;

    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/log", folder);
    (void)snprintf(renamed, sizeof(renamed), "%s/log.1", folder);
    assert_int_equal(weir_file_writer_open(folder, QUEUE, "test", &writer), -EISDIR);
    assert_int_equal(weir_file_writer_open(path, QUEUE - 1, "test", &writer), -EINVAL);
    assert_int_equal(weir_file_writer_open(path, QUEUE, "test", &writer), 0);
    put_text(writer, "one ");
    weir_file_writer_close(writer, true);
    assert_int_equal(weir_file_writer_open(path, QUEUE, "test", &writer), 0);
    put_text(writer, "two ");
    assert_int_equal(rename(path, renamed), 0);
    weir_file_writer_reopen(writer);
    assert_int_equal(weir_file_writer_flush(writer), 0);
    put_text(writer, "three");
    assert_int_equal(weir_file_writer_flush(writer), 0);
    assert_content(path, "three");
    assert_content(renamed, "one two ");
    weir_file_writer_close(writer, true);
    weir_file_writer_close(NULL, true);
    unlink(path);
    unlink(renamed);
    rmdir(folder);
}

TEST(file_writer, keeps_the_file_that_cannot_be_opened_anew)
{
    char folder[] = "/tmp/weir-file-writer-XXXXXX", path[64], renamed[64];
    weir_file_writer *writer = NULL;

    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/log", folder);
    (void)snprintf(renamed, sizeof(renamed), "%s/log.1", folder);
    assert_int_equal(weir_file_writer_open(path, QUEUE, "test", &writer), 0);
    assert_int_equal(rename(path, renamed), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    weir_log_set_level(WEIR_LOG_OFF);
    weir_file_writer_reopen(writer);
    put_text(writer, "one");
    weir_file_writer_close(writer, true);
    assert_content(renamed, "one");
    unlink(renamed);
    rmdir(path);
    rmdir(folder);
}

TEST(file_writer, writes_soon_what_is_pushed_so)
{
    weir_file_writer *writer;
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    writer = make_writer(ends[1]);
    for (int i = 0; i < 3; i++) {
        assert_true(put(writer, 0));
        weir_file_writer_push_soon(writer);
        assert_true(put(writer, 1));
        weir_file_writer_push_soon(writer);
        if (i == 1)
            weir_file_writer_push(writer); /* does not harm */
        assert_pieces(ends[0], 2);         /* waits */
    }
    assert_true(put(writer, 0));
    weir_file_writer_push_soon(writer);
    weir_file_writer_close(writer, true);
    assert_pieces(ends[0], 1);
    assert_end(ends[0]);
    close(ends[0]);
}

static void put_some(void *arg)
{
    for (uint32_t i = 0; i < 2000; i++)
        if (put(arg, i))
            weir_file_writer_push_soon(arg);
}

/* A lost wakeup would leave the last pieces unwritten. */
TEST(file_writer, loses_no_push_of_several_threads)
{
    int file = make_file();
    weir_file_writer *writer = NULL;
    weir__thread threads[3];
    off_t before = 0;

    assert_int_equal(weir_file_writer_create(dup(file), 100 * QUEUE, "test", &writer), 0);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 3; i++)
            assert_int_equal(weir__thread_start("put", put_some, writer, &threads[i]), 0);
        for (int i = 0; i < 3; i++)
            weir__thread_join(&threads[i]);
        assert_true(weir__file_writers_wait(TEST_TIMEOUT_NS));
        assert_int_equal(lseek(file, 0, SEEK_END), before + 3 * 2000 * PIECE);
        before = lseek(file, 0, SEEK_END);
    }
    weir_file_writer_close(writer, true);
    close(file);
}
