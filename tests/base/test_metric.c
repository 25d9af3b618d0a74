/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registry: kinds, sources, names, and readers concurrent with registration.
 */
#include "support/test.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/histogram.h"
#include "base/metric.h"
#include "os/thread.h"
#include "support/memory.h"

#define NAME(name) ((weir__metric_name){name})

static weir_metric *create(enum weir_metric_kind kind, const char *name)
{
    weir_metric *metric;

    assert_int_equal(weir_metric_create(kind, name, &metric), 0);
    return metric;
}

/* True for the metrics that every process has. */
static bool is_of_process(const weir_metric_value *value)
{
    for (unsigned i = 0; i < weir__process_metrics.count; i++)
        if (strcmp(value->name, weir__process_metrics.rows[i].name) == 0)
            return true;
    return false;
}

static int64_t value_of(const char *name)
{
    weir_metric_value value;

    assert_int_equal(weir_metric_read(name, &value), 0);
    assert_string_equal(value.name, name);
    return value.value;
}

TEST(metric, a_counter_counts_up)
{
    weir_metric *metric = create(WEIR_METRIC_COUNTER, "requests");
    weir_metric_value value;

    assert_int_equal(value_of("requests"), 0);
    assert_int_equal(weir_metric_add(metric, 2), 0);
    assert_int_equal(weir_metric_add(metric, 3), 0);
    assert_int_equal(value_of("requests"), 5);
    assert_int_equal(weir_metric_read("requests", &value), 0);
    assert_int_equal(value.kind, WEIR_METRIC_COUNTER);
    assert_int_equal(value.summary.count, 0);
    weir_metric_release(metric);
}

TEST(metric, a_gauge_goes_up_and_down)
{
    weir_metric *metric = create(WEIR_METRIC_GAUGE, "open");

    assert_int_equal(weir_metric_add(metric, 5), 0);
    assert_int_equal(weir_metric_add(metric, -7), 0);
    assert_int_equal(value_of("open"), -2);
    assert_int_equal(weir_metric_set(metric, 40), 0);
    assert_int_equal(value_of("open"), 40);
    weir_metric_release(metric);
}

TEST(metric, a_histogram_is_summarized)
{
    weir_metric *metric = create(WEIR_METRIC_HISTOGRAM, "latency");
    weir_metric_value value;

    assert_int_equal(weir_metric_record(metric, 5), 0);
    assert_int_equal(weir_metric_record(metric, 9), 0);
    assert_int_equal(weir_metric_read("latency", &value), 0);
    assert_int_equal(value.kind, WEIR_METRIC_HISTOGRAM);
    assert_int_equal(value.value, 2);
    assert_int_equal(value.summary.count, 2);
    assert_int_equal(value.summary.sum, 14);
    assert_int_equal(value.summary.max, 9);
    weir_metric_release(metric);
}

TEST(metric, operations_of_another_kind_are_rejected)
{
    weir_metric *counter = create(WEIR_METRIC_COUNTER, "counter");
    weir_metric *gauge = create(WEIR_METRIC_GAUGE, "gauge");
    weir_metric *histogram = create(WEIR_METRIC_HISTOGRAM, "histogram");

    assert_int_equal(weir_metric_add(counter, -1), -EINVAL);
    assert_int_equal(weir_metric_set(counter, 1), -EINVAL);
    assert_int_equal(weir_metric_record(counter, 1), -EINVAL);
    assert_int_equal(weir_metric_record(gauge, 1), -EINVAL);
    assert_int_equal(weir_metric_add(histogram, 1), -EINVAL);
    assert_int_equal(weir_metric_set(histogram, 1), -EINVAL);
    assert_int_equal(value_of("counter"), 0);
    assert_int_equal(value_of("gauge"), 0);
    assert_int_equal(value_of("histogram"), 0);
    weir_metric_release(counter);
    weir_metric_release(gauge);
    weir_metric_release(histogram);
}

TEST(metric, a_name_is_taken_until_its_metric_is_released)
{
    weir_metric *first = create(WEIR_METRIC_COUNTER, "name"), *second = NULL;

    assert_int_equal(weir_metric_create(WEIR_METRIC_GAUGE, "name", &second), -EEXIST);
    assert_int_equal(weir_metric_create(WEIR_METRIC_HISTOGRAM, "name", &second), -EEXIST);
    assert_null(second);
    weir_metric_add(first, 1);
    weir_metric_release(first);

    second = create(WEIR_METRIC_GAUGE, "name");
    assert_int_equal(value_of("name"), 0);
    weir_metric_release(second);
    weir_metric_release(NULL);
}

