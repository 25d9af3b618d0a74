/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trace: all events go into the hash, the last ones are kept and become text when they are
 * needed.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/world.h"

#define LINE_SIZE 256

static void mix(uint64_t value)
{
    uint64_t hash = weir__sim->hash ^ value;

    hash = (hash ^ (hash >> 32)) * UINT64_C(0xd6e8feb86659fd93);
    weir__sim->hash = hash ^ (hash >> 32);
}

static void mix_text(const char *text)
{
    uint64_t word = 0;
    unsigned count = 0;

    for (; *text != '\0'; text++) {
        word = word << 8 | (uint8_t)*text;
        if (++count % 8 == 0)
            mix(word);
    }
    mix(word + count);
}

/* "host/process name", or what there is of it; a process with the name of its host only once. */
static void describe(const weir_sim_process *process, const char *name, char *text, size_t size)
{
    bool has_host =
        process != NULL && process->host != NULL && strcmp(process->host->name, process->name) != 0;

    (void)snprintf(text, size, "%s%s%s%s%s", has_host ? process->host->name : "",
                   has_host ? "/" : "", process != NULL ? process->name : "",
                   process != NULL && name[0] != '\0' ? " " : "", name);
}

static void format(const weir__sim_trace_entry *entry, char *line)
{
    char thread[64], subject[160];
    int length;

    describe(entry->process, entry->thread, thread, sizeof(thread));
    length = snprintf(line, LINE_SIZE, "%13.6f ms  %-26s %s", (double)entry->time_ns / 1e6, thread,
                      entry->kind);
    if (length < 0 || length >= LINE_SIZE)
        return;
    line += length;
    if (entry->is_named) {
        describe(entry->subject, entry->text, subject, sizeof(subject));
        (void)snprintf(line, LINE_SIZE - (size_t)length, " %s %llu", subject,
                       (unsigned long long)entry->b);
    } else if (entry->text[0] != '\0') {
        (void)snprintf(line, LINE_SIZE - (size_t)length, ": %s", entry->text);
    } else {
        (void)snprintf(line, LINE_SIZE - (size_t)length, " %llu %llu", (unsigned long long)entry->a,
                       (unsigned long long)entry->b);
    }
}

static void set_thread(weir__sim_trace_entry *entry)
{
    const weir__sim_fiber *fiber = weir__sim->current;

    entry->process = fiber != NULL ? fiber->process : NULL;
    entry->thread[0] = '\0';
    if (fiber != NULL)
        (void)snprintf(entry->thread, sizeof(entry->thread), "%s", fiber->name);
}

/* Names are not part of the hash: the numbers are. */
static void add(const weir__sim_trace_entry *event, const char *text)
{
    weir_sim *sim = weir__sim;
    weir__sim_trace_entry *entry = &sim->trace[sim->trace_next];
    char line[LINE_SIZE];

    sim->event_total++;
    if (++sim->trace_next == sim->options.trace_length)
        sim->trace_next = 0;
    *entry = *event;
    entry->time_ns = weir_sim_now(sim);
    set_thread(entry);
    if (text != NULL)
        (void)snprintf(entry->text, sizeof(entry->text), "%s", text);
    mix((uint64_t)sim->now_ns);
    mix((sim->current != NULL ? sim->current->number : 0) << 32 ^ entry->a);
    mix(entry->b);
    mix_text(entry->kind);
    if (text != NULL && !entry->is_named)
        mix_text(text);
    if (sim->options.on_trace != NULL) {
        format(entry, line);
        sim->options.on_trace(line, sim->options.user_data);
    }
}

void weir__sim_trace(const char *kind, uint64_t a, uint64_t b)
{
    add(&(weir__sim_trace_entry){.kind = kind, .a = a, .b = b}, NULL);
}

void weir__sim_trace_text(const char *kind, const char *text)
{
    add(&(weir__sim_trace_entry){.kind = kind}, text);
}

void weir__sim_trace_named(const char *kind, const weir_sim_process *process, const char *name,
                           uint64_t a, uint64_t b)
{
    add(
        &(weir__sim_trace_entry){
            .kind = kind, .is_named = true, .subject = process, .a = a, .b = b},
        name);
}

void weir_sim_note(weir_sim *sim, const char *text, ...)
{
    char line[WEIR__SIM_TRACE_TEXT_MAX];
    va_list arguments;

    (void)sim;
    va_start(arguments, text);
    (void)vsnprintf(line, sizeof(line), text, arguments);
    va_end(arguments);
    weir__sim_trace_text("note", line);
}

void weir__sim_trace_each(void (*fn)(const char *line, void *user_data), void *user_data)
{
    const weir_sim *sim = weir__sim;
    size_t count = sim->options.trace_length;
    char line[LINE_SIZE];

    for (size_t i = 0; i < count; i++) {
        const weir__sim_trace_entry *entry = &sim->trace[(sim->trace_next + i) % count];

        if (entry->kind == NULL)
            continue;
        format(entry, line);
        fn(line, user_data);
    }
}

static void append_line(const char *line, void *user_data)
{
    char **end = user_data;

    *end = stpcpy(*end, line);
    *(*end)++ = '\n';
    **end = '\0';
}

/* Returns the last events as text; NULL without memory. */
static char *format_all(void)
{
    char *text = malloc(weir__sim->options.trace_length * (size_t)LINE_SIZE + 1), *end = text;

    if (text == NULL)
        return NULL;
    *end = '\0';
    weir__sim_trace_each(append_line, &end);
    return text;
}

void weir_sim_fail(weir_sim *sim, const char *text, ...)
{
    va_list arguments;
    char *failure;

    if (sim->failure != NULL)
        return;
    va_start(arguments, text);
    if (vasprintf(&failure, text, arguments) < 0)
        failure = strdup("failed");
    va_end(arguments);
    weir__sim_trace_text("FAILED", failure);
    sim->failure = failure;
    sim->failure_trace = format_all();
}
