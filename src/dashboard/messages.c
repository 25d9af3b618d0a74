/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages to visitors, as JSON: each is an object whose "type" is its kind. Times are in
 * milliseconds since 1970, durations in nanoseconds. stats.c has the statistics.
 */
#include <string.h>

#include <weir/watchdog.h>

#include "dashboard/dashboard.h"
#include "dashboard/json_message.h"
#include "os/clock.h"

#define FRAME_SIZE 160

weir_ws_message *weir__dashboard_notice_message(const char *text)
{
    weir__json json;

    if (weir__json_message_begin(&json, "notice") < 0)
        return NULL;
    weir__json_put_text(&json, "text", text);
    return weir__json_message_end(&json);
}

weir_ws_message *weir__dashboard_switch_message(bool is_on)
{
    weir__json json;

    if (weir__json_message_begin(&json, "move") < 0)
        return NULL;
    weir__json_put_bool(&json, "on", is_on);
    return weir__json_message_end(&json);
}

weir_ws_message *weir__dashboard_unblocked_message(const char *executor, bool is_moved,
                                                   int64_t duration_ns)
{
    weir__json json;

    if (weir__json_message_begin(&json, "unblocked") < 0)
        return NULL;
    weir__json_put_text(&json, "executor", executor);
    weir__json_put_bool(&json, "moved", is_moved);
    weir__json_put_int(&json, "duration_ns", duration_ns);
    return weir__json_message_end(&json);
}

weir_ws_message *weir__dashboard_log_message(weir__log_history *log, uint64_t *last)
{
    uint64_t before = *last;
    weir_ws_message *message;
    weir__json json;

    if (log == NULL || weir__json_message_begin(&json, "log") < 0)
        return NULL;
    weir__json_key(&json, "lines");
    *last = weir__log_history_write(log, before, &json);
    message = weir__json_message_end(&json);
    if (message != NULL && *last == before) {
        weir_msg_release(weir_ws_message_msg(message));
        message = NULL;
    }
    return message;
}

weir_ws_message *weir__dashboard_chat_message(uint64_t number, const char *from, weir_span text)
{
    weir__json json;

    if (weir__json_message_begin(&json, "chat") < 0)
        return NULL;
    weir__json_put_int(&json, "number", (int64_t)number);
    weir__json_put_int(&json, "time", weir_time_of_day() / 1000000);
    weir__json_put_text(&json, "from", from);
    weir__json_key(&json, "text");
    weir__json_span(&json, text);
    return weir__json_message_end(&json);
}

/* On the watchdog's thread: formatting a frame reads the program's file. */
weir_ws_message *weir__dashboard_block_message(const weir_block *block)
{
    char frame[FRAME_SIZE];
    weir__json json;

    if (weir__json_message_begin(&json, "block") < 0)
        return NULL;
    weir__json_put_int(&json, "number", (int64_t)block->number);
    weir__json_put_int(&json, "time", weir_time_of_day() / 1000000);
    weir__json_put_bool(&json, "ended", block->has_ended);
    weir__json_put_int(&json, "duration_ns", block->duration_ns);
    weir__json_put_text(&json, "loop", weir_executor_name(block->executor));
    weir__json_put_text(&json, "handler", block->handler_name);
    weir__json_put_text(&json, "slot", block->slot);
    weir__json_put_text(&json, "channel", block->channel);
    weir__json_put_bool(&json, "computing", block->is_computing);
    weir__json_key(&json, "frames");
    weir__json_open(&json, '[');
    for (size_t i = 0; i < block->frame_count; i++) {
        (void)weir_block_format_frame(block, i, frame, sizeof(frame));
        weir__json_text(&json, frame);
    }
    weir__json_close(&json, ']');
    return weir__json_message_end(&json);
}

static void write_recent(weir__json *json, const char *key, const weir__dashboard_recent *recent)
{
    weir__json_key(json, key);
    weir__json_open(json, '[');
    for (size_t i = 0; i < recent->count; i++)
        weir__json_raw(json, weir_ws_message_bytes(recent->messages[i]));
    weir__json_close(json, ']');
}

weir_ws_message *weir__dashboard_hello_message(weir__dashboard *dashboard, uint64_t visitor,
                                               const char *loop)
{
    const weir_dashboard_options *options = &dashboard->options;
    weir__json json;

    if (weir__json_message_begin(&json, "hello") < 0)
        return NULL;
    weir__json_put_text(&json, "title", dashboard->title);
    weir__json_put_text(&json, "version", weir_version());
    weir__json_put_int(&json, "created", dashboard->created_ms);
    weir__json_put_int(&json, "interval_ns", options->interval_ns);
    weir__json_put_int(&json, "visitor", (int64_t)visitor);
    weir__json_put_text(&json, "loop", loop);
    weir__json_put_bool(&json, "has_log", dashboard->log != NULL);
    weir__json_put_bool(&json, "chat", options->chat);
    weir__json_put_bool(&json, "can_block", options->can_block);
    weir__json_put_int(&json, "block_ns", dashboard->block_ns);
    weir__json_put_bool(&json, "can_move", options->can_block && options->offload != NULL);
    weir__json_put_bool(&json, "moves",
                        atomic_load_explicit(&dashboard->moves_blocking, memory_order_relaxed));
    weir__json_key(&json, "log");
    (void)weir__log_history_write(dashboard->log, 0, &json);
    write_recent(&json, "chats", &dashboard->chats);
    write_recent(&json, "blocks", &dashboard->blocks);
    return weir__json_message_end(&json);
}
