/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/http/file_cache.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <weir/clock.h>
#include <weir/memory.h>
#include <weir/thread.h>

#include "support/executor/manual_fixture.h"
#include "support/memory.h"
#include "support/test.h"

#define LIFETIME 1000

struct rig {
    struct manual_fixture executor; /* that sweeps */
    weir__http_file_cache *cache;
};

static const weir__http_file_cache_limits wide = {
    .lifetime_ns = LIFETIME, .bytes = 1 << 20, .descriptors = 10};

static void open_rig(struct rig *rig, const weir__http_file_cache_limits *limits)
{
    manual_fixture_open(&rig->executor);
    assert_int_equal(weir__http_file_cache_create(limits, rig->executor.executor, &rig->cache), 0);
}

static void close_rig(struct rig *rig)
{
    weir__http_file_cache_close(rig->cache);
    (void)manual_fixture_run(&rig->executor);
    manual_fixture_close(&rig->executor);
}

static weir__http_file *make_file(const char *text)
{
    weir__http_file *file = NULL;
    weir_buf *bytes = NULL;

    assert_int_equal(weir_buf_create_from(text, strlen(text), &bytes), 0);
    assert_int_equal(weir__http_file_create_from(bytes, "text/plain", &file), 0);
    return file;
}

/* Any address is a loop. */
static const weir_executor *loop_at(const void *address)
{
    return address;
}

static weir__http_lookup *begin(struct rig *rig, const char *path, void *request)
{
    weir__http_lookup *lookup = NULL;

    assert_int_equal(weir__http_file_cache_wait(rig->cache, loop_at(rig), weir_span_of_text(path),
                                                0, request, &lookup),
                     0);
    return lookup;
}

static int end(struct rig *rig, weir__http_lookup *lookup, weir__http_file *file)
{
    weir__http_waiter *waiter = weir__http_file_cache_end_lookup(rig->cache, lookup, file), *next;
    int count = 0;

    for (; waiter != NULL; waiter = next, count++) {
        next = waiter->next;
        weir_memory_free(waiter);
    }
    weir__http_file_release(file);
    return count;
}

static void keep(struct rig *rig, const char *path, const char *text)
{
    assert_int_equal(end(rig, begin(rig, path, NULL), make_file(text)), 1);
}

/* The first byte of a kept file; 0 if there is none. */
static char look(struct rig *rig, const char *path, int64_t now_ns)
{
    weir__http_file *file =
        weir__http_file_cache_get(rig->cache, loop_at(rig), weir_span_of_text(path), now_ns);
    char byte = file != NULL ? (char)*weir_buf_bytes(file->representations[0].bytes) : 0;

    weir__http_file_release(file);
    return byte;
}

TEST(file_cache, keeps_files_for_their_lifetime)
{
    struct rig rig;

    open_rig(&rig, &wide);
    assert_int_equal(look(&rig, "a", 0), 0);
    keep(&rig, "a", "1");
    keep(&rig, "b", "2");
    assert_int_equal(look(&rig, "a", 0), '1');
    assert_int_equal(look(&rig, "a", LIFETIME - 1), '1');
    assert_int_equal(look(&rig, "b", LIFETIME - 1), '2');
    assert_int_equal(look(&rig, "a", LIFETIME), 0);
    keep(&rig, "a", "3");
    assert_int_equal(look(&rig, "a", 0), '3');
    close_rig(&rig);
}

TEST(file_cache, one_lookup_serves_all_requests_in_their_order)
{
    struct rig rig;
    weir__http_lookup *lookup;
    weir__http_waiter *waiter, *next;
    int requests[3], count = 0;

    open_rig(&rig, &wide);
    lookup = begin(&rig, "a", &requests[0]);
    assert_non_null(lookup);
    assert_string_equal(lookup->path, "a");
    assert_null(begin(&rig, "a", &requests[1]));
    assert_null(begin(&rig, "a", &requests[2]));
    waiter = weir__http_file_cache_end_lookup(rig.cache, lookup, NULL);
    for (; waiter != NULL; waiter = next) {
        next = waiter->next;
        assert_ptr_equal(waiter->request, &requests[count++]);
        weir_memory_free(waiter);
    }
    assert_int_equal(count, 3);
    close_rig(&rig);
}

