/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ./dev soak loop [MIB [SECONDS [SEED]]]: on each backend, sends MIB (default 1024) through
 * socket pairs; then runs the mixed load on all backends for SECONDS in total (default 600). The
 * seed repeats a run, except for thread scheduling.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/log.h>

#include "os/clock.h"
#include "os/random.h"
#include "support/loop/driver.h"
#include "support/loop/mixed_load.h"
#include "support/loop/traffic.h"
#include "support/memory.h"

#define REPORT_BYTES (64u << 20)
#define REPORT_NS weir_seconds(10)

static void keep_quiet(void *user_data, enum weir_log_level level, const char *subsystem,
                       const char *object, const char *message)
{
    (void)user_data;
    (void)level;
    (void)subsystem;
    (void)object;
    (void)message; /* that backends fail is what this is about */
}

/* A line of progress: on a terminal the next one takes its place, unless it ends with a newline. */
static void WEIR_PRINTF(1, 2) report(const char *format, ...)
{
    bool is_final = format[strlen(format) - 1] == '\n';
    va_list args;

    if (isatty(STDOUT_FILENO))
        printf("\r\033[K");
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    if (!is_final && !isatty(STDOUT_FILENO))
        printf("\n");
    (void)fflush(stdout);
}

/* ---- traffic ---- */

/* How often each step is taken, of 10000. */
static const uint32_t shares[TRAFFIC_KINDS] = {
    [TRAFFIC_SEND] = 4000,  [TRAFFIC_START] = 1000,      [TRAFFIC_ONCE] = 400,
    [TRAFFIC_STOP] = 400,   [TRAFFIC_STOP_INSIDE] = 400, [TRAFFIC_TURN] = 3480,
    [TRAFFIC_WINDOW] = 150, [TRAFFIC_STARVE] = 50,       [TRAFFIC_MOVE] = 40,
    [TRAFFIC_REBUILD] = 20, [TRAFFIC_REPLACE] = 20,      [TRAFFIC_SETTLE] = 40,
};

static uint32_t next_kind(weir__random *random)
{
    uint64_t drawn = weir__random_below(random, 10000);
    uint32_t kind = 0;

    while (drawn >= shares[kind])
        drawn -= shares[kind++];
    return kind;
}

static bool drive_traffic(struct traffic *traffic, uint64_t bytes, weir__random *random)
{
    const char *name = traffic->driver->backend->name;
    uint64_t reported = 0;

    while (traffic_delivered(traffic) < bytes) {
        uint32_t kind = next_kind(random), numbers[3];

        for (int i = 0; i < 3; i++)
            numbers[i] = (uint32_t)weir__random_next(random);
        if (!traffic_step(traffic, kind, numbers))
            return false;
        if (traffic_delivered(traffic) - reported > REPORT_BYTES) {
            reported = traffic_delivered(traffic);
            report("%s: %" PRIu64 " of %" PRIu64 " MiB in %u pairs of sockets", name,
                   reported >> 20, bytes >> 20, traffic->pairs);
        }
    }
    return traffic_settle(traffic);
}

static const char *run_traffic(const struct backend *backend, uint64_t bytes, uint64_t seed)
{
    static struct driver driver; /* its complaint is returned */
    struct traffic traffic;
    weir__random random;
    char reason[256];
    const char *complaint;

    weir__random_init(&random, seed);
    if (driver_open(&driver, backend, reason, sizeof(reason)) < 0)
        return "it cannot be had any more";
    traffic_open(&traffic, &driver);
    (void)drive_traffic(&traffic, bytes, &random);
    complaint = driver_close(&driver);
    report("%s: %" PRIu64 " MiB in %u pairs of sockets: %s\n", backend->name, bytes >> 20,
           traffic.pairs, complaint != NULL ? complaint : "every byte has arrived");
    return complaint;
}

/* ---- bustle ---- */

static void report_rest(const struct mixed_load *load)
{
    static int64_t reported_ns;
    const struct footprint *now = load->late.resident > 0 ? &load->late : &load->early;

    if (weir__monotonic_now() - reported_ns < REPORT_NS)
        return;
    reported_ns = weir__monotonic_now();
    report("%s: %" PRIu64 " workloads, %" PRIu64 " timers, %" PRIu64 " tasks, %" PRIu64
           " failures, %" PRIu64 " suspensions; %zu MiB, %zu blocks, %zu descriptors",
           load->backend->name, load->workloads, load->timers, load->tasks, load->failures,
           load->suspensions, now->resident >> 20, now->blocks, now->descriptors);
}

static const char *run_bustle(const struct backend *backend, int64_t duration_ns, uint64_t seed)
{
    struct mixed_load load = {
        .backend = backend,
        .seed = seed,
        .duration_ns = duration_ns,
        .report = report_rest,
    };
    const char *fault = mixed_load_run(&load);

    report("%s: %" PRIu64 " workloads, %" PRIu64 " timers, %" PRIu64 " tasks, %" PRIu64
           " failures, %" PRIu64 " suspensions; %zu, then %zu MiB: %s\n",
           backend->name, load.workloads, load.timers, load.tasks, load.failures, load.suspensions,
           load.early.resident >> 20, load.late.resident >> 20, fault != NULL ? fault : "fine");
    return fault;
}

/* ---- all of it ---- */

static bool is_there(const struct backend *backend)
{
    char reason[256];
    weir__io *io;

    if (backend_create(backend, &io, reason, sizeof(reason)) < 0) {
        report("%s: skipped: %s\n", backend->name, reason);
        return false;
    }
    weir__io_destroy(io);
    return true;
}

static uint64_t argument(int argc, char **argv, int index, uint64_t otherwise)
{
    return argc > index ? strtoull(argv[index], NULL, 10) : otherwise;
}

int main(int argc, char **argv)
{
    uint64_t bytes = argument(argc, argv, 1, 1024) << 20;
    int64_t duration_ns = weir_seconds((int64_t)argument(argc, argv, 2, 600));
    uint64_t seed = weir__random_process_seed();
    const struct backend *there[BACKEND_COUNT];
    int count = 0;

    if (argc > 4 || (argc > 3 && weir__random_parse_seed(argv[3], &seed) < 0)) {
        fprintf(stderr, "usage: %s [MIB [SECONDS [SEED]]]\n", argv[0]);
        return 2;
    }
    test_memory_install();
    weir_log_set(keep_quiet, NULL);
    printf("seed %" PRIu64 "\n", seed);
    for (int i = 0; i < BACKEND_COUNT; i++)
        if (is_there(&backends[i]))
            there[count++] = &backends[i];
    for (int i = 0; i < count; i++)
        if (run_traffic(there[i], bytes, seed) != NULL)
            return EXIT_FAILURE;
    for (int i = 0; i < count && duration_ns > 0; i++)
        if (run_bustle(there[i], duration_ns / count, seed) != NULL)
            return EXIT_FAILURE;
    return EXIT_SUCCESS;
}
