/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formats reports and passes them on.
 *
 *     what it is, how old, which thread had it last   first, because many read no further
 *       where it was created                          then its path, in chronological order
 *       where it was touched, each time
 *
 * Frames of the leak detector itself are removed by name, not by number, because inlining decides
 * which of them exist.
 *
 * Resolving a name reads a symbol table of possibly a hundred thousand entries. Reports of one
 * search share most of their frames, so names are cached until it ends.
 */
#include "buffer/leak_report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <weir/pool.h>

#include "base/log.h"
#include "base/memory.h"
#include "os/clock.h"
#include "os/symbol.h"
#include "os/thread.h"

#define TEXT_SIZE 16384
#define TEXT_CUT "  ...\n"
#define LINE_SIZE 256
#define OWN_PREFIX "weir__leak_"
#define OWN_FRAMES_MAX 8
#define NAMES_KEPT 1024    /* a power of two */
#define LOGGED_SITES_MAX 4 /* per search */

/* A direct-mapped cache of names. */
struct names {
    weir__symbol *slots;
    size_t mask;
    weir__symbol only; /* used if there is no memory for slots */
};

struct text {
    struct names *names;
    size_t length;
    bool full;
    char bytes[TEXT_SIZE + sizeof(TEXT_CUT)];
};

static struct {
    weir__mutex lock; /* guards both, to read them consistently */
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

/* ---- names ---- */

static void names_init(struct names *names)
{
    *names = (struct names){.slots = weir__zalloc(NAMES_KEPT * sizeof(weir__symbol))};
    if (names->slots != NULL)
        names->mask = NAMES_KEPT - 1;
    else
        names->slots = &names->only;
}

static void names_deinit(struct names *names)
{
    if (names->slots != &names->only)
        weir__free(names->slots);
}

static const weir__symbol *name_of(struct names *names, const void *address)
{
    uint64_t mixed = (uintptr_t)address * UINT64_C(0x9e3779b97f4a7c15);
    weir__symbol *symbol = &names->slots[(mixed >> 32) & names->mask];

    if (symbol->address != address)
        weir__symbol_find(address, symbol);
    return symbol;
}

/* ---- the text ---- */

/* Appends text. Text that does not fit, and all that follows, is omitted. */
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

/* The number of leading frames of the leak detector. */
static size_t own_frames(struct names *names, const weir__leak_trace *trace)
{
    size_t own = 0;

    for (size_t i = 0; i < trace->count && i < OWN_FRAMES_MAX; i++)
        if (strncmp(name_of(names, trace->frames[i])->function, OWN_PREFIX,
                    sizeof(OWN_PREFIX) - 1) == 0)
            own = i + 1;
    return own;
}

static void add_trace(struct text *text, const weir__leak_trace *trace)
{
    char line[LINE_SIZE];

    if (trace->count == 0)
        add(text, "    no backtrace on this system\n");
    for (size_t i = own_frames(text->names, trace); i < trace->count; i++) {
        weir__symbol_describe(name_of(text->names, trace->frames[i]), line, sizeof(line));
        add(text, "    %s\n", line);
    }
}

static double seconds(int64_t duration_ns)
{
    return (double)duration_ns / 1e9;
}

static void add_summary(struct text *text, const weir__leak_info *info, size_t others,
                        int64_t now_ns)
{
    add(text, "%zu bytes were not released: %u reference%s, %.3f s old, last seen on %s (%d)",
        info->bytes, info->refs, info->refs == 1 ? "" : "s", seconds(now_ns - info->created_ns),
        info->holder.name, (int)info->holder.id);
    if (info->holder_ended)
        add(text, ", which has ended");
    if (others > 0)
        add(text, "; and %zu more from the same place", others);
    add(text, "\n");
}

static void add_touches(struct text *text, const weir__leak_info *info, int64_t now_ns)
{
    for (uint32_t i = 0; i < info->touch_count; i++) {
        const weir__leak_touch_info *touch = &info->touches[i];

        add(text, "  touched by %s on %s (%d), %.3f s ago:\n", touch->where, touch->thread.name,
            (int)touch->thread.id, seconds(now_ns - touch->at_ns));
        add_trace(text, &touch->trace);
    }
    if (info->touches_dropped > 0)
        add(text, "  %llu more touch%s not kept\n", (unsigned long long)info->touches_dropped,
            info->touches_dropped == 1 ? " was" : "es were");
}

static void describe(struct text *text, const weir__leak_info *info, size_t others, int64_t now_ns)
{
    text->length = 0;
    text->full = false;
    add_summary(text, info, others, now_ns);
    add(text, "  made on %s (%d):\n", info->maker.name, (int)info->maker.id);
    add_trace(text, &info->made);
    if (info->detailed)
        add_touches(text, info, now_ns);
    else
        add(text, "  WEIR_LEAK_LEVEL=advanced shows where it was touched\n");
}

/* ---- delivery ---- */

static void log_lines(const char *type, char *text)
{
    char *rest = text, *line;

    while ((line = strsep(&rest, "\n")) != NULL)
        if (line[0] != '\0')
            weir__warn("leak", type, "%s", line);
}

static void report(const weir__leak_info *info, size_t others, struct names *names)
{
    int64_t now_ns = weir__monotonic_now();
    weir_leak_listener_fn *fn;
    void *user_data;
    struct text text;

    weir__mutex_lock(&listener.lock);
    fn = listener.fn;
    user_data = listener.user_data;
    weir__mutex_unlock(&listener.lock);

    text.names = names;
    describe(&text, info, others, now_ns);
    if (fn == NULL) {
        log_lines(info->type, text.bytes);
        return;
    }
    fn(
        &(const weir_leak_report){
            .size = sizeof(weir_leak_report),
            .type = info->type,
            .bytes = info->bytes,
            .refs = info->refs,
            .age_ns = now_ns - info->created_ns,
            .thread = info->holder.name,
            .thread_ended = info->holder_ended,
            .others = others,
            .text = text.bytes,
        },
        user_data);
}

static bool has_listener(void)
{
    bool has;

    weir__mutex_lock(&listener.lock);
    has = listener.fn != NULL;
    weir__mutex_unlock(&listener.lock);
    return has;
}

/* The log gets few reports, and the number of the messages that they leave out. */
size_t weir__leak_report_all(weir__leak_search *search)
{
    size_t found = weir__leak_records_count(search), others;
    bool is_logged = !has_listener();
    weir__leak_info info;
    struct names names;

    search->site_max = is_logged ? LOGGED_SITES_MAX : WEIR__LEAK_SITES_MAX;
    if (!weir__leak_records_pick(search, &info, &others))
        return found;
    names_init(&names);
    do {
        report(&info, others, &names);
    } while (weir__leak_records_pick(search, &info, &others));
    names_deinit(&names);
    others = is_logged ? weir__leak_records_count_unreported(search) : 0;
    if (others > 0)
        weir__warn("leak", NULL, "%zu more from other places; a listener gets up to %d reports",
                   others, WEIR__LEAK_SITES_MAX);
    return found;
}
