/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report of a failed seed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/error.h>

#include "sim/programs/runner.h"

#define FAULTS_SHOWN 40
#define ATTEMPTS 400
#define ATTEMPT_NS (INT64_C(5) * 1000000000) /* real time of an attempt */

static void on_attempt(unsigned attempt, size_t faults_left, void *user_data)
{
    (void)user_data;
    if (isatty(STDERR_FILENO))
        (void)fprintf(stderr, "\rreducing: attempt %u, %zu faults left\033[K", attempt,
                      faults_left);
}

static void print_faults(const weir_sim_result *result)
{
    for (size_t i = 0; i < result->fault_count && i < FAULTS_SHOWN; i++)
        printf("  %13.6f ms  %s %llu\n", (double)result->faults[i].time_ns / 1e6,
               weir_sim_fault_name(result->faults[i].kind),
               (unsigned long long)result->faults[i].number);
    if (result->fault_count > FAULTS_SHOWN)
        printf("  ... and %zu more\n", result->fault_count - FAULTS_SHOWN);
}

static void print_command(const char *title, const char *prefix, const sim_program *program,
                          uint64_t seed, const sim_command *command, const weir_sim_result *reduced,
                          const char *suffix)
{
    printf("%s: %s%s %s --seed %llu", title, prefix, command->executable, program->name,
           (unsigned long long)seed);
    if (command->backend != SIM_BOTH)
        printf(" --backend %s", command->backend == SIM_URING ? "uring" : "readiness");
    if (reduced != NULL) {
        printf(" --only ");
        for (size_t i = 0; i < reduced->fault_count; i++)
            printf("%s%s:%llu", i > 0 ? "," : "", weir_sim_fault_name(reduced->faults[i].kind),
                   (unsigned long long)reduced->faults[i].number);
        if (reduced->fault_count == 0)
            printf("none");
    }
    printf("%s\n", suffix);
}

/* True if fewer faults were found that fail. */
static bool reduce(const sim_program *program, const weir_sim_options *options,
                   const weir_sim_result *failed, weir_sim_result *ret_reduced)
{
    int err =
        weir_sim_reduce(options, program->run, NULL, failed, ATTEMPTS, on_attempt, ret_reduced);

    if (isatty(STDERR_FILENO))
        (void)fprintf(stderr, "\r\033[K");
    if (err < 0) {
        printf("the faults cannot be reduced: %s\n", weir_error_text(err));
        return false;
    }
    printf("%zu of its %zu faults make it fail:\n", ret_reduced->fault_count, failed->fault_count);
    print_faults(ret_reduced);
    printf("then: %s\n", ret_reduced->failure != NULL ? ret_reduced->failure : "");
    return true;
}

void sim_report_failure(const sim_program *program, uint64_t seed, const char *text,
                        const sim_command *command)
{
    weir_sim_options options = sim_options_for(program, seed, command);
    weir_sim_result failed = {0}, reduced = {0};
    bool has_reduced = false;
    int err;

    printf("%s: seed %llu FAILED: %s\n", program->name, (unsigned long long)seed, text);
    if (command->quiet)
        return;
    options.isolated = true;
    err = weir_sim_run(&options, program->run, NULL, &failed);
    if (err == WEIR_ESIM) {
        printf("the last events:\n%s", failed.trace != NULL ? failed.trace : "");
        if (failed.failure != NULL && strcmp(failed.failure, text) != 0)
            printf("alone it fails otherwise: %s\n", failed.failure);
        options.max_real_ns = ATTEMPT_NS;
        if (failed.failure == NULL || strncmp(failed.failure, "no end", 6) != 0)
            has_reduced = reduce(program, &options, &failed, &reduced);
    } else {
        printf("alone it does not fail: %s\n", err < 0 ? weir_error_text(err) : "it passes");
    }
    print_command("reproduce", "", program, seed, command, has_reduced ? &reduced : NULL,
                  " --trace");
    print_command("debug", "gdb --args ", program, seed, command, has_reduced ? &reduced : NULL,
                  "");
    (void)fflush(stdout);
    weir_sim_result_free(&failed);
    weir_sim_result_free(&reduced);
}
