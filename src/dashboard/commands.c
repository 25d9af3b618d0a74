/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a visitor may ask for, as texts:
 *
 *      chat TEXT       to all visitors
 *      name TEXT       the name of this one in the chat
 *      block           blocks the loop of this connection
 *      move on|off     moves handlers that block, or not
 *
 * A visitor has a credit of ten commands, which grows by two a second.
 */
#include <stdio.h>
#include <string.h>

#include "dashboard/visitor.h"

#define CREDIT_MAX 10
#define CREDIT_NS weir_ms(500) /* for one more */

static bool take_credit(weir__visitor *visitor, int64_t now_ns)
{
    int64_t more = (now_ns - visitor->credit_at_ns) / CREDIT_NS;

    if (visitor->credit_at_ns == 0)
        more = CREDIT_MAX;
    if (more > 0) {
        visitor->credit = visitor->credit + more > CREDIT_MAX ? CREDIT_MAX : visitor->credit + more;
        visitor->credit_at_ns = now_ns;
    }
    if (visitor->credit == 0)
        return false;
    visitor->credit--;
    return true;
}

static void notify(weir__visitor *visitor, const char *text)
{
    weir__visitor_offer(visitor, weir__dashboard_notice_message(text));
}

/* A character that shows nothing, such as a line feed, is a blank. */
static size_t copy_line(char *to, size_t size, weir_span text)
{
    size_t length = text.length < size - 1 ? text.length : size - 1;

    while (length < text.length && length > 0 && (text.data[length] & 0xc0) == 0x80)
        length--; /* not within a character */
    for (size_t i = 0; i < length; i++)
        to[i] = text.data[i] < 0x20 || text.data[i] == 0x7f ? ' ' : (char)text.data[i];
    while (length > 0 && to[length - 1] == ' ')
        length--;
    to[length] = '\0';
    return length;
}

static void chat(weir__visitor *visitor, weir_ctx *ctx, weir_span text)
{
    weir__dashboard *dashboard = visitor->dashboard;
    char line[WEIR__DASHBOARD_CHAT_MAX + 1], from[WEIR__VISITOR_NAME_SIZE];
    weir_ws_message *message;

    (void)ctx;
    if (copy_line(line, sizeof(line), text) == 0)
        return;
    if (visitor->name[0] != '\0')
        (void)snprintf(from, sizeof(from), "%s", visitor->name);
    else
        (void)snprintf(from, sizeof(from), "visitor %llu", (unsigned long long)visitor->number);
    /* At once: the page takes a message with a lower number for one that it has seen. */
    weir__mutex_lock(&dashboard->mutex);
    message = weir__dashboard_chat_message(dashboard->last_chat + 1, from, weir_span_of_text(line));
    if (message != NULL) {
        weir__dashboard_recent_add(&dashboard->chats, ++dashboard->last_chat, message);
        weir__visitors_append(dashboard, message);
    }
    weir__mutex_unlock(&dashboard->mutex);
}

static void set_name(weir__visitor *visitor, weir_ctx *ctx, weir_span text)
{
    (void)ctx;
    (void)copy_line(visitor->name, sizeof(visitor->name), text);
}

/* The next handler blocks. */
static void block(weir__visitor *visitor, weir_ctx *ctx, weir_span text)
{
    weir_ws_message *message = NULL;

    (void)text;
    if (atomic_exchange_explicit(&visitor->is_blocking, true, memory_order_acq_rel))
        notify(visitor, "the loop is still blocked");
    else if (weir_ws_message_create(WEIR_WS_TEXT, NULL, &message) == 0)
        weir_fire_read(ctx, weir_ws_message_msg(message));
    else
        atomic_store_explicit(&visitor->is_blocking, false, memory_order_release);
}

static void move(weir__visitor *visitor, weir_ctx *ctx, weir_span text)
{
    weir__dashboard *dashboard = visitor->dashboard;
    bool is_on = weir_span_equal(text, weir_span_of_text("on"));

    (void)ctx;
    atomic_store_explicit(&dashboard->moves_blocking, is_on, memory_order_release);
    weir__visitors_offer(dashboard, weir__dashboard_switch_message(is_on));
}

static bool is_allowed(const weir__dashboard *dashboard, char first)
{
    switch (first) {
    case 'b':
        return dashboard->options.can_block;
    case 'm':
        return dashboard->options.can_block && dashboard->options.offload != NULL;
    default:
        return dashboard->options.chat;
    }
}

void weir__visitor_command(weir__visitor *visitor, weir_ctx *ctx, weir_span text)
{
    static const struct {
        const char *word;
        void (*run)(weir__visitor *visitor, weir_ctx *ctx, weir_span rest);
    } commands[] = {{"chat ", chat}, {"name ", set_name}, {"block", block}, {"move ", move}};

    if (!take_credit(visitor, weir_ctx_now(ctx))) {
        notify(visitor, "too many messages: wait a moment");
        return;
    }
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        size_t length = strlen(commands[i].word);

        if (text.length < length || memcmp(text.data, commands[i].word, length) != 0)
            continue;
        if (is_allowed(visitor->dashboard, commands[i].word[0]))
            commands[i].run(visitor, ctx, weir_span_of(text.data + length, text.length - length));
        else
            notify(visitor, "this dashboard does not allow that");
        return;
    }
    notify(visitor, "unknown command");
}
