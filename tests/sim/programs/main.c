/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command line of the runner: see usage.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/error.h>
#include <weir/log.h>

#include "loop/seams.h"
#include "sim/programs/parts.h"
#include "sim/programs/runner.h"

#define TIMEOUT_S 30

static const char usage[] =
    "usage: sim NAME|all [--seeds FROM-TO] [--jobs N] [--keep-going] [--hash | --hashes]\n"
    "           [--backend readiness|uring|both]\n"
    "       sim NAME --seed N [--trace] [--only KIND:NUMBER,...|none] [--reduce]\n"
    "           [--after FROM-TO]\n"
    "       sim --list\n"
    "Runs simulated programs, one world per seed. --seed runs in this process, as for gdb.\n"
    "  --backend     of the loops; both: half of the seeds over io_uring, the default\n"
    "  --after       runs these seeds before, in the same process\n"
    "  --repeat      runs each seed three times and compares the hashes of the traces\n"
    "  --timeout S   real time that a world may take (30)\n"
    "  --quiet       reports failures without trace and reduction\n"
    "  --regressions FILE   runs the seeds of a file with lines `PROGRAM SEED[:uring]  text`\n";

static sim_program *programs;

/* Sorted by name: the order of constructors is that of the linker. */
void sim_program_add(sim_program *program)
{
    sim_program **at = &programs;

    while (*at != NULL && strcmp((*at)->name, program->name) < 0)
        at = &(*at)->next;
    program->next = *at;
    *at = program;
}

static const sim_program *find_program(const char *name)
{
    const sim_program *program = programs;

    while (program != NULL && strcmp(program->name, name) != 0)
        program = program->next;
    return program;
}

static void list_programs(void)
{
    for (const sim_program *program = programs; program != NULL; program = program->next)
        printf("%-16s %s\n", program->name, program->text);
}

bool sim_has_uring(void)
{
    return weir__seams_get()->uring != NULL;
}

/* Whether a seed runs over io_uring if both backends are tested. Programs use the low bits. */
static bool is_chosen(uint64_t seed)
{
    return (seed * UINT64_C(0x9e3779b97f4a7c15) >> 63) != 0;
}

weir_sim_options sim_options_for(const sim_program *program, uint64_t seed,
                                 const sim_command *command)
{
    weir_sim_options options = *WEIR_SIM_OPTIONS(.seed = seed);

    sim_watch_reset();
    program->configure(seed, &options);
    options.max_real_ns = (int64_t)command->timeout * 1000000000;
    options.uring = sim_has_uring() && command->backend != SIM_READINESS &&
                    (command->backend == SIM_URING || is_chosen(seed));
    options.only_faults = command->only;
    options.only_fault_count = command->only_count;
    return options;
}

/* ---- the command line ---- */

static _Noreturn void reject(const char *what, const char *value)
{
    (void)fprintf(stderr, "sim: %s: %s\n%s", what, value, usage);
    exit(2);
}

static uint64_t read_number(const char *text)
{
    char *end;
    uint64_t number = strtoull(text, &end, 0);

    if (*text == '\0' || *end != '\0')
        reject("invalid number", text);
    return number;
}

static void read_seeds(const char *text, uint64_t *ret_from, uint64_t *ret_to)
{
    const char *dash = strchr(text, '-');

    *ret_from = dash != NULL ? strtoull(text, NULL, 0) : 1;
    *ret_to = read_number(dash != NULL ? dash + 1 : text);
    if (*ret_to < *ret_from)
        reject("invalid seeds, expected FROM-TO", text);
}

static void add_fault(sim_command *command, const char *text)
{
    const char *colon = strchr(text, ':');
    unsigned kind = 0;

    while (colon != NULL && kind < WEIR_SIM_FAULT_COUNT &&
           (strncmp(weir_sim_fault_name(kind), text, (size_t)(colon - text)) != 0 ||
            weir_sim_fault_name(kind)[colon - text] != '\0'))
        kind++;
    if (colon == NULL || kind == WEIR_SIM_FAULT_COUNT)
        reject("invalid fault, expected KIND:NUMBER", text);
    command->only[command->only_count++] = (weir_sim_fault_event){
        .kind = (enum weir_sim_fault)kind,
        .number = read_number(colon + 1),
    };
}

