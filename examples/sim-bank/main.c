/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests a bank against thousands of bad networks: runs it and its clients in simulated worlds, in
 * which processes die, hosts stop and connections break, and checks that no money is lost.
 *     sim-bank [--seeds 1-1000] [--seed N] [--trace] [--bug early-answer|forgotten-numbers]
 *
 * Everything is in this process, without a socket: the options of other servers, such as --port, do
 * not apply. --bug gives the bank a mistake, which the simulation finds.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weir/sim.h>

#include "bank.h"
#include "support/settings.h"

#define CLIENTS 3
#define TRANSFERS 12 /* of each client */

/* The state of a world for its checks. It exists until the world has ended. */
struct world {
    enum bank_bug bug;
    struct bank *bank;                        /* that runs now, or NULL */
    unsigned written[CLIENTS][TRANSFERS + 1]; /* records on the disk, by number */
    int answers[CLIENTS][TRANSFERS + 1];      /* that the client has, or -1 */
};

struct client {
    struct world *world;
    uint32_t number;
};

/* ---- the disk ---- */

/* doc:begin disk */
static int append(const struct bank_record *record, void *user_data)
{
    struct world *world = user_data;
    const struct bank_transfer *transfer = &record->transfer;
    int err = weir_sim_disk_append(record, sizeof(*record));

    if (err == 0 && ++world->written[transfer->client][transfer->number] > 1)
        weir_sim_fail(weir_sim_current(), "transfer %u of client %u is on the disk twice",
                      transfer->number, transfer->client);
    return err;
}

static bool read_record(size_t position, struct bank_record *ret_record, void *user_data)
{
    size_t size = sizeof(*ret_record);

    (void)user_data;
    return weir_sim_disk_read(position * size, ret_record, size) == size;
}
/* doc:end */

/* ---- checks ---- */

/* doc:begin check */
/* After each event: whatever happens, the accounts of a running bank have the same sum. */
static void check_money(weir_sim *sim, bool at_end, void *arg)
{
    const struct world *world = arg;
    int64_t sum = 0;

    if (at_end || world->bank == NULL)
        return;
    for (size_t i = 0; i < BANK_ACCOUNTS; i++) {
        sum += world->bank->balances[i];
        if (world->bank->balances[i] < 0)
            weir_sim_fail(sim, "account %zu has a balance of %" PRId64, i,
                          world->bank->balances[i]);
    }
    if (sum != BANK_ACCOUNTS * BANK_OPENING)
        weir_sim_fail(sim, "the accounts have %" PRId64 " in all, not %d", sum,
                      BANK_ACCOUNTS * BANK_OPENING);
}

/* While no bank runs: each answer that a client has is on the disk. */
static void audit(struct world *world)
{
    for (uint32_t client = 0; client < CLIENTS; client++)
        for (uint32_t number = 1; number <= TRANSFERS; number++)
            if (world->answers[client][number] >= 0 && world->written[client][number] != 1)
                weir_sim_fail(weir_sim_current(),
                              "client %u has an answer to transfer %u, which is not on the disk",
                              client, number);
}
/* doc:end */

/* ---- processes ---- */

/* doc:begin processes */
/* Each process of the bank, one after another: audits what the one before has left, and serves. */
static int bank_main(void *arg)
{
    struct world *world = arg;
    const struct bank_storage storage = {append, read_record, world};
    struct bank bank;
    int err;

    audit(world);
    do {
        bank_open(&bank, &storage, world->bug);
        world->bank = &bank;
        err = bank_serve(&bank, "0.0.0.0:7000");
        if (world->bank == &bank)
            world->bank = NULL;
    } while (err < 0 && !weir_sim_is_dying()); /* no memory, for example: starts again */
    return 0;
}

