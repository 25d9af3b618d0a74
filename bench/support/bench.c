/* SPDX-License-Identifier: Apache-2.0 */
#include "support/bench.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__clang__)
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

enum { WORDS_MAX = 16 };

struct bench_round {
    const char *words[WORDS_MAX]; /* the case's name, then the settings */
    bool asked[WORDS_MAX];
    size_t word_count;
    bool answered;
};

void bench_require(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "%s: %s failed\n", program_invocation_short_name, what);
    exit(1);
}

static void refuse(const char *what, const char *word)
{
    fprintf(stderr, "%s: %s '%s'\n", program_invocation_short_name, what, word);
    exit(2);
}

static int64_t number_in(const char *word, const char *digits)
{
    char *end;
    int64_t number = strtoll(digits, &end, 10);

    if (end == digits || *end != '\0')
        refuse("not a number:", word);
    return number;
}

/* The word that gives a setting, or NULL; its value comes after the '='. */
static const char *setting_word(bench_round *round, const char *name, const char **ret_value)
{
    size_t length = strlen(name);

    for (size_t i = 1; i < round->word_count; i++) {
        const char *word = round->words[i];

        if (strncmp(word, name, length) == 0 && word[length] == '=') {
            round->asked[i] = true;
            *ret_value = word + length + 1;
            return word;
        }
    }
    return NULL;
}

int64_t bench_setting(bench_round *round, const char *name, int64_t otherwise)
{
    const char *value, *word = setting_word(round, name, &value);

    return word != NULL ? number_in(word, value) : otherwise;
}

int bench_choice(bench_round *round, const char *setting, const char *const *names)
{
    const char *value, *word = setting_word(round, setting, &value);

    if (word == NULL)
        return 0;
    for (int i = 0; names[i] != NULL; i++)
        if (strcmp(names[i], value) == 0)
            return i;
    refuse("no such choice:", word);
    return 0;
}

void bench_report(bench_round *round, const char *name, double cost)
{
    printf("%s\"%s\": %.3f", round->answered ? ", " : "", name, cost);
    round->answered = true;
}

/* The one case that every program has: what built it. */
static void about(bench_round *round)
{
    (void)round;
    printf("\"compiler\": \"%s\"", COMPILER);
}

static const bench_case *find_case(const bench_case *cases, const char *name)
{
    static const bench_case about_case = {"about", about};

    for (; cases->name != NULL; cases++)
        if (strcmp(cases->name, name) == 0)
            return cases;
    if (strcmp(name, about_case.name) != 0)
        refuse("no such case:", name);
    return &about_case;
}

static void run_round(bench_round *round, const bench_case *cases)
{
    putchar('{');
    find_case(cases, round->words[0])->run(round);
    for (size_t i = 1; i < round->word_count; i++)
        if (!round->asked[i])
            refuse("no such setting:", round->words[i]);
    puts("}");
    fflush(stdout);
}

static void add_word(bench_round *round, const char *word)
{
    bench_require(round->word_count < WORDS_MAX, "so long a line");
    round->words[round->word_count++] = word;
}

static void run_line(char *line, const bench_case *cases)
{
    bench_round round = {0};
    char *rest;

    for (char *word = strtok_r(line, " \n", &rest); word; word = strtok_r(NULL, " \n", &rest))
        add_word(&round, word);
    if (round.word_count > 0)
        run_round(&round, cases);
}

int bench_main(int argc, char **argv, const bench_case *cases)
{
    bench_round round = {0};
    char line[256];

    for (int i = 1; i < argc; i++)
        add_word(&round, argv[i]);
    if (round.word_count > 0)
        run_round(&round, cases);
    else
        while (fgets(line, sizeof(line), stdin) != NULL)
            run_line(line, cases);
    return 0;
}

void *bench_alloc(size_t count, size_t size)
{
    size_t bytes = (count * size + BENCH_LINE - 1) / BENCH_LINE * BENCH_LINE;
    void *memory = aligned_alloc(BENCH_LINE, bytes);

    bench_require(memory != NULL, "allocating");
    memset(memory, 0, bytes);
    return memory;
}

void bench_free(void *memory)
{
    free(memory);
}

/* What the process may use, as of the first call: before a thread of its own is pinned. */
static const cpu_set_t *allowed_cpus(void)
{
    static cpu_set_t allowed;

    if (CPU_COUNT(&allowed) == 0)
        bench_require(sched_getaffinity(0, sizeof(allowed), &allowed) == 0, "sched_getaffinity");
    return &allowed;
}

int bench_cpu(int64_t n)
{
    const cpu_set_t *allowed = allowed_cpus();
    int cpu = -1;

    if (n < 0)
        return -1;
    n %= CPU_COUNT(allowed);
    do {
        cpu++;
        if (CPU_ISSET(cpu, allowed))
            n--;
    } while (n >= 0);
    return cpu;
}

void bench_pin(int cpu)
{
    const cpu_set_t *where = allowed_cpus();
    cpu_set_t only;

    if (cpu >= 0) {
        CPU_ZERO(&only);
        CPU_SET(cpu, &only);
        where = &only;
    }
    bench_require(sched_setaffinity(0, sizeof(*where), where) == 0, "pinning a thread");
}

void bench_thread_start(pthread_t *thread, int cpu, void *(*body)(void *), void *arg)
{
    pthread_attr_t attributes;
    cpu_set_t only;

    pthread_attr_init(&attributes);
    if (cpu >= 0) {
        CPU_ZERO(&only);
        CPU_SET(cpu, &only);
        bench_require(pthread_attr_setaffinity_np(&attributes, sizeof(only), &only) == 0,
                      "pinning a thread");
    }
    bench_require(pthread_create(thread, &attributes, body, arg) == 0, "starting a thread");
    pthread_attr_destroy(&attributes);
}

void bench_thread_join(pthread_t thread)
{
    bench_require(pthread_join(thread, NULL) == 0, "joining a thread");
}
