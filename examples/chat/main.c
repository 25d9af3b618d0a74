/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chat server for telnet, nc, or `openssl s_client` with --tls: a channel group of all clients that
 * have sent a name.
 *     chat [--port 8023] [--io auto|epoll|uring|poll] [--threads N] [--boss-threads N]
 *          [--tls] [--cert FILE] [--key FILE]
 *
 * Each line is sent to all other clients; /who lists them, /quit leaves.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/weir.h>

#include "support/settings.h"

#define NAME_MAX_LENGTH 20
#define LINE_MAX_LENGTH 1000

struct guest {
    char line[LINE_MAX_LENGTH + 1]; /* received so far */
    size_t length;                  /* greater than LINE_MAX_LENGTH: the rest is skipped */
    char *name;                     /* the channel's attribute; NULL = not sent yet */
};

static weir_channel_group *room;

/* Set once, so that other guests' loops may read it. */
static const weir_attribute name_of = {.name = "name", .free = free};

/* ---- sending ---- */

WEIR_PRINTF(1, 0) static weir_msg *text(const char *format, va_list arguments)
{
    weir_buf *buf;

    if (weir_buf_create(128, 0, &buf) < 0)
        return NULL;
    if (weir_buf_vprintf(buf, format, arguments) < 0)
        weir_buf_clear(buf);
    return weir_buf_msg(buf);
}

WEIR_PRINTF(2, 3) static void tell(weir_ctx *ctx, const char *format, ...)
{
    va_list arguments;
    weir_msg *msg;

    va_start(arguments, format);
    msg = text(format, arguments);
    va_end(arguments);
    if (msg != NULL)
        weir_write_and_flush(ctx, msg, NULL);
}

/* doc:begin broadcast */
/* All others, except slow readers: nothing is queued for them. */
static bool listens(weir_channel *channel, void *speaker)
{
    return channel != speaker && weir_channel_is_writable(channel);
}

WEIR_PRINTF(2, 3) static void tell_others(weir_ctx *ctx, const char *format, ...)
{
    va_list arguments;
    weir_msg *msg;

    va_start(arguments, format);
    msg = text(format, arguments);
    va_end(arguments);
    if (msg != NULL)
        weir_channel_group_write_and_flush(room, msg, NULL, listens, weir_ctx_channel(ctx));
}
/* doc:end */

/* ---- lines ---- */

/* doc:begin who */
static void list(weir_channel *channel, void *user_data)
{
    (void)weir_buf_printf(user_data, "* %s\n", (char *)weir_attribute_get(channel, &name_of));
}

static void who(weir_ctx *ctx)
{
    weir_buf *buf;

    if (weir_buf_create(0, 0, &buf) < 0)
        return;
    (void)weir_buf_printf(buf, "* %zu here:\n", weir_channel_group_size(room));
    weir_channel_group_foreach(room, list, buf);
    weir_write_and_flush(ctx, weir_buf_msg(buf), NULL);
}
/* doc:end */

static bool is_name(const char *line)
{
    size_t length = strlen(line);

    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)line[i] <= ' ' || line[i] == '/')
            return false;
    }
    return length > 0 && length <= NAME_MAX_LENGTH;
}

/* doc:begin join */
static void join(weir_ctx *ctx, struct guest *self)
{
    weir_channel *channel = weir_ctx_channel(ctx);
    char *name = is_name(self->line) ? strdup(self->line) : NULL;

    if (name == NULL) {
        tell(ctx, "* a name is one word of at most %d letters: who are you?\n", NAME_MAX_LENGTH);
        return;
    }
    if (weir_attribute_set(channel, &name_of, name) < 0) {
        free(name);
        return;
    }
    self->name = name;
    if (weir_channel_group_add(room, channel) < 0) { /* leaves when it closes */
        weir_close(ctx, NULL);
        return;
    }
    tell(ctx, "* welcome, %s: say something, or /who, or /quit\n", name);
    tell_others(ctx, "* %s has come\n", name);
}
/* doc:end */

static void on_line(weir_ctx *ctx, struct guest *self)
{
    if (strcmp(self->line, "/quit") == 0) {
        tell(ctx, "* bye\n");
        weir_close(ctx, NULL);
    } else if (self->name == NULL) {
        join(ctx, self);
    } else if (strcmp(self->line, "/who") == 0) {
        who(ctx);
    } else if (self->line[0] != '\0') {
        tell_others(ctx, "%s: %s\n", self->name, self->line);
    }
}

/* Adds a byte to the line: ends it, stores the byte, or drops it if the line is too long. */
static void take(weir_ctx *ctx, struct guest *self, char byte)
{
    if (byte == '\n' && self->length > LINE_MAX_LENGTH) {
        tell(ctx, "* that was too long for a line\n");
        self->length = 0;
    } else if (byte == '\n') {
        self->line[self->length] = '\0';
        self->length = 0;
        on_line(ctx, self);
    } else if (self->length < LINE_MAX_LENGTH && byte != '\r' && byte != '\0') {
        self->line[self->length++] = byte;
    } else if (self->length == LINE_MAX_LENGTH) {
        self->length++;
    }
}

/* ---- the handler ---- */

static void on_active(weir_ctx *ctx)
{
    tell(ctx, "* who are you?\n");
}

static void on_read(weir_ctx *ctx, weir_msg *msg)
{
    weir_buf *buf = weir_buf_of(msg);
    const uint8_t *bytes = weir_buf_bytes(buf);

    for (size_t i = 0; i < weir_buf_readable(buf); i++)
        take(ctx, weir_ctx_state(ctx), (char)bytes[i]);
    weir_msg_release(msg);
}

static void on_writability(weir_ctx *ctx)
{
    weir_ctx_set_auto_read(ctx, weir_ctx_is_writable(ctx)); /* stop reading from a slow reader */
}

static void on_inactive(weir_ctx *ctx)
{
    const struct guest *self = weir_ctx_state(ctx);

    if (self->name != NULL)
        tell_others(ctx, "* %s has gone\n", self->name);
}

static void on_draining(weir_ctx *ctx)
{
    tell(ctx, "* we close now, good night\n");
    weir_close(ctx, NULL);
}

static const weir_handler chat = {
    .name = "chat",
    .state_size = sizeof(struct guest),
    .active = on_active,
    .read = on_read,
    .writability = on_writability,
    .inactive = on_inactive,
    .draining = on_draining,
};

static int init_child(weir_channel *channel, void *user_data)
{
    (void)user_data;
    return weir_pipeline_add_last(weir_channel_pipeline(channel), &chat, NULL);
}

int main(int argc, char **argv)
{
    struct settings settings = settings_read_tls(argc, argv, "0.0.0.0", 8023);
    int result;

    if (weir_channel_group_create(WEIR_CHANNEL_GROUP_OPTIONS(.name = "room"), &room) < 0)
        return EXIT_FAILURE;
    result = serve(&settings, init_child);
    weir_channel_group_release(room);
    return result;
}