TEST(metric, bad_names_and_kinds_are_refused)
{
    char longest[WEIR_METRIC_NAME_SIZE + 1];
    weir_metric *metric = NULL;

    memset(longest, 'n', sizeof(longest));
    longest[WEIR_METRIC_NAME_SIZE] = '\0';
    assert_int_equal(weir_metric_create(WEIR_METRIC_GAUGE, longest, &metric), -ENAMETOOLONG);
    assert_int_equal(weir_metric_create(WEIR_METRIC_GAUGE, "", &metric), -EINVAL);
    assert_int_equal(weir_metric_create(WEIR_METRIC_GAUGE, NULL, &metric), -EINVAL);
    assert_int_equal(weir_metric_create((enum weir_metric_kind)7, "kind", &metric), -EINVAL);
    assert_null(metric);

    longest[WEIR_METRIC_NAME_SIZE - 1] = '\0';
    metric = create(WEIR_METRIC_GAUGE, longest);
    assert_int_equal(value_of(longest), 0);
    weir_metric_release(metric);
}

TEST(metric, reading_an_unknown_name_is_an_error)
{
    weir_metric *metric = create(WEIR_METRIC_GAUGE, "known");
    weir_metric_value value = {.value = 77};

    assert_int_equal(weir_metric_read("unknown", &value), -ENOENT);
    assert_int_equal(weir_metric_read("know", &value), -ENOENT);
    assert_int_equal(weir_metric_read(NULL, &value), -EINVAL);
    assert_int_equal(value.value, 77);
    weir_metric_release(metric);
    assert_int_equal(weir_metric_read("known", &value), -ENOENT);
}

TEST(metric, each_allocation_may_fail)
{
    static const enum weir_metric_kind kinds[] = {WEIR_METRIC_COUNTER, WEIR_METRIC_HISTOGRAM};

    for (int i = 0; i < 2; i++) {
        weir_metric *metric = NULL;
        weir_metric_value value;
        unsigned n = 0;
        int err;

        do {
            test_memory_fail_at(++n);
            err = weir_metric_create(kinds[i], "name", &metric);
            if (err < 0) {
                assert_int_equal(err, -ENOMEM);
                assert_null(metric);
                assert_int_equal(weir_metric_read("name", &value), -ENOENT);
            }
        } while (err < 0);
        test_memory_fail_at(0);
        assert_int_equal(n, i == 0 ? 3 : 4); /* metric, histogram, slots */
        assert_int_equal(value_of("name"), 0);
        weir_metric_release(metric);
    }
}

TEST(metric, labels_are_a_part_of_the_name)
{
    weir_metric *plain = create(WEIR_METRIC_COUNTER, "answers");
    weir_metric *books = create(WEIR_METRIC_COUNTER, "answers{shelf=\"books\"}");
    weir_metric *maps = create(WEIR_METRIC_GAUGE, "answers{shelf=\"maps\"}"), *taken = NULL;
    weir_metric_value value;

    weir_metric_add(books, 3);
    weir_metric_add(maps, 4);
    assert_int_equal(value_of("answers"), 0);
    assert_int_equal(value_of("answers{shelf=\"maps\"}"), 4);
    assert_int_equal(weir_metric_read("answers{shelf=\"books\"}", &value), 0);
    assert_int_equal(value.value, 3);
    assert_string_equal(value.name, "answers{shelf=\"books\"}");
    assert_int_equal(value.family_length, strlen("answers"));
    assert_int_equal(weir_metric_create(WEIR_METRIC_GAUGE, value.name, &taken), -EEXIST);
    assert_int_equal(weir_metric_read("answers{shelf=\"book\"}", &value), -ENOENT);
    weir_metric_release(plain);
    weir_metric_release(books);
    weir_metric_release(maps);
}

TEST(metric, the_metrics_of_an_object_share_its_labels)
{
    static const char labels[] = "{loop=\"a-1#1\"}";
    weir_metric first, second, third;

    assert_int_equal(
        weir__metric_init(&first, WEIR_METRIC_COUNTER, (weir__metric_name){"f.first", labels}), 0);
    assert_int_equal(
        weir__metric_init(&second, WEIR_METRIC_COUNTER, (weir__metric_name){"f.second", labels}),
        0);
    assert_int_equal(
        weir__metric_init(&third, WEIR_METRIC_COUNTER, NAME("f.second{loop=\"a-1#1\"}")), -EEXIST);
    weir_metric_add(&second, 5);
    assert_int_equal(value_of("f.first{loop=\"a-1#1\"}"), 0);
    assert_int_equal(value_of("f.second{loop=\"a-1#1\"}"), 5);
    weir__metric_deinit(&first);
    weir__metric_deinit(&second);
}

