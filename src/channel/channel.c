/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of a channel, and the functions that any thread may call.
 */
#include "channel/channel.h"

#include <errno.h>
#include <stdio.h>

#include <weir/error.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/refcount.h"
#include "channel/attribute.h"
#include "channel/channel_stats.h"
#include "channel/mailbox.h"
#include "channel/offload_blocking.h"
#include "os/thread.h"
#include "os/virtual_os.h"

#define LOCKS 16 /* a power of two; shared by all channels */

static _Atomic uint64_t last_id;

static void reset_ids(void)
{
    atomic_store_explicit(&last_id, 0, memory_order_relaxed);
}

/* ---- lifecycle ---- */

static void destroy(weir_msg *msg);

static const weir_msg_type channel_type = {.name = "channel", .destroy = destroy};

int weir__channel_create(const weir__transport *transport, weir__config *config,
                         weir_channel *parent, weir_channel **ret_channel)
{
    weir_channel *channel = weir__zalloc(transport->size);

    if (channel == NULL)
        return -ENOMEM;
    weir_msg_init(&channel->msg, &channel_type);
    channel->transport = transport;
    atomic_init(&channel->config, weir__config_retain(config));
    if (weir__os_is_virtual())
        weir__virtual_os_at_end(reset_ids);
    channel->id = atomic_fetch_add_explicit(&last_id, 1, memory_order_relaxed) + 1;
    channel->parent = parent != NULL ? weir_channel_retain(parent) : NULL;
    weir__mailbox_init(&channel->mailbox, &weir__channel_mailbox);
    channel->flags = WEIR__SENDS_AT_ONCE;
    if (!config->options.read_on_demand) {
        atomic_init(&channel->state, WEIR__AUTO_READ);
        channel->flags |= WEIR__REQUEST_AUTO;
    }
    if (!transport->sends_buffers)
        channel->flags |= WEIR__CHECKS_BUFFERS;
    weir__pipeline_init(&channel->pipeline, channel);
    weir__outbound_init(&channel->outbound);
    weir__stats_created(channel);
    *ret_channel = channel;
    return 0;
}

/* For assertions. Debug builds clear the transport in destroy. */
static bool is_held(const weir_channel *channel)
{
    return channel->transport != NULL;
}

weir_channel *weir_channel_retain(weir_channel *channel)
{
    WEIR__ASSERT_HELD(is_held(channel), "weir_channel_retain: the channel has been freed");
    weir_msg_retain(&channel->msg);
    return channel;
}

void weir_channel_release(weir_channel *channel)
{
    if (channel == NULL)
        return;
    WEIR__ASSERT_HELD(is_held(channel),
                      "weir_channel_release: the channel was released more often than retained");
    weir_msg_release(&channel->msg);
}

weir_msg *weir__channel_msg(weir_channel *channel)
{
    return &channel->msg;
}

weir_channel *weir_channel_of(weir_msg *msg)
{
    return msg != NULL && weir_msg_is(msg, &channel_type) ? (weir_channel *)(void *)msg : NULL;
}

/*
 * The last reference was released while the channel was open and without a loop. If `added` was
 * called, `removed` has to be called, too: on the loop, which gets a new reference for that.
 */
static void close_unowned(weir_channel *channel)
{
    uint32_t flags = channel->flags;

    weir_msg_init(&channel->msg, &channel_type);
    channel->flags = flags;
    if (!weir__channel_state_is_at(channel, WEIR__REGISTRATION, WEIR__NEW))
        weir__channel_defer(channel, WEIR__DEFERRED_ABORT);
    else
        weir__channel_begin_closing(channel, WEIR_ECLOSED);
    weir_channel_release(channel);
}

static void destroy(weir_msg *msg)
{
    weir_channel *channel = weir_channel_of(msg);
    weir_executor *executor;

    WEIR__ASSERT_HELD(!weir__channel_is_member(channel),
                      "weir_channel_release: the reference of the channel's loop was released");
    if (weir__channel_phase(channel) != WEIR__CLOSED) {
        close_unowned(channel);
        return;
    }
    assert(weir__mailbox_is_empty(&channel->mailbox));
    executor = weir__channel_executor(channel);
    weir__pipeline_destroy(&channel->pipeline);
    weir__attributes_destroy(channel);
    weir__channel_extra_destroy(weir__channel_extra_if_any(channel));
    if (channel->transport->destroy != NULL)
        channel->transport->destroy(channel);
    weir__config_release(weir__channel_config(channel));
    weir_channel_release(channel->parent);
    if (executor != NULL)
        weir__executor_weak_release(executor);
#ifndef NDEBUG
    channel->transport = NULL;
#endif
    weir__free(channel);
}

