/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs simulated programs: weir-sim NAME [--seeds FROM-TO] [--seed N --trace]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weir/error.h>

#include "sim/programs/program.h"

static sim_program *programs;

void sim_program_add(sim_program *program)
{
    program->next = programs;
    programs = program;
}

static void print_line(const char *line, void *user_data)
{
    (void)user_data;
    puts(line);
}

int main(int argc, char **argv)
{
    sim_program *program = programs;
    uint64_t from = 1, to = 100, count = 0;
    bool trace = false;
    struct timespec begin, end;
    double seconds;

    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--trace") == 0)
            trace = true;
        else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
            from = to = strtoull(argv[++i], NULL, 0);
        else if (strcmp(argv[i], "--seeds") == 0 && i + 1 < argc)
            (void)sscanf(argv[++i], "%llu-%llu", (unsigned long long *)&from,
                         (unsigned long long *)&to);
    }
    while (program != NULL && (argc < 2 || strcmp(program->name, argv[1]) != 0))
        program = program->next;
    if (program == NULL)
        return 2;
    (void)clock_gettime(CLOCK_MONOTONIC, &begin);
    for (uint64_t seed = from; seed <= to; seed++, count++) {
        weir_sim_options options = *WEIR_SIM_OPTIONS(.seed = seed);
        weir_sim_result result = {0};
        int err;

        program->configure(seed, &options);
        options.on_trace = trace ? print_line : NULL;
        err = weir_sim_run(&options, program->run, NULL, &result);
        if (err < 0) {
            printf("%s: seed %llu: %s\n%s\n%s", program->name, (unsigned long long)seed,
                   weir_error_text(err), result.failure, result.trace);
            return 1;
        }
        weir_sim_result_free(&result);
    }
    (void)clock_gettime(CLOCK_MONOTONIC, &end);
    seconds = (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
    printf("%s: %llu seeds, %.0f per second\n", program->name, (unsigned long long)count,
           (double)count / seconds);
    return 0;
}