static void note_bucket(int64_t upper, uint64_t count, void *user_data)
{
    *(int64_t *)user_data += upper * (int64_t)count;
}

static void release_and_read(const weir_metric_value *value, void *user_data)
{
    weir_metric **metric = user_data;
    int64_t sum = 0;

    if (is_of_process(value))
        return;
    weir_metric_release(*metric);
    *metric = NULL;
    weir_histogram_foreach_bucket(value->histogram, note_bucket, &sum);
    assert_int_equal(sum, 5 + 5 + 9);
    assert_int_equal(value->summary.count, 3);
    assert_int_equal(value->summary.sum, 19);
}

TEST(metric, a_visitor_has_a_copy_of_the_histogram)
{
    weir_metric *metric = create(WEIR_METRIC_HISTOGRAM, "latency");
    weir_metric_value value;

    weir_metric_record(metric, 5);
    weir_metric_record(metric, 5);
    weir_metric_record(metric, 9);
    assert_int_equal(weir_metric_read("latency", &value), 0);
    assert_null(value.histogram);
    weir_metrics_foreach(release_and_read, &metric);
    assert_null(metric);
}

static int64_t double_of(void *arg)
{
    return *(int64_t *)arg * 2;
}

TEST(metric, an_embedded_one_reads_from_its_source)
{
    struct {
        _Atomic int64_t source;
        int64_t doubled;
        weir_histogram histogram;
        weir_metric own, value, function, distribution;
    } object = {.source = 11, .doubled = 21};
    weir_metric_value value;

    weir__histogram_init(&object.histogram);
    weir__histogram_record(&object.histogram, 6);
    assert_int_equal(weir__metric_init(&object.own, WEIR_METRIC_COUNTER, NAME("o.own")), 0);
    assert_int_equal(
        weir__metric_init_source(&object.value, WEIR_METRIC_GAUGE, NAME("o.value"), &object.source),
        0);
    assert_int_equal(weir__metric_init_read(&object.function, WEIR_METRIC_GAUGE, NAME("o.function"),
                                            double_of, &object.doubled),
                     0);
    assert_int_equal(weir__metric_init_histogram(&object.distribution, NAME("o.distribution"),
                                                 &object.histogram),
                     0);

    assert_int_equal(weir_metric_add(&object.own, 1), 0);
    assert_int_equal(value_of("o.own"), 1);
    assert_int_equal(value_of("o.value"), 11);
    assert_int_equal(value_of("o.function"), 42);
    assert_int_equal(weir_metric_read("o.distribution", &value), 0);
    assert_int_equal(value.kind, WEIR_METRIC_HISTOGRAM);
    assert_int_equal(value.summary.p50, 6);

    weir__metric_deinit(&object.own);
    weir__metric_deinit(&object.value);
    weir__metric_deinit(&object.function);
    weir__metric_deinit(&object.distribution);
    assert_int_equal(weir_metric_read("o.own", &value), -ENOENT);
}

TEST(metric, deinit_of_one_that_was_not_registered_does_nothing)
{
    weir_metric first, second, zero = {0};

    assert_int_equal(weir__metric_init(&first, WEIR_METRIC_COUNTER, NAME("name")), 0);
    assert_int_equal(weir__metric_init(&second, WEIR_METRIC_COUNTER, NAME("name")), -EEXIST);
    weir__metric_deinit(&second);
    weir__metric_deinit(&zero);
    assert_int_equal(value_of("name"), 0);
    weir__metric_deinit(&first);
    weir__metric_deinit(&first);
    assert_int_equal(weir__metric_init(&second, WEIR_METRIC_HISTOGRAM, NAME("name")), -EINVAL);
    weir__metric_deinit(&second);
}

#define MANY 500

struct visits {
    int count[MANY];
    int others;
};

static void count_visit(const weir_metric_value *value, void *user_data)
{
    struct visits *visits = user_data;
    int number;

    if (sscanf(value->name, "many.%d", &number) == 1 && value->value == number)
        visits->count[number]++;
    else if (!is_of_process(value))
        visits->others++;
}

static void create_many(weir_metric *many[MANY])
{
    char name[32];

    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof(name), "many.%d", i);
        many[i] = create(WEIR_METRIC_GAUGE, name);
        weir_metric_set(many[i], i);
    }
}

