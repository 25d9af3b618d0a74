/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics of the process against other sources of the same numbers.
 */
#include "support/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <weir/metric.h>

#include "os/thread.h"

static int64_t value_of(const char *name)
{
    weir_metric_value value;

    assert_int_equal(weir_metric_read(name, &value), 0);
    return value.value;
}

TEST(process_metrics, descriptors_are_counted)
{
    int64_t before = value_of("process.open_fds");
    struct rlimit limit;
    int files[3];

    for (int i = 0; i < 3; i++)
        files[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_int_equal(value_of("process.open_fds"), before + 3);
    for (int i = 0; i < 3; i++)
        close(files[i]);
    assert_int_equal(value_of("process.open_fds"), before);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(value_of("process.max_fds"), (int64_t)limit.rlim_cur);
}

TEST(process_metrics, memory_is_counted)
{
    enum { SIZE = 8 << 20 };
    int64_t resident = value_of("process.resident_memory_bytes");
    int64_t virtual = value_of("process.virtual_memory_bytes");
    char *memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_true(memory != MAP_FAILED);
    memset(memory, 1, SIZE);
    assert_true(value_of("process.virtual_memory_bytes") >= virtual + SIZE / 2);
    assert_true(value_of("process.resident_memory_bytes") >= resident + SIZE / 2);
    assert_true(resident > 0 && virtual > resident);
    munmap(memory, SIZE);
}

static void count_threads(void *count)
{
    *(int64_t *)count = value_of("process.threads");
}

TEST(process_metrics, threads_are_counted)
{
    int64_t during = 0;
    weir__thread thread;

    /* Sanitizers have threads of their own, and one that has ended may be counted for a while. */
    assert_true(value_of("process.threads") >= 1);
    assert_int_equal(weir__thread_start("counter", count_threads, &during, &thread), 0);
    weir__thread_join(&thread);
    assert_true(during >= 2);
    assert_true(during <= 4);
}

TEST(process_metrics, cpu_time_grows)
{
    int64_t before = value_of("process.cpu_ns");
    volatile unsigned work = 0;

    for (unsigned i = 0; i < 1000000; i++)
        work = work + i;
    assert_true(value_of("process.cpu_ns") > before);
    assert_true(before > 0);
}

TEST(process_metrics, start_time_is_before_now_and_steady)
{
    int64_t start = value_of("process.start_time_ns");
    int64_t now = (int64_t)time(NULL) * 1000000000;

    assert_true(start > 0);
    assert_true(start <= now + 1000000000);
    assert_true(now - start < INT64_C(600) * 1000000000);
    assert_true(llabs(value_of("process.start_time_ns") - start) < 1000000000);
}

TEST(process_metrics, the_build_and_the_log_have_metrics)
{
    char name[64];

    snprintf(name, sizeof(name), "build_info{version=\"%s\"}", weir_version());
    assert_int_equal(value_of(name), 1);
    assert_int_equal(value_of("log.dropped"), 0);
}