static void read_faults(const char *text, sim_command *command)
{
    char *copy = strdup(text), *rest = copy, *item;

    command->only = calloc(strlen(text) + 1, sizeof(*command->only));
    while (copy != NULL && strcmp(text, "none") != 0 && (item = strsep(&rest, ",")) != NULL)
        add_fault(command, item);
    free(copy);
}

static enum sim_backend read_backend(const char *text)
{
    static const char *const values[] = {"both", "readiness", "uring"};
    unsigned i = 0;

    while (i < sizeof(values) / sizeof(values[0]) && strcmp(text, values[i]) != 0)
        i++;
    if (i == sizeof(values) / sizeof(values[0]))
        reject("invalid backend, expected readiness, uring or both", text);
    if (i == SIM_URING && !sim_has_uring())
        reject("there is only readiness, weir was built without liburing", text);
    return (enum sim_backend)i;
}

static bool read_switch(const char *option, sim_command *command)
{
    const struct {
        const char *name;
        bool *value;
    } switches[] = {
        {"--trace", &command->trace},   {"--hash", &command->hash},
        {"--hashes", &command->hashes}, {"--keep-going", &command->keep_going},
        {"--repeat", &command->repeat}, {"--reduce", &command->reduce},
        {"--quiet", &command->quiet},
    };

    for (size_t i = 0; i < sizeof(switches) / sizeof(switches[0]); i++)
        if (strcmp(option, switches[i].name) == 0) {
            *switches[i].value = true;
            return true;
        }
    return false;
}

static void read_option(const char *option, const char *value, sim_command *command)
{
    if (value == NULL) {
        reject("unknown option, or one without its value", option);
    } else if (strcmp(option, "--seeds") == 0) {
        read_seeds(value, &command->from, &command->to);
    } else if (strcmp(option, "--after") == 0) {
        read_seeds(value, &command->after_from, &command->after_to);
    } else if (strcmp(option, "--seed") == 0) {
        command->from = command->to = read_number(value);
        command->single = true;
    } else if (strcmp(option, "--jobs") == 0) {
        command->jobs = (unsigned)read_number(value);
    } else if (strcmp(option, "--timeout") == 0) {
        command->timeout = (unsigned)read_number(value);
    } else if (strcmp(option, "--backend") == 0) {
        command->backend = read_backend(value);
    } else if (strcmp(option, "--only") == 0) {
        read_faults(value, command);
    } else {
        reject("unknown option or value", option);
    }
}

/* ---- one seed, in this process ---- */

static void print_line(const char *line, void *user_data)
{
    (void)user_data;
    puts(line);
}

/* Runs other worlds before: a difference in the trace shows what they leave behind. */
static void run_before(const sim_program *program, const sim_command *command)
{
    for (uint64_t seed = command->after_from; seed <= command->after_to && seed > 0; seed++) {
        weir_sim_options options = sim_options_for(program, seed, command);
        weir_sim_result result = {0};

        if (weir_sim_run(&options, program->run, NULL, &result) < 0)
            reject("a seed of --after fails", result.failure != NULL ? result.failure : "");
        weir_sim_result_free(&result);
    }
}

static bool run_single(const sim_program *program, const sim_command *command)
{
    weir_sim_options options = sim_options_for(program, command->from, command);
    weir_sim_result result = {0};
    int err;

    run_before(program, command);
    options.on_trace = command->trace ? print_line : NULL;
    err = weir_sim_run(&options, program->run, NULL, &result);
    if (err < 0 && !command->trace)
        printf("%s", result.trace != NULL ? result.trace : "");
    printf("%s: seed %llu over %s %s%s; hash %016llx, %llu events, %llu switches, %zu faults, %.3f "
           "virtual s\n",
           program->name, (unsigned long long)command->from,
           options.uring ? "io_uring" : "readiness", err < 0 ? "FAILED: " : "passed",
           result.failure != NULL ? result.failure
           : err < 0              ? weir_error_text(err)
                                  : "",
           (unsigned long long)result.hash, (unsigned long long)result.events,
           (unsigned long long)result.steps, result.fault_count, (double)result.time_ns / 1e9);
    weir_sim_result_free(&result);
    return err == 0;
}

