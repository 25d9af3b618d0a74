/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Channel options: checks, defaults, and copies.
 */
#include "channel/config.h"

#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "base/options.h"
#include "executor/group.h"
#include "os/thread.h"

#define CONNECT_TIMEOUT_NS weir_seconds(30)
#define CLOSE_TIMEOUT_NS weir_seconds(3)
#define CLOSE_SEND_TIMEOUT_NS weir_seconds(30)
#define HIGH_MARK (64 * 1024)
#define READS_PER_TURN 16
#define WRITES_PER_FLUSH 16
#define RECEIVE_MIN 64
#define RECEIVE_INITIAL 2048
#define RECEIVE_MAX 131072 /* more than the usual message: docs/decisions/0014 */
#define BACKLOG 4096
#define DATAGRAM_SIZE 2048
#define DATAGRAM_SIZE_JOINED 65535 /* the most that the kernel joins */
#define SOCKET_OPTIONS_MAX 1024
#define UNIX_MODE_MAX 0777
#define ALPN_MAX 255

/* Guards `options` between threads that read them and the loop that changes them; both are rare. */
static weir__mutex lock = WEIR__MUTEX_INIT;

/* ---- checks ---- */

static bool has_negatives(const weir_channel_options *options)
{
    return options->low_mark < 0 || options->high_mark < 0 || options->reads_per_turn < 0 ||
           options->writes_per_flush < 0 || options->receive_min < 0 ||
           options->receive_initial < 0 || options->receive_max < 0 || options->backlog < 0 ||
           options->send_buffer < 0 || options->receive_buffer < 0 ||
           options->user_timeout_ns < 0 || options->datagram_size < 0;
}

/* The text of an error in the given options, or NULL. */
static const char *find_invalid(const weir_channel_options *options)
{
    if (has_negatives(options))
        return "a count, a size, a mark or user_timeout_ns is negative";
    if (options->connect_timeout_ns < WEIR_OFF || options->close_timeout_ns < WEIR_OFF ||
        options->close_send_timeout_ns < WEIR_OFF || options->write_cap < WEIR_OFF)
        return "a timeout or the write cap is less than WEIR_OFF";
    if (options->reuse_address < WEIR_OFF || options->reuse_address > WEIR_ON)
        return "reuse_address is not 0, WEIR_ON or WEIR_OFF";
    if (options->unix_mode > UNIX_MODE_MAX)
        return "unix_mode is more than 0777";
    if (options->socket_option_count > SOCKET_OPTIONS_MAX ||
        (options->socket_option_count > 0 && options->socket_options == NULL))
        return "socket_option_count is too large, or socket_options is NULL";
    if (options->offload_when_blocking != NULL && weir__group_grows(options->offload_when_blocking))
        return "offload_when_blocking is a group with a thread per channel";
    if (options->alpn != NULL && (options->alpn[0] == '\0' || strlen(options->alpn) > ALPN_MAX))
        return "alpn is empty, or longer than 255 characters";
    return NULL;
}

/* The text of an error after the defaults are set, or NULL. */
static const char *find_inconsistent(const weir_channel_options *options)
{
    if (options->low_mark > options->high_mark)
        return "low_mark is above high_mark";
    if (options->receive_min > options->receive_initial ||
        options->receive_initial > options->receive_max)
        return "receive_min <= receive_initial <= receive_max does not hold";
    return NULL;
}

/* ---- defaults ---- */

static int64_t number_or(int64_t given, int64_t fallback)
{
    return given == WEIR_OFF ? WEIR_NEVER : given != 0 ? given : fallback;
}

static int int_or(int given, int fallback)
{
    return given != 0 ? given : fallback;
}

static int at_most(int value, int limit)
{
    return value < limit ? value : limit;
}

static int at_least(int value, int limit)
{
    return value > limit ? value : limit;
}

/* The low mark is half the high mark, whichever of them was given. */
static void set_mark_defaults(weir_channel_options *options)
{
    if (options->high_mark == 0 && options->low_mark > HIGH_MARK / 2)
        options->high_mark =
            options->low_mark > WEIR_NEVER / 2 ? WEIR_NEVER : options->low_mark * 2;
    options->high_mark = number_or(options->high_mark, HIGH_MARK);
    options->low_mark = number_or(options->low_mark, options->high_mark - options->high_mark / 2);
    options->write_cap = number_or(options->write_cap, WEIR_NEVER);
}

/* A given bound moves the defaults of the others. */
static void set_receive_defaults(weir_channel_options *options)
{
    int min = options->receive_min, initial = options->receive_initial, max = options->receive_max;

    max = int_or(max, at_least(RECEIVE_MAX, at_least(min, initial)));
    min = int_or(min, at_most(RECEIVE_MIN, initial > 0 ? at_most(initial, max) : max));
    initial = int_or(initial, at_least(min, at_most(RECEIVE_INITIAL, max)));
    options->receive_min = min;
    options->receive_initial = initial;
    options->receive_max = max;
}