TEST(metric, foreach_reports_each_metric_once)
{
    struct visits visits = {.others = 0};
    weir_metric *many[MANY];

    create_many(many);
    for (int i = 0; i < MANY; i += 2)
        weir_metric_release(many[i]);
    weir_metrics_foreach(count_visit, &visits);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(visits.count[i], i % 2);
    assert_int_equal(visits.others, 0);
    assert_int_equal(value_of("many.499"), 499);

    for (int i = 1; i < MANY; i += 2)
        weir_metric_release(many[i]);
    weir_metrics_foreach(count_visit, &visits);
    assert_int_equal(visits.count[1], 1);
}

TEST(metric, an_empty_registry_holds_no_memory)
{
    weir_metric *many[MANY];

    create_many(many);
    assert_true(test_memory_live() > MANY);
    for (int i = 0; i < MANY; i++)
        weir_metric_release(many[i]);
    assert_int_equal(test_memory_live(), 0);
}

TEST(metric, a_slot_is_used_again)
{
    weir_metric *keeper = create(WEIR_METRIC_GAUGE, "keeper");
    size_t live = test_memory_live();
    char name[32];

    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof(name), "short-lived.%d", i);
        weir_metric_release(create(WEIR_METRIC_COUNTER, name));
    }
    assert_int_equal(test_memory_live(), live);
    weir_metric_release(keeper);
}

static void release_all(const weir_metric_value *value, void *user_data)
{
    weir_metric **metrics = user_data;

    for (int i = 0; i < 3; i++)
        if (metrics[i] != NULL && strcmp(metrics[i]->family, value->name) == 0) {
            weir_metric_release(metrics[i]);
            metrics[i] = NULL;
        }
}

TEST(metric, foreach_may_release_the_metric)
{
    weir_metric *metrics[] = {create(WEIR_METRIC_GAUGE, "a"), create(WEIR_METRIC_GAUGE, "b"),
                              create(WEIR_METRIC_GAUGE, "c")};

    weir_metrics_foreach(release_all, metrics);
    for (int i = 0; i < 3; i++)
        assert_null(metrics[i]);
}

static _Atomic bool stop;
static _Atomic int wrong, visited;

static void check_bucket(int64_t upper, uint64_t count, void *user_data)
{
    (void)user_data;
    if (upper != 7 || count != 1)
        atomic_fetch_add(&wrong, 1);
}

static void check_visit(const weir_metric_value *value, void *user_data)
{
    (void)user_data;
    if (is_of_process(value))
        return;
    atomic_fetch_add(&visited, 1);
    if (value->value != (value->histogram != NULL ? 1 : 12345) ||
        strncmp(value->name, "churn.", 6) != 0)
        atomic_fetch_add(&wrong, 1);
    if (value->histogram != NULL)
        weir_histogram_foreach_bucket(value->histogram, check_bucket, NULL);
}

static void read_until_stopped(void *arg)
{
    weir_metric_value value;

    while (!atomic_load(&stop)) {
        weir_metrics_foreach(check_visit, arg);
        if (weir_metric_read("churn.0", &value) == 0 && value.value != 12345)
            atomic_fetch_add(&wrong, 1);
    }
}

/* Destroyed as soon as deinit returns. */
struct owner {
    _Atomic int64_t value;
    weir_histogram histogram;
    char name[32], labels[32];
    weir_metric metric, distribution;
};

static void churn(void *arg)
{
    struct owner owner;

    for (int i = 0; i < 2000; i++) {
        atomic_init(&owner.value, 12345);
        weir__histogram_init(&owner.histogram);
        weir__histogram_record(&owner.histogram, 7);
        snprintf(owner.name, sizeof(owner.name), "churn.%d", *(int *)arg);
        snprintf(owner.labels, sizeof(owner.labels), "{kind=\"histogram\"}");
        if (weir__metric_init_source(&owner.metric, WEIR_METRIC_GAUGE, NAME(owner.name),
                                     &owner.value) != 0 ||
            weir__metric_init_histogram(&owner.distribution,
                                        (weir__metric_name){owner.name, owner.labels},
                                        &owner.histogram) != 0)
            atomic_fetch_add(&wrong, 1);
        if (i % 50 == 0)
            weir__thread_yield();
        weir__metric_deinit(&owner.metric);
        weir__metric_deinit(&owner.distribution);
        memset(&owner, 0x5a, sizeof(owner)); /* plain: a reader still inside would be a race */
    }
}