static int client_main(void *arg)
{
    const struct client *self = arg;
    struct bank_client client;
    weir_sim *sim = weir_sim_current();

    while (bank_client_open(&client, "bank:7000") < 0)
        weir_sim_sleep(weir_ms(1));
    for (uint32_t number = 1; number <= TRANSFERS; number++) {
        struct bank_transfer transfer = {
            .client = self->number,
            .number = number,
            .from = (uint32_t)weir_sim_random(sim, BANK_ACCOUNTS),
            .to = (uint32_t)weir_sim_random(sim, BANK_ACCOUNTS),
            .amount = 1 + (uint32_t)weir_sim_random(sim, BANK_OPENING),
        };
        enum bank_answer answer = bank_client_transfer(&client, &transfer);

        weir_sim_note(sim, "client %u, transfer %u: %s", self->number, number,
                      answer == BANK_DONE ? "done" : "refused");
        self->world->answers[self->number][number] = (int)answer;
    }
    bank_client_close(&client);
    return 0;
}
/* doc:end */

/* ---- the world ---- */

/* doc:begin world */
static int start_clients(weir_sim *sim, struct client *clients, weir_sim_process **ret_processes)
{
    int err = 0;

    for (unsigned i = 0; i < CLIENTS && err == 0; i++) {
        weir_sim_host *host;
        char name[16], address[16];

        (void)snprintf(name, sizeof(name), "client-%u", i);
        (void)snprintf(address, sizeof(address), "10.0.1.%u", i + 1);
        err = weir_sim_host_create(sim, name, address, &host);
        if (err == 0)
            err = weir_sim_start(host, name, client_main, &clients[i], &ret_processes[i]);
    }
    return err;
}

/* The program of a world: a bank that is started again when it dies, and its clients. */
static int run_world(weir_sim *sim, void *arg)
{
    struct world *world = arg;
    struct client clients[CLIENTS];
    weir_sim_process *processes[CLIENTS], *bank;
    weir_sim_host *host;
    int err;

    *world = (struct world){.bug = world->bug};
    memset(world->answers, 0xff, sizeof(world->answers)); /* -1 */
    for (uint32_t i = 0; i < CLIENTS; i++)
        clients[i] = (struct client){world, i};
    err = weir_sim_check(sim, check_money, world);
    if (err == 0)
        err = weir_sim_host_create(sim, "bank", "10.0.0.1", &host);
    if (err == 0)
        err = weir_sim_start(host, "bank", bank_main, world, &bank);
    if (err < 0)
        return err;
    weir_sim_restart(bank, weir_ms(20));
    err = start_clients(sim, clients, processes);
    for (unsigned i = 0; i < CLIENTS && err == 0; i++)
        err = weir_sim_join(processes[i]);

    weir_sim_calm(sim, true); /* no more faults: the end is in peace */
    while (!weir_sim_is_alive(bank))
        weir_sim_sleep(weir_ms(1));
    weir_sim_signal(bank, SIGTERM);
    if (err == 0)
        err = weir_sim_join(bank);
    audit(world);
    return err;
}
/* doc:end */

/* doc:begin options */
/* Half of the worlds have each kind of fault, so that some are calm and others are rough. */
static weir_sim_options world_options(uint64_t seed)
{
    weir_sim_options options = *WEIR_SIM_OPTIONS(.seed = seed, .trace_length = 40);
    double *rates = options.rates;

    rates[WEIR_SIM_FAULT_DEATH] = (seed & 1) != 0 ? 10 : 2; /* per second */
    rates[WEIR_SIM_FAULT_RESET] = (seed & 2) != 0 ? 10 : 0;
    rates[WEIR_SIM_FAULT_PARTITION] = (seed & 4) != 0 ? 5 : 0;
    rates[WEIR_SIM_FAULT_HOST_STOP] = (seed & 8) != 0 ? 5 : 0;
    rates[WEIR_SIM_FAULT_SHORT_READ] = (seed & 16) != 0 ? 0.2 : 0;
    rates[WEIR_SIM_FAULT_SHORT_WRITE] = (seed & 32) != 0 ? 0.2 : 0;
    rates[WEIR_SIM_FAULT_SLOW] = (seed & 64) != 0 ? 0.01 : 0;
    rates[WEIR_SIM_FAULT_ALLOC] = (seed & 128) != 0 ? 0.002 : 0;
    options.max_outage_ns = weir_ms(500);
    return options;
}
/* doc:end */

/* ---- the command ---- */

static void print_line(const char *line, void *user_data)
{
    (void)user_data;
    puts(line);
}