static void set_defaults(weir_channel_options *options)
{
    options->connect_timeout_ns = number_or(options->connect_timeout_ns, CONNECT_TIMEOUT_NS);
    options->close_timeout_ns = number_or(options->close_timeout_ns, CLOSE_TIMEOUT_NS);
    options->close_send_timeout_ns =
        number_or(options->close_send_timeout_ns, CLOSE_SEND_TIMEOUT_NS);
    options->reads_per_turn = int_or(options->reads_per_turn, READS_PER_TURN);
    options->writes_per_flush = int_or(options->writes_per_flush, WRITES_PER_FLUSH);
    options->backlog = int_or(options->backlog, BACKLOG);
    options->datagram_size = options->gro ? at_least(options->datagram_size, DATAGRAM_SIZE_JOINED)
                                          : int_or(options->datagram_size, DATAGRAM_SIZE);
    set_mark_defaults(options);
    set_receive_defaults(options);
}

/* ---- lifecycle ---- */

static int copy_socket_options(weir_channel_options *options)
{
    size_t size = options->socket_option_count * sizeof(*options->socket_options);
    weir_socket_option *copy = NULL;

    if (size > 0) {
        copy = weir__alloc(size);
        if (copy == NULL)
            return -ENOMEM;
        memcpy(copy, options->socket_options, size);
    }
    options->socket_options = copy;
    return 0;
}

static void free_socket_options(const weir_channel_options *options)
{
    weir__free((void *)(uintptr_t)options->socket_options); /* our own copy */
}

static void publish_marks(weir__config *config)
{
    /* Relaxed: each number stands by itself, and a slightly old one does no harm. */
    atomic_store_explicit(&config->low_mark, config->options.low_mark, memory_order_relaxed);
    atomic_store_explicit(&config->high_mark, config->options.high_mark, memory_order_relaxed);
    atomic_store_explicit(&config->write_cap, config->options.write_cap, memory_order_relaxed);
    atomic_store_explicit(&config->limit,
                          config->options.high_mark < config->options.write_cap
                              ? config->options.high_mark
                              : config->options.write_cap,
                          memory_order_relaxed);
}

int weir__config_create(const weir_channel_options *options, weir__config **ret_config)
{
    weir_channel_options given;
    weir__config *config;
    const char *reason;
    int err = weir__options_read(&given, sizeof(given), options);

    if (err < 0)
        return err;
    reason = find_invalid(&given);
    if (reason == NULL) {
        set_defaults(&given);
        reason = find_inconsistent(&given);
    }
    if (reason != NULL)
        return weir__options_reject("channel", NULL, "%s", reason);
    config = weir__zalloc(sizeof(*config));
    if (config == NULL)
        return -ENOMEM;
    err = copy_socket_options(&given);
    if (err < 0) {
        weir__free(config);
        return err;
    }
    weir__refs_init(&config->refs);
    config->options = given;
    if (given.offload_when_blocking != NULL)
        weir_group_retain(given.offload_when_blocking);
    publish_marks(config);
    *ret_config = config;
    return 0;
}

weir__config *weir__config_retain(weir__config *config)
{
    weir__refs_retain(&config->refs);
    return config;
}

void weir__config_release(weir__config *config)
{
    if (config == NULL || !weir__refs_release(&config->refs))
        return;
    free_socket_options(&config->options);
    weir_group_release(config->options.offload_when_blocking);
    weir__free(config);
}

static bool has_same_socket_options(const weir_channel_options *a, const weir_channel_options *b)
{
    size_t size = a->socket_option_count * sizeof(*a->socket_options);

    return a->socket_option_count == b->socket_option_count &&
           (size == 0 || memcmp(a->socket_options, b->socket_options, size) == 0);
}

bool weir__config_exchange(weir__config *config, weir__config *other)
{
    weir_channel_options before = config->options, after = other->options;
    bool has_same = has_same_socket_options(&before, &after);
    bool is_lent = (!has_same && before.socket_option_count > 0) ||
                   (before.offload_when_blocking != NULL &&
                    before.offload_when_blocking != after.offload_when_blocking);

    if (has_same &&
        before.socket_option_count > 0) { /* threads that read them keep valid pointers */
        after.socket_options = before.socket_options;
        before.socket_options = other->options.socket_options;
    }
    weir__mutex_lock(&lock);
    config->options = after;
    publish_marks(config);
    weir__mutex_unlock(&lock);
    other->options = before;
    return is_lent;
}

void weir__config_read(const weir__config *config, weir_channel_options *ret_options)
{
    weir__mutex_lock(&lock);
    *ret_options = config->options;
    weir__mutex_unlock(&lock);
}