/* ---- many seeds ---- */

static void add(sim_summary *total, const sim_summary *part)
{
    total->seeds += part->seeds;
    total->failures += part->failures;
    total->uring += part->uring;
    total->events += part->events;
    total->virtual_ns += part->virtual_ns;
    total->seconds += part->seconds;
}

static void print_summary(const char *name, const sim_summary *summary, const sim_command *command)
{
    printf("%-16s %llu seeds, %llu over io_uring, %llu failed; %.0f per second, "
           "%.0f virtual s per second, %llu events",
           name, (unsigned long long)summary->seeds, (unsigned long long)summary->uring,
           (unsigned long long)summary->failures, (double)summary->seeds / summary->seconds,
           (double)summary->virtual_ns / 1e9 / summary->seconds,
           (unsigned long long)summary->events);
    if (summary->hash != 0 && command->hash)
        printf(", hash %016llx", (unsigned long long)summary->hash);
    printf("\n");
    (void)fflush(stdout);
}

static bool run_program(const sim_program *program, const sim_command *command, sim_summary *total)
{
    sim_summary summary = {0};
    bool passed = sim_run_seeds(program, command, &summary);

    print_summary(program->name, &summary, command);
    add(total, &summary);
    return passed;
}

static bool run_all(const sim_command *command)
{
    sim_summary total = {0};
    bool passed = true;

    for (const sim_program *program = programs; program != NULL; program = program->next)
        passed = run_program(program, command, &total) && passed;
    print_summary("all", &total, command);
    return passed;
}

static bool run_regressions(const char *path, const sim_command *command)
{
    FILE *file = fopen(path, "r");
    char line[512], name[64], rest[8];
    sim_summary total = {0};
    bool passed = true;

    if (file == NULL)
        reject("cannot read", path);
    while (fgets(line, sizeof(line), file) != NULL) {
        sim_command one = *command;
        const sim_program *program;

        rest[0] = '\0';
        if (line[0] == '#' ||
            sscanf(line, "%63s %llu%7s", name, (unsigned long long *)&one.from, rest) < 2)
            continue;
        one.to = one.from;
        one.backend = strcmp(rest, ":uring") == 0 ? SIM_URING : SIM_READINESS;
        program = find_program(name);
        if (program == NULL)
            reject("unknown program in the list of regressions", name);
        passed = run_program(program, &one, &total) && passed;
    }
    (void)fclose(file);
    return passed;
}

/* The log is part of the trace. */
static void on_log(void *user_data, enum weir_log_level level, const char *subsystem,
                   const char *object, const char *message)
{
    (void)user_data;
    (void)level;
    (void)subsystem;
    (void)object;
    (void)message;
}

int main(int argc, char **argv)
{
    sim_command command = {
        .executable = argv[0], .from = 1, .to = 100, .timeout = TIMEOUT_S, .jobs = 0};
    const char *name = argc > 1 ? argv[1] : "";
    const sim_program *program = find_program(name);
    sim_summary total = {0};

    weir_log_set(on_log, NULL);
    if (strcmp(name, "--list") == 0) {
        list_programs();
        return 0;
    }
    for (int i = strcmp(name, "--regressions") == 0 ? 3 : 2; i < argc; i++)
        if (!read_switch(argv[i], &command)) {
            read_option(argv[i], i + 1 < argc ? argv[i + 1] : NULL, &command);
            i++;
        }
    if (!sim_has_uring())
        printf("weir was built without liburing: all seeds over readiness\n");
    command.hash = command.hash || command.hashes;
    if (strcmp(name, "--regressions") == 0 && argc > 2)
        return run_regressions(argv[2], &command) ? 0 : 1;
    if (strcmp(name, "all") == 0 && !command.single)
        return run_all(&command) ? 0 : 1;
    if (program == NULL)
        reject("unknown program", name);
    if (command.single && !command.reduce)
        return run_single(program, &command) ? 0 : 1;
    return run_program(program, &command, &total) ? 0 : 1;
}
