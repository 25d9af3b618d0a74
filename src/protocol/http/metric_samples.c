/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/http/metric_samples.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <weir/memory.h>

/* ---- copying ---- */

/* Suffixes of the registry, and those of base units. */
static const struct {
    const char *suffix;
    const char *unit;
} units[] = {{"_ns", "_seconds"}, {"_permille", "_ratio"}};

/* Only the library's families get a prefix: "executor.tasks_run" becomes one of "weir_". */
static void write_exported(char *to, weir_span family, bool is_ours)
{
    char *from = to;

    if (is_ours && strncmp((const char *)family.data, "process.", 8) != 0)
        to = stpcpy(to, "weir_");
    else if (family.data[0] >= '0' && family.data[0] <= '9')
        *to++ = '_';
    for (size_t i = 0; i < family.length; i++)
        *to++ = strchr(".#-", family.data[i]) != NULL ? '_' : (char)family.data[i];
    if (to - from > 6 && memcmp(to - 6, "_total", 6) == 0)
        to -= 6; /* counters get it, and others must not have it */
    *to = '\0';
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        size_t length = strlen(units[i].suffix);

        if ((size_t)(to - from) > length && strcmp(to - length, units[i].suffix) == 0)
            (void)stpcpy(to - length, units[i].unit);
    }
}

/* At most "weir_" and the longer unit are added. */
#define EXPORTED_SIZE (WEIR_METRIC_NAME_SIZE + 16)

static void count_bucket(int64_t upper, uint64_t count, void *user_data)
{
    (void)upper;
    (void)count;
    ++*(size_t *)user_data;
}

static void copy_bucket(int64_t upper, uint64_t count, void *user_data)
{
    weir__metric_bucket **to = user_data;

    *(*to)++ = (weir__metric_bucket){upper, count};
}

/* Labels may have any bytes; all formats are UTF-8. */
static void replace_bytes(char *text)
{
    for (; *text != '\0'; text++)
        if ((unsigned char)*text >= 0x80)
            *text = '?';
}

static weir__metric_sample *copy_value(const weir_metric_value *value)
{
    size_t name_size = strlen(value->name) + 1, bucket_count = 0;
    weir_span family = weir_span_of(value->name, value->family_length);
    weir__metric_bucket *buckets;
    weir__metric_sample *sample;
    char exported[EXPORTED_SIZE];

    if (value->histogram != NULL)
        weir_histogram_foreach_bucket(value->histogram, count_bucket, &bucket_count);
    /* The buckets are in front, for their alignment. */
    buckets = weir_memory_alloc(bucket_count * sizeof(*buckets) + sizeof(*sample) + name_size +
                                EXPORTED_SIZE);
    if (buckets == NULL)
        return NULL;
    sample = (weir__metric_sample *)(void *)(buckets + bucket_count);
    *sample = (weir__metric_sample){
        .kind = value->kind,
        .value = value->value,
        .summary = value->summary,
        .help = weir__metric_help(family),
        .family_length = value->family_length,
        .bucket_count = bucket_count,
        .buckets = buckets,
    };
    memcpy(sample->name, value->name, name_size);
    if (!weir_span_is_utf8(weir_span_of(sample->name, name_size - 1)))
        replace_bytes(sample->name);
    write_exported(exported, family, sample->help != NULL);
    sample->exported = memcpy(sample->name + name_size, exported, strlen(exported) + 1);
    if (value->histogram != NULL)
        weir_histogram_foreach_bucket(value->histogram, copy_bucket, &buckets);
    return sample;
}

static int grow(weir__metric_samples *samples)
{
    size_t capacity = samples->capacity > 0 ? 2 * samples->capacity : 256;
    weir__metric_sample **all = weir_memory_realloc(samples->all, capacity * sizeof(*all));

    if (all == NULL)
        return -ENOMEM;
    samples->all = all;
    samples->capacity = capacity;
    return 0;
}

static void add_value(const weir_metric_value *value, void *user_data)
{
    weir__metric_samples *samples = user_data;

    if (samples->err == 0 && samples->count == samples->capacity)
        samples->err = grow(samples);
    if (samples->err < 0)
        return;
    samples->all[samples->count] = copy_value(value);
    if (samples->all[samples->count] == NULL)
        samples->err = -ENOMEM;
    else
        samples->count++;
}

static int compare(const void *a, const void *b)
{
    const weir__metric_sample *left = *(weir__metric_sample *const *)a;
    const weir__metric_sample *right = *(weir__metric_sample *const *)b;
    int order = strcmp(left->exported, right->exported);

    if (order == 0)
        order = strcmp(weir__metric_sample_labels(left), weir__metric_sample_labels(right));
    return order != 0 ? order : strcmp(left->name, right->name);
}

int weir__metric_samples_read(weir__metric_samples *ret_samples)
{
    *ret_samples = (weir__metric_samples){0};
    weir_metrics_foreach(add_value, ret_samples);
    if (ret_samples->err < 0)
        weir__metric_samples_deinit(ret_samples);
    else if (ret_samples->count > 0)
        qsort(ret_samples->all, ret_samples->count, sizeof(*ret_samples->all), compare);
    return ret_samples->err;
}

void weir__metric_samples_deinit(weir__metric_samples *samples)
{
    for (size_t i = 0; i < samples->count; i++)
        weir_memory_free((void *)(uintptr_t)samples->all[i]->buckets);
    weir_memory_free(samples->all);
}

/* ---- labels ---- */

bool weir__metric_label_next(const char **at, weir__metric_label *ret_label)
{
    const char *key = *at + 1, *value, *end;

    if (**at != '{' && **at != ',')
        return false;
    value = strchr(key, '=') + 2;
    for (end = value; *end != '"'; end++)
        end += *end == '\\';
    ret_label->key = weir_span_of(key, (size_t)(value - 2 - key));
    ret_label->value = weir_span_of(value, (size_t)(end - value));
    *at = end + 1;
    return true;
}

size_t weir__metric_label_unescape(weir_span value, char *ret_text)
{
    size_t length = 0;

    for (size_t i = 0; i < value.length; i++) {
        bool escaped = value.data[i] == '\\';

        i += escaped;
        ret_text[length++] = escaped && value.data[i] == 'n' ? '\n' : (char)value.data[i];
    }
    return length;
}