TEST(file_cache, forgets_a_file_that_is_not_found_any_more)
{
    struct rig rig;

    open_rig(&rig, &wide);
    keep(&rig, "a", "1");
    assert_int_equal(end(&rig, begin(&rig, "a", NULL), NULL), 1);
    assert_int_equal(look(&rig, "a", 0), 0);
    close_rig(&rig);
}

TEST(file_cache, removes_the_least_recently_used_file_if_it_is_full)
{
    weir__http_file_cache_limits limits = wide;
    struct rig rig;

    limits.bytes = 2 * (sizeof(weir__http_file) + 1);
    open_rig(&rig, &limits);
    keep(&rig, "a", "1");
    keep(&rig, "b", "2");
    assert_int_equal(look(&rig, "a", 0), '1');
    keep(&rig, "c", "3");
    assert_int_equal(look(&rig, "a", 0), '1');
    assert_int_equal(look(&rig, "b", 0), 0);
    assert_int_equal(look(&rig, "c", 0), '3');
    keep(&rig, "d",
         "a file that needs more room than there is for both of them .......................");
    assert_int_equal(look(&rig, "d", 0), 'a');
    assert_int_equal(look(&rig, "a", 0), 0);
    close_rig(&rig);
}

TEST(file_cache, does_not_keep_what_is_larger_than_all_of_it)
{
    weir__http_file_cache_limits limits = wide;
    struct rig rig;

    limits.bytes = sizeof(weir__http_file);
    open_rig(&rig, &limits);
    keep(&rig, "a", "1");
    assert_int_equal(look(&rig, "a", 0), 0);
    close_rig(&rig);
}

TEST(file_cache, keeps_no_more_descriptors_than_allowed)
{
    struct rig rig;
    char path[16];
    int kept = 0;

    open_rig(&rig, &wide);
    for (int i = 0; i < 20; i++) {
        weir__http_file *file = make_file("x");

        file->descriptors = 3; /* at most three files then */
        (void)snprintf(path, sizeof(path), "%d", i);
        (void)end(&rig, begin(&rig, path, NULL), file);
    }
    for (int i = 0; i < 20; i++) {
        (void)snprintf(path, sizeof(path), "%d", i);
        kept += look(&rig, path, 0) != 0;
    }
    assert_int_equal(kept, 3);
    close_rig(&rig);
}

TEST(file_cache, keeps_nothing_without_a_lifetime)
{
    weir__http_file_cache_limits limits = wide;
    struct rig rig;

    limits.lifetime_ns = 0;
    open_rig(&rig, &limits);
    keep(&rig, "a", "1");
    assert_int_equal(look(&rig, "a", 0), 0);
    assert_int_equal(look(&rig, "a", -1), 0);
    close_rig(&rig);
}

TEST(file_cache, many_files_share_buckets)
{
    struct rig rig;
    char path[32], text[2] = "";

    open_rig(&rig, &wide);
    for (int i = 0; i < 600; i++) {
        (void)snprintf(path, sizeof(path), "file-%d", i);
        text[0] = (char)('a' + i % 26);
        keep(&rig, path, text);
    }
    for (int i = 0; i < 600; i++) {
        (void)snprintf(path, sizeof(path), "file-%d", i);
        assert_int_equal(look(&rig, path, 0), 'a' + i % 26);
    }
    weir__http_file_cache_clear(rig.cache);
    assert_int_equal(look(&rig, "file-0", 0), 0);
    close_rig(&rig);
}

/* ---- sweeps ---- */

static void sweep(struct rig *rig)
{
    weir_clock *clock = weir_manual_clock_clock(rig->executor.clock);

    assert_int_equal(
        weir_manual_clock_set(rig->executor.clock, clock->now(clock) + INT64_C(1000000000)), 0);
    (void)manual_fixture_run(&rig->executor);
}

