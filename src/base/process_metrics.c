/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of the process, of the log and of the build. */
#include <weir/log.h>

#include "base/metric.h"
#include "os/process_stats.h"

#define TEXT_OF(number) #number
#define VERSION_TEXT(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)
#define VERSION VERSION_TEXT(WEIR_VERSION_MAJOR, WEIR_VERSION_MINOR, WEIR_VERSION_PATCH)

static int64_t read_dropped(void)
{
    return (int64_t)weir_log_dropped();
}

static int64_t read_one(void)
{
    return 1;
}

enum { CPU, RESIDENT, VIRTUAL, OPEN_FDS, MAX_FDS, THREADS, START_TIME, DROPPED, BUILD, ROW_COUNT };

static const weir_metric_row rows[ROW_COUNT] = {
    [CPU] = {"process.cpu_ns", WEIR_METRIC_COUNTER},
    [RESIDENT] = {"process.resident_memory_bytes", WEIR_METRIC_GAUGE},
    [VIRTUAL] = {"process.virtual_memory_bytes", WEIR_METRIC_GAUGE},
    [OPEN_FDS] = {"process.open_fds", WEIR_METRIC_GAUGE},
    [MAX_FDS] = {"process.max_fds", WEIR_METRIC_GAUGE},
    [THREADS] = {"process.threads", WEIR_METRIC_GAUGE},
    [START_TIME] = {"process.start_time_ns", WEIR_METRIC_GAUGE},
    [DROPPED] = {"log.dropped", WEIR_METRIC_COUNTER},
    [BUILD] = {"build_info{version=\"" VERSION "\"}", WEIR_METRIC_GAUGE},
};

static int64_t (*const readers[ROW_COUNT])(void) = {
    [CPU] = weir__process_cpu_time,
    [RESIDENT] = weir__process_resident_bytes,
    [VIRTUAL] = weir__process_virtual_bytes,
    [OPEN_FDS] = weir__process_open_descriptors,
    [MAX_FDS] = weir__process_max_descriptors,
    [THREADS] = weir__process_threads,
    [START_TIME] = weir__process_start_time,
    [DROPPED] = read_dropped,
    [BUILD] = read_one,
};

static int64_t read_row(unsigned row)
{
    return readers[row]();
}

weir_metric_table weir__process_metrics = {.rows = rows, .count = ROW_COUNT, .read = read_row};