TEST(metric, readers_never_see_what_was_unregistered)
{
    weir__thread readers[2], owners[2];
    int numbers[2] = {0, 1};

    for (int i = 0; i < 2; i++) {
        assert_int_equal(weir__thread_start("reader", read_until_stopped, NULL, &readers[i]), 0);
        assert_int_equal(weir__thread_start("owner", churn, &numbers[i], &owners[i]), 0);
    }
    for (int i = 0; i < 2; i++)
        weir__thread_join(&owners[i]);
    atomic_store(&stop, true);
    for (int i = 0; i < 2; i++)
        weir__thread_join(&readers[i]);
    assert_int_equal(atomic_load(&wrong), 0);
    assert_true(atomic_load(&visited) > 0);
}

static void add_much(void *metric)
{
    for (int i = 0; i < 10000; i++)
        weir_metric_add(metric, 1);
}

TEST(metric, additions_of_several_threads_add_up)
{
    weir_metric *metric = create(WEIR_METRIC_COUNTER, "sum");
    weir__thread threads[3];

    for (int i = 0; i < 3; i++)
        assert_int_equal(weir__thread_start("adder", add_much, metric, &threads[i]), 0);
    for (int i = 0; i < 3; i++)
        weir__thread_join(&threads[i]);
    assert_int_equal(value_of("sum"), 30000);
    weir_metric_release(metric);
}

/* ---- tables ---- */

static int64_t read_row(unsigned row)
{
    return 100 + (int64_t)row;
}

static void merge_row(unsigned row, weir_histogram *histogram)
{
    weir_histogram_record(histogram, row);
    weir_histogram_record(histogram, 7);
}

static void sum_table(const weir_metric_value *value, void *sum)
{
    if (strncmp(value->name, "table.", 6) != 0)
        return;
    *(int64_t *)sum += value->kind == WEIR_METRIC_HISTOGRAM ? value->summary.sum : value->value;
    if (value->histogram != NULL)
        weir_histogram_foreach_bucket(value->histogram, note_bucket, sum);
}

static int add_table_with(const weir_metric_row *row)
{
    weir_metric_table table = {.rows = row, .count = 1, .read = read_row};

    return weir_metric_table_add(&table); /* fails: the table is not kept */
}

TEST(metric, a_table_that_is_invalid_is_not_added)
{
    static const weir_metric_row without_merge = {"table.histogram", WEIR_METRIC_HISTOGRAM},
                                 bad_kind = {"table.kind", (enum weir_metric_kind)7},
                                 bad_name = {"table first", WEIR_METRIC_GAUGE},
                                 no_name = {NULL, WEIR_METRIC_GAUGE},
                                 taken = {"taken", WEIR_METRIC_GAUGE},
                                 of_process = {"process.cpu_ns", WEIR_METRIC_COUNTER};
    weir_metric *metric = create(WEIR_METRIC_COUNTER, "taken");
    weir_metric_value value;

    assert_int_equal(add_table_with(&without_merge), -EINVAL);
    assert_int_equal(add_table_with(&bad_kind), -EINVAL);
    assert_int_equal(add_table_with(&bad_name), -EINVAL);
    assert_int_equal(add_table_with(&no_name), -EINVAL);
    assert_int_equal(add_table_with(&taken), -EEXIST);
    assert_int_equal(add_table_with(&of_process), -EEXIST);
    assert_int_equal(weir_metric_read("table.histogram", &value), -ENOENT);
    weir_metric_release(metric);
}

/* Must be the last test of this file: a table is permanent. */
TEST(metric, a_row_of_a_table_is_a_metric)
{
    static const weir_metric_row rows[] = {
        {"table.first", WEIR_METRIC_COUNTER},
        {"table.second", WEIR_METRIC_GAUGE},
        {"table.third", WEIR_METRIC_HISTOGRAM},
    };
    static weir_metric_table table = {
        .rows = rows, .count = 3, .read = read_row, .merge = merge_row};
    weir_metric_value value;
    weir_metric *metric;
    int64_t sum = 0;

    assert_int_equal(weir_metric_table_add(&table), 0);
    assert_int_equal(value_of("table.first"), 100);
    assert_int_equal(weir_metric_read("table.second", &value), 0);
    assert_int_equal(value.kind, WEIR_METRIC_GAUGE);
    assert_int_equal(value.value, 101);
    assert_int_equal(weir_metric_read("table.third", &value), 0);
    assert_int_equal(value.value, 2);
    assert_int_equal(value.summary.sum, 9);
    assert_null(value.histogram);
    weir_metrics_foreach(sum_table, &sum);
    assert_int_equal(sum, 100 + 101 + 9 + 9);
    assert_int_equal(weir_metric_create(WEIR_METRIC_COUNTER, "table.first", &metric), -EEXIST);
    assert_int_equal(weir_metric_table_add(&table), -EEXIST);
    assert_int_equal(weir_metric_read("table.fourth", &value), -ENOENT);
}
