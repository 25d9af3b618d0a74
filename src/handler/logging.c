/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log lines have no line ends, so a dump is one log line per 16 bytes.
 */
#include <weir/diagnostics.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <weir/buf.h>
#include <weir/channel.h>
#include <weir/error.h>
#include <weir/handler.h>
#include <weir/pipeline.h>

#include "base/log.h"
#include "base/options.h"
#include "handler/msg_bytes.h"

#define DUMP_MAX_DEFAULT 4096
#define DUMP_ROW 16      /* bytes per line */
#define DUMP_ROW_SIZE 96 /* of the text of a line */
#define OFFSET_DIGITS 8
#define CHANNEL_TEXT_SIZE (2 * WEIR_ADDRESS_TEXT_SIZE + 32)

struct logging {
    enum weir_log_level level;
    size_t dump_max; /* 0 = no dump */
    char name[WEIR_LOGGING_NAME_SIZE];
};

static struct logging *state_of(weir_ctx *ctx)
{
    return weir_ctx_state(ctx);
}

/* ---- lines ---- */

static bool is_enabled(weir_ctx *ctx)
{
    return weir_log_enabled(state_of(ctx)->level);
}

static void log_line(weir_ctx *ctx, const char *text)
{
    char channel[CHANNEL_TEXT_SIZE];

    (void)weir_channel_format(weir_ctx_channel(ctx), channel, sizeof(channel));
    weir_log_write(state_of(ctx)->level, state_of(ctx)->name, channel, "%s", text);
}

static void log_event(weir_ctx *ctx, const char *what)
{
    if (is_enabled(ctx))
        log_line(ctx, what);
}

static void log_address(weir_ctx *ctx, const char *what, const weir_address *a,
                        const weir_address *b)
{
    char first[WEIR_ADDRESS_TEXT_SIZE] = "-", second[WEIR_ADDRESS_TEXT_SIZE] = "";
    char text[2 * WEIR_ADDRESS_TEXT_SIZE + 32];

    if (!is_enabled(ctx))
        return;
    if (a != NULL)
        (void)weir_address_format(a, first, sizeof(first));
    if (b != NULL)
        (void)weir_address_format(b, second, sizeof(second));
    (void)snprintf(text, sizeof(text), "%s: %s%s%s", what, first, b != NULL ? ", from " : "",
                   second);
    log_line(ctx, text);
}

/* ---- messages ---- */

static void dump_row(weir_ctx *ctx, weir_span bytes, size_t offset)
{
    char row[DUMP_ROW_SIZE], digits[24];

    (void)weir_span_hex_dump(bytes, row, sizeof(row));
    row[strcspn(row, "\n")] = '\0';
    (void)snprintf(digits, sizeof(digits), "%08zx", offset);
    memcpy(row, digits + strlen(digits) - OFFSET_DIGITS,
           OFFSET_DIGITS); /* weir_span_hex_dump starts at offset 0 */
    log_line(ctx, row);
}

static void dump(weir_ctx *ctx, weir_msg *msg, size_t length)
{
    size_t max = state_of(ctx)->dump_max;
    size_t shown = length < max ? length : max;
    uint8_t copy[DUMP_ROW];
    char text[64];

    for (size_t offset = 0; offset < shown; offset += DUMP_ROW) {
        size_t count = shown - offset < DUMP_ROW ? shown - offset : DUMP_ROW;

        weir__msg_bytes_copy(msg, offset, copy, count);
        dump_row(ctx, (weir_span){copy, count}, offset);
    }
    if (shown < length && shown > 0) {
        (void)snprintf(text, sizeof(text), "and %zu B more", length - shown);
        log_line(ctx, text);
    }
}

static void log_bytes(weir_ctx *ctx, const char *what, weir_msg *msg, size_t length)
{
    char text[64];

    (void)snprintf(text, sizeof(text), "%s: %zu B", what, length);
    log_line(ctx, text);
    dump(ctx, msg, length);
}

static void log_other(weir_ctx *ctx, const char *what, weir_msg *msg)
{
    char text[CHANNEL_TEXT_SIZE + 64], child[CHANNEL_TEXT_SIZE];

    if (weir_channel_of(msg) != NULL)
        (void)snprintf(text, sizeof(text), "%s: %s", what,
                       weir_channel_format(weir_channel_of(msg), child, sizeof(child)));
    else
        (void)snprintf(text, sizeof(text), "%s: %s of %lld B", what, msg->type->name,
                       (long long)weir__msg_bytes_on_wire(msg));
    log_line(ctx, text);
}

static void log_msg(weir_ctx *ctx, const char *what, weir_msg *msg)
{
    if (!is_enabled(ctx))
        return;
    if (weir__msg_has_bytes(msg))
        log_bytes(ctx, what, msg, weir__msg_bytes_length(msg));
    else
        log_other(ctx, what, msg);
}