static void print_failure(const weir_sim_result *failed)
{
    printf("%s\n\nThe last events:\n%s\nThe faults:\n", failed->failure, failed->trace);
    for (size_t i = 0; i < failed->fault_count; i++)
        printf("%14.6f ms  %s\n", (double)failed->faults[i].time_ns / 1e6,
               weir_sim_fault_name(failed->faults[i].kind));
    if (failed->fault_count == 0)
        printf("    none\n");
}

/* doc:begin reduce */
/* Most faults of a run have nothing to do with its failure: shows a run with as few as possible. */
static void explain(weir_sim_options *options, struct world *world, const weir_sim_result *failed)
{
    weir_sim_result reduced = {0};

    printf("seed %" PRIu64 " fails after %.6f s and %zu faults: ", options->seed,
           (double)failed->time_ns / 1e9, failed->fault_count);
    options->on_trace = NULL;
    if (weir_sim_reduce(options, run_world, world, failed, 0, NULL, &reduced) < 0) {
        print_failure(failed);
        return;
    }
    printf("%s\n\nReduced to %zu of %zu faults: ", failed->failure, reduced.fault_count,
           failed->fault_count);
    print_failure(&reduced);
    weir_sim_result_free(&reduced);
}
/* doc:end */

/* The trace has the messages of the log. */
static void ignore_log(void *user_data, enum weir_log_level level, const char *subsystem,
                       const char *object, const char *message)
{
    (void)user_data;
    (void)level;
    (void)subsystem;
    (void)object;
    (void)message;
}

struct command {
    uint64_t first, last;
    bool trace;
    enum bank_bug bug;
};

/* doc:begin run */
/* False if a world has failed. */
static bool run_seed(const struct command *command, uint64_t seed)
{
    weir_sim_options options = world_options(seed);
    struct world world = {.bug = command->bug};
    weir_sim_result result = {0};
    int err;

    options.isolated = !command->trace; /* a failure does not end this process, nor does a crash */
    options.on_trace = command->trace ? print_line : NULL;
    err = weir_sim_run(&options, run_world, &world, &result);
    if (err == WEIR_ESIM)
        explain(&options, &world, &result);
    else if (err < 0)
        fprintf(stderr, "sim-bank: %s\n", weir_error_text(err));
    weir_sim_result_free(&result);
    return err == 0;
}
/* doc:end */

static void read_seeds(const char *name, const char *text, uint64_t *ret_first, uint64_t *ret_last)
{
    char *end;

    if (text == NULL)
        return;
    *ret_first = *ret_last = strtoull(text, &end, 10);
    if (*end == '-')
        *ret_last = strtoull(end + 1, &end, 10);
    if (end == text || *end != '\0' || *ret_last < *ret_first)
        settings_refuse("sim-bank", name, text);
}

static struct command read_command(int argc, char **argv)
{
    static const char *const bugs[] = {"none", "early-answer", "forgotten-numbers", NULL};
    struct command command = {.first = 1, .last = 1000};

    read_seeds("--seeds", settings_take(&argc, argv, "--seeds"), &command.first, &command.last);
    read_seeds("--seed", settings_take(&argc, argv, "--seed"), &command.first, &command.last);
    command.trace = settings_take_switch(&argc, argv, "--trace");
    command.bug = (enum bank_bug)settings_take_word(&argc, argv, "--bug", bugs, (int)BANK_NO_BUG);
    if (argc > 1) {
        bool help = strcmp(argv[1], "--help") == 0;

        fprintf(help ? stdout : stderr,
                "usage: sim-bank [--seeds FROM-TO] [--seed N] [--trace]\n"
                "                [--bug none|early-answer|forgotten-numbers]\n");
        exit(help ? 0 : 2);
    }
    return command;
}

int main(int argc, char **argv)
{
    struct command command = read_command(argc, argv);
    time_t shown = time(NULL);

    weir_log_set(ignore_log, NULL);
    for (uint64_t seed = command.first; seed <= command.last; seed++) {
        if (!run_seed(&command, seed))
            return EXIT_FAILURE;
        if (time(NULL) != shown) {
            shown = time(NULL);
            fprintf(stderr, "%" PRIu64 " worlds\n", seed - command.first + 1);
        }
    }
    printf("%" PRIu64 " worlds: no money was lost\n", command.last - command.first + 1);
    return EXIT_SUCCESS;
}