/* ---- state ---- */

uint64_t weir_channel_id(const weir_channel *channel)
{
    return channel->id;
}

weir_pipeline *weir_channel_pipeline(weir_channel *channel)
{
    return &channel->pipeline;
}

weir_executor *weir_channel_executor(const weir_channel *channel)
{
    return weir__channel_executor(channel);
}

weir_channel *weir_channel_parent(const weir_channel *channel)
{
    return channel->parent;
}

bool weir_channel_is_open(const weir_channel *channel)
{
    return weir__channel_phase(channel) == WEIR__OPEN;
}

bool weir_channel_is_registered(const weir_channel *channel)
{
    return weir__channel_is(channel, WEIR__IS_REGISTERED);
}

bool weir_channel_has_peer_ended(const weir_channel *channel)
{
    return weir__channel_is(channel, WEIR__PEER_ENDED);
}

/* Relaxed: the close that follows is passed on with its own ordering. */
void weir_channel_skip_linger(weir_channel *channel)
{
    atomic_fetch_or_explicit(&channel->state, WEIR__SKIPS_LINGER, memory_order_relaxed);
}

bool weir_channel_is_active(const weir_channel *channel)
{
    return weir__channel_is(channel, WEIR__IS_ACTIVE);
}

bool weir_channel_is_writable(const weir_channel *channel)
{
    return weir__channel_phase(channel) == WEIR__OPEN &&
           atomic_load_explicit(&channel->unwritable, memory_order_relaxed) == 0;
}

/* ---- the transport, from any thread ---- */

static weir__mutex locks[LOCKS] = {
    WEIR__MUTEX_INIT, WEIR__MUTEX_INIT, WEIR__MUTEX_INIT, WEIR__MUTEX_INIT,
    WEIR__MUTEX_INIT, WEIR__MUTEX_INIT, WEIR__MUTEX_INIT, WEIR__MUTEX_INIT,
    WEIR__MUTEX_INIT, WEIR__MUTEX_INIT, WEIR__MUTEX_INIT, WEIR__MUTEX_INIT,
    WEIR__MUTEX_INIT, WEIR__MUTEX_INIT, WEIR__MUTEX_INIT, WEIR__MUTEX_INIT,
};

void weir__channel_lock(const weir_channel *channel)
{
    weir__mutex_lock(&locks[channel->id % LOCKS]);
}

void weir__channel_unlock(const weir_channel *channel)
{
    weir__mutex_unlock(&locks[channel->id % LOCKS]);
}

typedef int address_fn(weir_channel *channel, weir_address *ret_address);

static int ask_transport(weir_channel *channel, address_fn *ask, weir_address *ret_address)
{
    int err = -ENOTCONN;

    weir__channel_lock(channel);
    if (ask != NULL && weir__channel_phase(channel) < WEIR__CLOSING)
        err = ask(channel, ret_address);
    weir__channel_unlock(channel);
    return err;
}

/* Caches an address, if there is memory, for calls after the close. */
static void remember(_Atomic(weir_address *) *place, const weir_address *address)
{
    weir_address *copy = weir__alloc(sizeof(*copy)), *none = NULL;

    if (copy == NULL)
        return;
    *copy = *address;
    if (!atomic_compare_exchange_strong_explicit(place, &none, copy, memory_order_acq_rel,
                                                 memory_order_relaxed))
        weir__free(copy);
}

static int find_address(weir_channel *channel, address_fn *ask, bool remote,
                        weir_address *ret_address)
{
    weir__channel_extra *extra = weir__channel_extra_get(channel);
    _Atomic(weir_address *) *place;
    const weir_address *known;
    int err;

    if (extra == NULL || channel->transport->connectionless)
        return ask_transport(channel, ask, ret_address);
    place = remote ? &extra->addresses.remote : &extra->addresses.local;
    known = atomic_load_explicit(place, memory_order_acquire);
    if (known != NULL) {
        *ret_address = *known;
        return 0;
    }
    err = ask_transport(channel, ask, ret_address);
    if (err == 0 && weir_channel_is_active(channel)) /* final from here on */
        remember(place, ret_address);
    return err;
}

int weir_channel_local_address(weir_channel *channel, weir_address *ret_address)
{
    return find_address(channel, channel->transport->local_address, false, ret_address);
}

int weir_channel_remote_address(weir_channel *channel, weir_address *ret_address)
{
    return find_address(channel, channel->transport->remote_address, true, ret_address);
}