/* ---- slots ---- */

#define LOG_AND_FIRE(slot, what)         \
    static void on_##slot(weir_ctx *ctx) \
    {                                    \
        log_event(ctx, what);            \
        weir_fire_##slot(ctx);           \
    }

LOG_AND_FIRE(registered, "REGISTERED")
LOG_AND_FIRE(unregistered, "UNREGISTERED")
LOG_AND_FIRE(active, "ACTIVE")
LOG_AND_FIRE(inactive, "INACTIVE")
LOG_AND_FIRE(read_complete, "READ COMPLETE")
LOG_AND_FIRE(draining, "DRAINING")

static void on_writability(weir_ctx *ctx)
{
    log_event(ctx, weir_ctx_is_writable(ctx) ? "WRITABILITY CHANGED: writable"
                                             : "WRITABILITY CHANGED: not writable");
    weir_fire_writability(ctx);
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    log_msg(ctx, "READ", msg);
    weir_fire_read(ctx, msg);
}

static void on_event(weir_ctx *ctx, weir_msg *event)
{
    char text[128];

    if (is_enabled(ctx)) {
        (void)snprintf(text, sizeof(text), "EVENT: %s", event->type->name);
        log_line(ctx, text);
    }
    weir_fire_event(ctx, event);
}

static void on_error(weir_ctx *ctx, int err, const char *detail)
{
    char text[384];

    if (is_enabled(ctx)) {
        (void)snprintf(text, sizeof(text), "ERROR: %s (%s)%s%s", weir_error_name(err),
                       weir_error_text(err), detail != NULL ? ": " : "",
                       detail != NULL ? detail : "");
        log_line(ctx, text);
    }
    weir_fire_error(ctx, err, detail);
}

static void on_bind(weir_ctx *ctx, const weir_address *local, weir_promise *done)
{
    log_address(ctx, "BIND", local, NULL);
    weir_bind(ctx, local, done);
}

static void on_connect(weir_ctx *ctx, const weir_address *remote, const weir_address *local,
                       weir_promise *done)
{
    log_address(ctx, "CONNECT", remote, local);
    weir_connect(ctx, remote, local, done);
}

#define LOG_AND_CALL(slot, what)                             \
    static void on_##slot(weir_ctx *ctx, weir_promise *done) \
    {                                                        \
        log_event(ctx, what);                                \
        weir_##slot(ctx, done);                              \
    }

LOG_AND_CALL(disconnect, "DISCONNECT")
LOG_AND_CALL(close, "CLOSE")
LOG_AND_CALL(deregister, "DEREGISTER")
LOG_AND_CALL(shutdown_output, "SHUTDOWN OUTPUT")

static void on_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    log_msg(ctx, "WRITE", msg);
    weir_write(ctx, msg, done);
}

static void on_flush(weir_ctx *ctx)
{
    log_event(ctx, "FLUSH");
    weir_flush(ctx);
}

/* ---- adding ---- */

static int init(void *state, const void *options)
{
    memcpy(state, options, sizeof(struct logging));
    return 0;
}

static const weir_handler handler = {
    .name = "logging",
    .state_size = sizeof(struct logging),
    .init = init,
    .registered = on_registered,
    .unregistered = on_unregistered,
    .active = on_active,
    .inactive = on_inactive,
    .read = on_read,
    .read_complete = on_read_complete,
    .event = on_event,
    .writability = on_writability,
    .error = on_error,
    .draining = on_draining,
    .bind = on_bind,
    .connect = on_connect,
    .disconnect = on_disconnect,
    .close = on_close,
    .deregister = on_deregister,
    .write = on_write,
    .flush = on_flush,
    .shutdown_output = on_shutdown_output,
};

int weir_logging_add(weir_pipeline *pipeline, const weir_logging_options *options)
{
    struct logging state = {.name = "logging"};
    weir_logging_options own;
    int err = weir__options_read(&own, sizeof(own), options);

    if (err < 0)
        return err;
    err = weir__options_check("logging", own.name,
                              WEIR__OPTION(&own, level, WEIR_LOG_TRACE, WEIR_LOG_ERROR),
                              WEIR__OPTION(&own, dump, WEIR_OFF, WEIR_ON));
    if (err < 0)
        return err;
    if (own.name != NULL && strlen(own.name) >= sizeof(state.name))
        return -ENAMETOOLONG;
    if (own.name != NULL)
        memcpy(state.name, own.name, strlen(own.name) + 1);
    state.level = own.level;
    state.dump_max = own.dump_max > 0 ? own.dump_max : DUMP_MAX_DEFAULT;
    if (own.dump < 0)
        state.dump_max = 0;
    return weir_pipeline_add_last(pipeline, &handler, &state);
}