TEST(file_cache, sweeps_away_what_nobody_uses)
{
    weir_executor_stats stats;
    struct rig rig;

    open_rig(&rig, &wide);
    keep(&rig, "a", "1");
    keep(&rig, "b", "2");
    sweep(&rig);
    assert_int_equal(look(&rig, "a", 0), '1');
    sweep(&rig); /* `b` was not used between the two */
    assert_int_equal(look(&rig, "b", 0), 0);
    assert_int_equal(look(&rig, "a", 0), '1');
    sweep(&rig);
    sweep(&rig);
    assert_int_equal(look(&rig, "a", 0), 0);
    sweep(&rig);
    weir_executor_read_stats(rig.executor.executor, &stats);
    assert_int_equal(stats.timers, 0); /* no sweep is scheduled any more */
    keep(&rig, "a", "3");
    sweep(&rig);
    sweep(&rig);
    assert_int_equal(look(&rig, "a", 0), 0);
    close_rig(&rig);
}

TEST(file_cache, closes_while_its_executor_has_ended)
{
    struct rig rig;

    open_rig(&rig, &wide);
    keep(&rig, "a", "1");
    manual_fixture_close(&rig.executor);
    weir__http_file_cache_close(rig.cache);
    weir__http_file_cache_close(NULL);
}

/* ---- failures and threads ---- */

static void use_without_memory(unsigned n)
{
    weir__http_lookup *lookup = NULL;
    weir__http_file *file = make_file("1");
    struct rig rig = {0};
    int err;

    manual_fixture_open(&rig.executor);
    test_memory_fail_at(n);
    err = weir__http_file_cache_create(&wide, rig.executor.executor, &rig.cache);
    if (err == 0)
        err = weir__http_file_cache_wait(rig.cache, loop_at(&rig), weir_span_of_text("a"), 0, NULL,
                                         &lookup);
    if (err == 0)
        assert_int_equal(end(&rig, lookup, weir__http_file_retain(file)), 1);
    assert_true(err == 0 || err == -ENOMEM);
    weir__http_file_release(file);
    weir__http_file_cache_close(rig.cache);
    (void)manual_fixture_run(&rig.executor);
    manual_fixture_close(&rig.executor);
}

TEST(file_cache, survives_a_lack_of_memory)
{
    unsigned n = 0;
    bool failed;

    do {
        use_without_memory(++n);
        failed = test_memory_failed();
        test_memory_fail_at(0);
    } while (failed);
    assert_true(n > 5);
}

struct shared {
    struct rig rig;
    weir__http_file *file;
};

/* Looks up, keeps and slices the same files from several threads. */
static void *use(void *user_data)
{
    struct shared *shared = user_data;
    weir__http_lookup *lookup;
    weir__http_file *file;
    weir_buf *slice;
    char path[2] = "";

    for (int i = 0; i < 2000; i++) {
        path[0] = (char)('a' + i % 3);
        file = weir__http_file_cache_get(shared->rig.cache, loop_at(shared),
                                         weir_span_of_text(path), i);
        if (file != NULL) {
            assert_int_equal(weir_buf_slice(file->representations[0].bytes, 0, 1, &slice), 0);
            weir__http_file_release(file);
            weir_buf_release(slice);
        }
        assert_int_equal(weir__http_file_cache_wait(shared->rig.cache, loop_at(shared),
                                                    weir_span_of_text(path), i, NULL, &lookup),
                         0);
        if (lookup != NULL)
            (void)end(&shared->rig, lookup, weir__http_file_retain(shared->file));
        if (i % 100 == 0)
            weir__http_file_cache_clear(shared->rig.cache);
    }
    weir_locals_remove_all();
    return NULL;
}

TEST(file_cache, is_used_by_several_threads)
{
    struct shared shared;
    pthread_t threads[4];

    open_rig(&shared.rig, &wide);
    shared.file = make_file("shared");
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use, &shared), 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    weir__http_file_release(shared.file);
    close_rig(&shared.rig);
}