void weir__channel_format(uint64_t id, bool is_active, const weir_address *local,
                          const weir_address *remote, char *buffer, size_t size)
{
    char local_text[WEIR_ADDRESS_TEXT_SIZE] = "-", remote_text[WEIR_ADDRESS_TEXT_SIZE] = "-";

    if (local != NULL)
        (void)weir_address_format(local, local_text, sizeof(local_text));
    if (remote != NULL)
        (void)weir_address_format(remote, remote_text, sizeof(remote_text));
    (void)snprintf(buffer, size, "[%llu %s %c %s]", (unsigned long long)id, local_text,
                   is_active ? '-' : '!', remote_text);
}

char *weir_channel_format(weir_channel *channel, char *buffer, size_t size)
{
    weir_address local, remote;
    bool has_local = weir_channel_local_address(channel, &local) == 0;
    bool has_remote = weir_channel_remote_address(channel, &remote) == 0;

    weir__channel_format(channel->id, weir_channel_is_active(channel), has_local ? &local : NULL,
                         has_remote ? &remote : NULL, buffer, size);
    return buffer;
}

static const char *address_text(weir_channel *channel, bool remote,
                                char buffer[WEIR_ADDRESS_TEXT_SIZE])
{
    weir_address address;
    int err = remote ? weir_channel_remote_address(channel, &address)
                     : weir_channel_local_address(channel, &address);

    return err == 0 ? weir_address_format(&address, buffer, WEIR_ADDRESS_TEXT_SIZE) : "?";
}

const char *weir__channel_log_name(weir_channel *channel, char buffer[WEIR__CHANNEL_LOG_NAME_SIZE])
{
    char local_text[WEIR_ADDRESS_TEXT_SIZE], remote_text[WEIR_ADDRESS_TEXT_SIZE];
    const char *local = address_text(channel, false, local_text);
    const char *remote = address_text(channel, true, remote_text);
    bool is_accepted = channel->parent != NULL;
    unsigned long long id = channel->id;

    if (*remote != '?')
        (void)snprintf(buffer, WEIR__CHANNEL_LOG_NAME_SIZE, "%llu (%s -> %s)", id,
                       is_accepted ? remote : local, is_accepted ? local : remote);
    else if (*local == '?')
        (void)snprintf(buffer, WEIR__CHANNEL_LOG_NAME_SIZE, "%llu", id);
    else
        (void)snprintf(buffer, WEIR__CHANNEL_LOG_NAME_SIZE,
                       is_accepted ? "%llu (? -> %s)" : "%llu (%s)", id, local);
    return buffer;
}

int weir_channel_set_socket_option(weir_channel *channel, int level, int name, const void *value,
                                   size_t length)
{
    int err = WEIR_ECLOSED;

    if (channel->transport->set_socket_option == NULL)
        return -ENOTSUP;
    weir__channel_lock(channel);
    if (weir__channel_phase(channel) < WEIR__CLOSING)
        err = channel->transport->set_socket_option(channel, level, name, value, length);
    weir__channel_unlock(channel);
    return err;
}

int weir_channel_get_socket_option(weir_channel *channel, int level, int name, void *ret_value,
                                   size_t *length)
{
    int err = WEIR_ECLOSED;

    if (channel->transport->get_socket_option == NULL)
        return -ENOTSUP;
    weir__channel_lock(channel);
    if (weir__channel_phase(channel) < WEIR__CLOSING)
        err = channel->transport->get_socket_option(channel, level, name, ret_value, length);
    weir__channel_unlock(channel);
    return err;
}

/* ---- options ---- */

void weir_channel_get_options(weir_channel *channel, weir_channel_options *ret_options)
{
    weir__config_read(weir__channel_config(channel), ret_options);
}

/*
 * A shared config is left to the other channels and kept, because threads may be reading it. From
 * then on the channel has its own config, which is changed in place: then the options that were
 * lent from it are kept.
 */
static int change_config(weir_channel *channel, weir__config *config)
{
    weir__config *before = weir__channel_config(channel);
    weir__channel_extra *extra = weir__channel_extra_get(channel);
    weir__retired *retired = extra != NULL ? weir__zalloc(sizeof(*retired)) : NULL;

    if (retired == NULL)
        return -ENOMEM;
    if (!extra->has_own_config) {
        retired->config = before;
        atomic_store_explicit(&channel->config, config, memory_order_release);
        extra->has_own_config = true;
    } else if (weir__config_exchange(before, config)) {
        retired->config = config;
    } else {
        weir__config_release(config);
        weir__free(retired);
        return 0;
    }
    weir__channel_extra_retire(extra, retired);
    return 0;
}

