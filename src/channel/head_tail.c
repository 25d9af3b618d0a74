/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Head and tail of a pipeline, which are one context. The head performs outbound operations. The
 * tail releases unhandled messages and logs unhandled errors.
 */
#include "channel/pipeline.h"

#include <errno.h>

#include <weir/error.h>

#include "base/log.h"
#include "base/log_limit.h"
#include "channel/channel.h"

/* ---- the tail ---- */

static void ignore(weir_ctx *ctx)
{
    (void)ctx;
}

static __attribute__((noinline, cold)) void log_unhandled(weir_channel *channel,
                                                          const weir_msg *msg)
{
    char name[WEIR__CHANNEL_LOG_NAME_SIZE];

    weir__debug("channel", weir__channel_log_name(channel, name),
                "a %s reached the tail of the pipeline and was released", msg->type->name);
}

/* An accepted connection that no handler takes is closed. */
static void on_unhandled(weir_ctx *ctx, weir_msg *msg)
{
    weir_channel *channel = ctx->channel, *accepted = weir_channel_of(msg);

    if (channel->transport->unhandled != NULL && channel->transport->unhandled(channel, msg))
        return;
    if (accepted != NULL)
        weir_channel_abort(accepted, NULL);
    else if (weir_log_enabled(WEIR_LOG_DEBUG))
        log_unhandled(channel, msg);
    weir_msg_release(msg);
}

static void on_event(weir_ctx *ctx, weir_msg *event)
{
    (void)ctx;
    weir_msg_release(event);
}

/* Errors that peers cause in normal operation. */
static bool is_routine(const weir_channel *channel, int err)
{
    return err == -ECONNRESET || err == -EPIPE || err == -ETIMEDOUT ||
           (err == -ECONNREFUSED && channel->transport->connectionless);
}

/* Errors that a peer can cause by what it sends. */
static bool is_peer_error(int err)
{
    switch (err) {
    case WEIR_ETLS:
    case WEIR_ETLSREFUSED:
    case WEIR_EUNTRUSTED:
    case WEIR_ECUTOFF:
    case WEIR_ENOTTLS:
    case WEIR_ENOHOST: /* a client requested a name that is not served here */
    case WEIR_ETOOLONG:
    case WEIR_EMALFORMED:
    case -EPROTO:
    case -EBADMSG:
    case -EILSEQ:
    case -EMSGSIZE:
        return true;
    default:
        return false;
    }
}

/*
 * Errors of clients are not the server's: they are logged below the default level. A peer that this
 * program has connected to is expected to work. Datagrams can come from anywhere in any number:
 * only the first error of a channel is a warning.
 */
static enum weir_log_level level_of(weir_channel *channel, int err)
{
    bool has_warned = weir__channel_has(channel, WEIR__WARNED);

    if (is_routine(channel, err) || (has_warned && channel->transport->connectionless))
        return WEIR_LOG_DEBUG;
    if (channel->parent != NULL && is_peer_error(err))
        return WEIR_LOG_INFO;
    channel->flags |= WEIR__WARNED;
    return WEIR_LOG_WARN;
}

#define ERRNO_MAX 140 /* Linux has 133 */
#define WEIR_ERRORS_FIRST 10001
#define WEIR_ERRORS_MAX 64

/* Rate limits are per level and error; errors outside of the ranges share one. */
static weir__log_limit *limit_of(enum weir_log_level level, int err)
{
    static weir__log_limit limits[2][ERRNO_MAX + WEIR_ERRORS_MAX];
    unsigned number = 0u - (unsigned)err, kind = 0;

    if (number < ERRNO_MAX)
        kind = number;
    else if (number >= WEIR_ERRORS_FIRST && number < WEIR_ERRORS_FIRST + WEIR_ERRORS_MAX)
        kind = ERRNO_MAX + number - WEIR_ERRORS_FIRST;
    return &limits[level == WEIR_LOG_WARN][kind];
}

static void log_error(weir_channel *channel, int err, const char *detail)
{
    enum weir_log_level level = level_of(channel, err);
    char name[WEIR__CHANNEL_LOG_NAME_SIZE];
    weir__log_note note;

    if (!weir__log_admit(limit_of(level, err), level, &note))
        return;
    weir_log_write(level, "channel", weir__channel_log_name(channel, name),
                   "an error reached the tail of the pipeline: %s%s%s",
                   detail != NULL ? detail : weir_error_text(err),
                   channel->transport->connectionless ? " (further errors are logged at DEBUG)"
                                                      : "",
                   note.text);
}

/* A listener stays open: its errors concern connections that failed. So does a connectionless
 * channel: its errors concern single messages. */
static bool closes_on_error(const weir_channel *channel)
{
    return weir__channel_phase(channel) == WEIR__OPEN && !channel->transport->accepts &&
           !channel->transport->connectionless &&
           !weir__channel_options(channel)->keep_open_on_error;
}

static void on_error(weir_ctx *ctx, int err, const char *detail)
{
    weir_channel *channel = ctx->channel;

    if (channel->transport->unhandled_error == NULL ||
        !channel->transport->unhandled_error(channel, err, detail))
        log_error(channel, err, detail);
    if (closes_on_error(channel))
        weir_close(ctx, NULL);
}

/* ---- the head ---- */

static void on_bind(weir_ctx *ctx, const weir_address *local, weir_promise *done)
{
    weir__channel_do_bind(ctx->channel, local, done);
}

static void on_connect(weir_ctx *ctx, const weir_address *remote, const weir_address *local,
                       weir_promise *done)
{
    weir__channel_do_connect(ctx->channel, remote, local, done);
}

static void on_disconnect(weir_ctx *ctx, weir_promise *done)
{
    weir__channel_do_disconnect(ctx->channel, done);
}

static void on_close(weir_ctx *ctx, weir_promise *done)
{
    weir__channel_do_close(ctx->channel, done);
}

static void on_deregister(weir_ctx *ctx, weir_promise *done)
{
    weir__channel_do_deregister(ctx->channel, done);
}

static void on_request_read(weir_ctx *ctx)
{
    weir__channel_do_request_read(ctx->channel);
}

static void on_write(weir_ctx *ctx, weir_msg *msg, weir_promise *done)
{
    weir__outbound_add(ctx->channel, msg, done);
}

static void on_flush(weir_ctx *ctx)
{
    weir__channel_do_flush(ctx->channel);
}

static void on_shutdown_output(weir_ctx *ctx, weir_promise *done)
{
    weir__channel_do_shut_output(ctx->channel, done);
}

const weir_handler weir__head_tail = {
    .name = "head_tail",
    .registered = ignore,
    .unregistered = ignore,
    .active = ignore,
    .inactive = ignore,
    .read = on_unhandled,
    .read_complete = ignore,
    .event = on_event,
    .writability = ignore,
    .error = on_error,
    .draining = ignore,
    .bind = on_bind,
    .connect = on_connect,
    .disconnect = on_disconnect,
    .close = on_close,
    .deregister = on_deregister,
    .request_read = on_request_read,
    .write = on_write,
    .flush = on_flush,
    .shutdown_output = on_shutdown_output,
};
