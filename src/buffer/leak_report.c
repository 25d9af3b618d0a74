/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of a report, and where it goes.
 *
 *     what it is, how old, who had it last          first, because many read no further
 *       where it was made                           then its way, in the order of time
 *       where it was touched, each time
 *
 * The frames of the leak records themselves are left out by their names, not by their number: which
 * of them are there is the compiler's choice.
 */
#include "buffer/leak_report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <weir/leak.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/symbol.h"
#include "base/thread.h"

#define TEXT_SIZE 16384
#define TEXT_CUT "  ...\n"
#define LINE_SIZE 256
#define OWN_PREFIX "weir__leak_"
#define OWN_FRAMES_MAX 8

struct text {
    size_t length;
    bool full;
    char bytes[TEXT_SIZE + sizeof(TEXT_CUT)];
};

static struct {
    weir__mutex lock; /* guards both, that they are read as one */
    weir_leak_listener_fn *fn;
    void *user_data;
} listener = {.lock = WEIR__MUTEX_INIT};

void weir_leak_set_listener(weir_leak_listener_fn *fn, void *user_data)
{
    weir__mutex_lock(&listener.lock);
    listener.fn = fn;
    listener.user_data = user_data;
    weir__mutex_unlock(&listener.lock);
}

/* What does not fit is left out, with all that comes after it. */
static void WEIR_PRINTF(2, 3) add(struct text *text, const char *format, ...)
{
    size_t room = TEXT_SIZE - text->length;
    va_list arguments;
    int length;

    if (text->full)
        return;
    va_start(arguments, format);
    length = vsnprintf(text->bytes + text->length, room, format, arguments);
    va_end(arguments);
    text->full = length < 0 || (size_t)length >= room;
    if (text->full)
        memcpy(text->bytes + text->length, TEXT_CUT, sizeof(TEXT_CUT));
    else
        text->length += (size_t)length;
}

/* How many frames at the beginning are of the leak records. */
static size_t own_frames(const weir__leak_trace *trace)
{
    weir__symbol symbol;
    size_t own = 0;

    for (size_t i = 0; i < trace->count && i < OWN_FRAMES_MAX; i++)
        if (weir__symbol_find(trace->frames[i], &symbol) &&
            strncmp(symbol.function, OWN_PREFIX, sizeof(OWN_PREFIX) - 1) == 0)
            own = i + 1;
    return own;
}

static void add_trace(struct text *text, const weir__leak_trace *trace)
{
    char line[LINE_SIZE];

    if (trace->count == 0)
        add(text, "    no backtrace on this system\n");
    for (size_t i = own_frames(trace); i < trace->count; i++) {
        weir__symbol_describe(trace->frames[i], line, sizeof(line));
        add(text, "    %s\n", line);
    }
}

static double seconds(int64_t duration_ns)
{
    return (double)duration_ns / 1e9;
}

static void add_summary(struct text *text, const weir__leak_facts *facts, size_t others,
                        int64_t now_ns)
{
    add(text, "%zu bytes were not released: %u reference%s, %.3f s old, last seen on %s (%d)",
        facts->bytes, facts->refs, facts->refs == 1 ? "" : "s", seconds(now_ns - facts->born_ns),
        facts->holder.name, (int)facts->holder.id);
    if (facts->holder_ended)
        add(text, ", which has ended");
    if (others > 0)
        add(text, "; and %zu more from the same place", others);
    add(text, "\n");
}

static void add_touches(struct text *text, const weir__leak_facts *facts, int64_t now_ns)
{
    for (uint32_t i = 0; i < facts->touch_count; i++) {
        const weir__leak_mark *touch = &facts->touches[i];

        add(text, "  touched by %s on %s (%d), %.3f s ago:\n", touch->where, touch->thread.name,
            (int)touch->thread.id, seconds(now_ns - touch->at_ns));
        add_trace(text, &touch->trace);
    }
    if (facts->touches_dropped > 0)
        add(text, "  %llu more touch%s not kept\n", (unsigned long long)facts->touches_dropped,
            facts->touches_dropped == 1 ? " was" : "es were");
}

static void describe(struct text *text, const weir__leak_facts *facts, size_t others,
                     int64_t now_ns)
{
    text->length = 0;
    text->full = false;
    add_summary(text, facts, others, now_ns);
    add(text, "  made on %s (%d):\n", facts->maker.name, (int)facts->maker.id);
    add_trace(text, &facts->made);
    if (facts->detailed)
        add_touches(text, facts, now_ns);
    else
        add(text, "  WEIR_LEAK_LEVEL=advanced shows who touched it\n");
}

static void log_lines(const char *type, char *text)
{
    char *rest = text, *line;

    while ((line = strsep(&rest, "\n")) != NULL)
        if (line[0] != '\0')
            weir__warn("leak", type, "%s", line);
}

void weir__leak_report(const weir__leak_facts *facts, size_t others)
{
    int64_t now_ns = weir__monotonic_now();
    weir_leak_listener_fn *fn;
    void *user_data;
    struct text text;

    weir__mutex_lock(&listener.lock);
    fn = listener.fn;
    user_data = listener.user_data;
    weir__mutex_unlock(&listener.lock);

    describe(&text, facts, others, now_ns);
    if (fn == NULL) {
        log_lines(facts->type, text.bytes);
        return;
    }
    fn(
        &(const weir_leak_report){
            .size = sizeof(weir_leak_report),
            .type = facts->type,
            .bytes = facts->bytes,
            .refs = facts->refs,
            .age_ns = now_ns - facts->born_ns,
            .thread = facts->holder.name,
            .thread_ended = facts->holder_ended,
            .others = others,
            .text = text.bytes,
        },
        user_data);
}