/* auto_read that was switched by hand stays, unless read_on_demand changes. */
static int apply_config(weir_channel *channel, weir__config *config)
{
    bool on_demand = weir__channel_options(channel)->read_on_demand;
    int err = change_config(channel, config);

    if (err < 0) {
        weir__config_release(config);
        return err;
    }
    if (on_demand != weir__channel_options(channel)->read_on_demand)
        weir_channel_set_auto_read(channel, on_demand);
    weir__outbound_check_marks(channel);
    if (weir__channel_executor(channel) != NULL) /* otherwise the registration does it */
        weir__channel_update_auto_read(channel);
    weir__channel_check_offload(channel);
    return channel->transport->configure != NULL ? channel->transport->configure(channel) : 0;
}

static void run_options(weir_channel *channel, weir__call *call)
{
    int err = apply_config(channel, call->arg);

    if (err < 0)
        weir_fire_error(weir__channel_head_tail(channel), err, "the options could not be set");
}

static void fail_options(weir_channel *channel, weir__call *call, int err)
{
    (void)channel;
    (void)err;
    weir__config_release(call->arg);
}

static const weir__operation set_options = {.run = run_options, .fail = fail_options};

int weir_channel_set_options(weir_channel *channel, const weir_channel_options *options)
{
    weir__config *config;
    int err = weir__config_create(options, &config);

    if (err < 0)
        return err;
    if (weir__channel_in_loop(channel))
        return apply_config(channel, config);
    return weir__channel_call(channel, &set_options, NULL, config, 0);
}

bool weir_channel_auto_read(const weir_channel *channel)
{
    return weir__channel_is(channel, WEIR__AUTO_READ);
}

/*
 * Before the first registration this thread may be another than the one that created the channel:
 * then only the switch is set, and the registration reads it. Sequentially consistent, as there:
 * this sets the switch and then reads the executor, the registration sets the executor and then
 * reads the switch, so one of the two sees the other's write.
 */
void weir_channel_set_auto_read(weir_channel *channel, bool on)
{
    if (on)
        atomic_fetch_or_explicit(&channel->state, WEIR__AUTO_READ, memory_order_seq_cst);
    else
        atomic_fetch_and_explicit(&channel->state, ~(uint32_t)WEIR__AUTO_READ,
                                  memory_order_seq_cst);
    if (atomic_load_explicit(&channel->executor, memory_order_seq_cst) == NULL)
        return;
    if (weir__channel_in_loop(channel))
        weir__channel_update_auto_read(channel);
    else
        weir__channel_defer(channel, WEIR__DEFERRED_READING);
}

/* ---- flow control ---- */

int64_t weir_channel_pending_bytes(const weir_channel *channel)
{
    return weir__outbound_bytes(channel);
}

int64_t weir_channel_bytes_before_unwritable(const weir_channel *channel)
{
    int64_t high =
        atomic_load_explicit(&weir__channel_config(channel)->high_mark, memory_order_relaxed);
    int64_t bytes = high - weir__outbound_bytes(channel) + 1;

    return bytes > 0 && weir_channel_is_writable(channel) ? bytes : 0;
}

int64_t weir_channel_bytes_before_writable(const weir_channel *channel)
{
    int64_t low =
        atomic_load_explicit(&weir__channel_config(channel)->low_mark, memory_order_relaxed);
    int64_t bytes = weir__outbound_bytes(channel) - low + 1;

    return bytes > 0 && !weir_channel_is_writable(channel) ? bytes : 0;
}

int weir_channel_set_user_writable(weir_channel *channel, unsigned reason, bool writable)
{
    if (reason < 1 || reason > 31)
        return -EINVAL;
    weir__outbound_set_unwritable(channel, 1u << reason, !writable);
    return 0;
}

/* ---- reports ---- */

/* Out of line: every operation passes may_begin, and the name needs stack. */
static __attribute__((noinline, cold)) void log_complete_promise(weir_channel *channel)
{
    char name[WEIR__CHANNEL_LOG_NAME_SIZE];

    weir__error_limited("channel", weir__channel_log_name(channel, name),
                        "an operation was started with a promise that is already complete");
}

bool weir__channel_may_begin(weir_channel *channel, weir_promise *done)
{
    if (done == NULL || !weir_promise_is_done(done))
        return true;
    if (!weir_promise_is_cancelled(done))
        log_complete_promise(channel);
    return false;
}

/* The failure need not be fired: it is expected, was fired before, or no handler would see it. */
static bool is_unreported(const weir_channel *channel, int err)
{
    return err == 0 || err == WEIR_ECLOSED || weir__channel_phase(channel) != WEIR__OPEN ||
           !weir__channel_is(channel, WEIR__IS_REGISTERED) ||
           weir__channel_has(channel, WEIR__FIRED_FAILURE);
}

void weir__channel_report(weir_channel *channel, weir_promise *done, int err, const char *detail)
{
    if (done != NULL && err < 0) {
        (void)weir_promise_fail(done, err, detail);
    } else if (done != NULL) {
        (void)weir_promise_succeed(done, NULL);
    } else if (!is_unreported(channel, err)) {
        channel->flags |= WEIR__FIRED_FAILURE;
        weir_fire_error(weir__channel_head_tail(channel), err, detail);
    }
}

/* `loss`: further flags of the mailbox. */
static void fail_posted(weir_channel *channel, weir_promise *done, int err, uint32_t loss)
{
    weir__channel_extra *extra;

    if (done != NULL || weir__channel_phase(channel) == WEIR__CLOSED) {
        weir__call_fail(channel, done, err);
        return;
    }
    extra = err != -ENOMEM ? weir__channel_extra_get(channel) : NULL;
    if (extra == NULL) {
        if (loss != 0)
            weir__channel_defer(channel, loss);
        else
            weir_channel_abort(channel, NULL);
        return;
    }
    /* Relaxed: setting the flag publishes it. */
    atomic_store_explicit(&extra->posted_err, err, memory_order_relaxed);
    weir__channel_defer(channel, WEIR__DEFERRED_CHECK | loss);
}

void weir__channel_fail_posted(weir_channel *channel, weir_promise *done, int err)
{
    fail_posted(channel, done, err, 0);
}

void weir__channel_defer_give_up(weir_channel *channel, int err)
{
    weir__channel_extra *extra = weir__channel_extra_get(channel);

    if (extra != NULL)
        atomic_store_explicit(&extra->posted_err, -err, memory_order_relaxed);
    weir__channel_defer(channel, WEIR__DEFERRED_RESET | WEIR__DEFERRED_ABORT);
}

void weir__channel_defer_loss(weir_channel *channel, int err)
{
    if (channel->transport->reset != NULL)
        weir__channel_defer_give_up(channel, err);
    else
        weir__channel_defer(channel, WEIR__DEFERRED_ABORT);
}

bool weir__channel_resets_for_loss(const weir_channel *channel)
{
    return channel->transport->reset != NULL && !weir__channel_options(channel)->keep_open_on_error;
}

void weir__channel_fail_posted_write(weir_channel *channel, weir_promise *done, int err)
{
    bool resets = done == NULL && err != WEIR_EFULL && weir__channel_resets_for_loss(channel);

    fail_posted(channel, done, err, resets ? WEIR__DEFERRED_RESET | WEIR__DEFERRED_ABORT : 0);
}

/* ---- the closed promise ---- */

/*
 * Created on first use: few channels need one, and its 176 bytes are a third of what an idle
 * connection may take. It is published, in two steps, before the state is read; the loop reads it
 * after it has changed the state. All of that is sequentially consistent, so one of the two
 * completes it.
 */
static weir_promise *find_closed(weir_channel *channel)
{
    weir__channel_extra *extra = weir__channel_extra_get(channel);
    weir_promise *promise, *before = NULL;

    if (extra == NULL)
        return NULL;
    promise = atomic_load_explicit(&extra->closed, memory_order_acquire);
    if (promise != NULL)
        return promise;
    if (weir_promise_create(weir__channel_executor(channel), &promise) < 0)
        return NULL;
    if (atomic_compare_exchange_strong_explicit(&extra->closed, &before, promise,
                                                memory_order_seq_cst, memory_order_acquire))
        return promise;
    weir_promise_release(promise);
    return before;
}

weir_promise *weir_channel_closed(weir_channel *channel)
{
    weir_promise *promise = find_closed(channel);

    if (promise != NULL &&
        (atomic_load_explicit(&channel->state, memory_order_seq_cst) & WEIR__PHASE) == WEIR__CLOSED)
        (void)weir_promise_succeed(promise, NULL);
    return promise;
}

int weir_channel_await_closed(weir_channel *channel, int64_t timeout_ns)
{
    const weir_executor *executor = weir__channel_executor(channel);
    weir_promise *closed = weir_channel_closed(channel);

    if (closed == NULL)
        return -ENOMEM;
    /* The promise may belong to a previous executor of the channel, or to none. */
    if (executor != NULL && weir__in_executor(executor) && !weir_promise_is_done(closed))
        return -EDEADLK;
    return weir_promise_await(closed, timeout_ns);
}
