/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A context holds an immutable weir__openssl_context, which a reload or a replace exchanges.
 * Building a new one is slow and may fail, so it is done beside; the exchange is one pointer.
 *
 * Two locks. `changing` is held while a new one is built, including file reads: reloads are serial,
 * and the later one has read later. `lock` is held for a few instructions by every reader. If both
 * are held, `changing` was taken first. Nothing is released under `lock`.
 */
#include "tls/tls_context.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>

#include <weir/error.h>
#include <weir/memory.h>
#include <weir/tls_context.h>

#include "base/options.h"
#include "base/refcount.h"
#include "os/mutex.h"
#include "tls/tls_context_options.h"
#include "tls/tls_metrics.h"
#include "tls/tls_reason.h"
#include "tls/tls_sni_map.h"

struct weir_tls_context {
    weir__refs refs;
    bool is_server;

    weir__mutex changing; /* guards: */
    weir_tls_context_options *options;
    weir_tls_tickets *tickets; /* a server's own, which survive reloads; NULL = none yet */

    weir__mutex lock; /* guards: */
    weir__openssl_context *current;
    weir_tls_sni_fn *on_sni;
    void *on_sni_data;
    weir__sni_map names; /* each retains its context, except this one itself */

    struct {
        _Atomic uint64_t handshakes;
        _Atomic uint64_t resumed;
        _Atomic uint64_t failed;
        _Atomic uint64_t reloads;
    } stats;
};

/* Relaxed: each counter is independent, and orders nothing. */
static void count(_Atomic uint64_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

/* ---- building and exchanging ---- */

static int build(weir_tls_context *context, const weir_tls_context_options *options,
                 weir__openssl_context **ret_built)
{
    char reason[WEIR__TLS_REASON_SIZE] = "";
    int err = weir__openssl_context_create(options, context->is_server, reason, ret_built);

    return err < 0 ? weir__tls_fail(err, "%s", reason) : 0;
}

/* Holds `changing`. */
static void exchange(weir_tls_context *context, weir__openssl_context *built)
{
    weir__openssl_context *former = context->current; /* only changed under `changing` */

    if (former != NULL)
        weir__openssl_context_inherit(built, former);
    weir__mutex_lock(&context->lock);
    context->current = built;
    context->on_sni = context->options->on_sni;
    context->on_sni_data = context->options->on_sni_data;
    weir__mutex_unlock(&context->lock);
    if (former != NULL)
        weir__openssl_context_release(former);
}

/* A reload keeps the context's own keys, so that clients can resume their sessions. */
static int add_tickets(weir_tls_context *context, weir_tls_context_options *options)
{
    int err;

    if (!context->is_server || options->resumption == WEIR_OFF || options->tickets != NULL)
        return 0;
    if (context->tickets == NULL) {
        err = weir_tls_tickets_create(0, &context->tickets);
        if (err < 0)
            return err;
    }
    options->tickets = context->tickets;
    return 0;
}

/* Holds `changing`, unless the context is being created. On failure nothing changes. */
static int apply_options(weir_tls_context *context, const weir_tls_context_options *given)
{
    weir_tls_context_options options, *copy;
    weir__openssl_context *built;
    int err = weir__options_read(&options, sizeof(options), given);

    if (err < 0)
        return weir__tls_fail(err, "the options have an unknown size");
    err = weir__tls_context_options_check(&options, context->is_server);
    if (err == 0)
        err = add_tickets(context, &options);
    if (err < 0)
        return err;
    copy = weir__tls_context_options_copy(&options);
    if (copy == NULL)
        return -ENOMEM;
    err = build(context, copy, &built);
    if (err < 0) {
        weir__tls_context_options_free(copy);
        return err;
    }
    weir__tls_context_options_free(context->options);
    context->options = copy;
    exchange(context, built);
    return 0;
}

/* ---- lifecycle ---- */

static void destroy(weir_tls_context *context)
{
    weir_tls_context *other;

    while ((other = weir__sni_map_pop(&context->names)) != NULL)
        if (other != context)
            weir_tls_context_release(other);
    weir__sni_map_deinit(&context->names);
    weir__openssl_context_release(context->current);
    weir__tls_context_options_free(context->options);
    weir_tls_tickets_release(context->tickets);
    weir__mutex_deinit(&context->lock);
    weir__mutex_deinit(&context->changing);
    weir_memory_free(context);
}

static int create(const weir_tls_context_options *options, bool is_server,
                  weir_tls_context **ret_context)
{
    weir_tls_context *context = weir_memory_alloc(sizeof(*context));
    int err;

    if (context == NULL)
        return weir__tls_fail(-ENOMEM, "%s", weir_error_text(-ENOMEM));
    *context = (weir_tls_context){.is_server = is_server};
    weir__refs_init(&context->refs);
    weir__mutex_init(&context->changing);
    weir__mutex_init(&context->lock);
    err = apply_options(context, options);
    if (err < 0) {
        err = weir__tls_log_reason(context->is_server, err);
        destroy(context);
        return err;
    }
    *ret_context = context;
    return 0;
}

int weir_tls_server_create(const weir_tls_context_options *options, weir_tls_context **ret_context)
{
    return create(options, true, ret_context);
}

int weir_tls_client_create(const weir_tls_context_options *options, weir_tls_context **ret_context)
{
    return create(options, false, ret_context);
}

weir_tls_context *weir_tls_context_retain(weir_tls_context *context)
{
    weir__refs_retain(&context->refs);
    return context;
}

void weir_tls_context_release(weir_tls_context *context)
{
    if (context != NULL && weir__refs_release(&context->refs))
        destroy(context);
}

/* ---- reload and replace ---- */

static int finish_change(weir_tls_context *context, int err)
{
    weir__mutex_unlock(&context->changing);
    if (err < 0)
        return weir__tls_log_reason(context->is_server, err);
    count(&context->stats.reloads);
    return 0;
}

int weir_tls_context_reload(weir_tls_context *context)
{
    weir__openssl_context *built;
    int err;

    weir__mutex_lock(&context->changing);
    err = build(context, context->options, &built);
    if (err == 0)
        exchange(context, built);
    return finish_change(context, err);
}

int weir_tls_context_replace(weir_tls_context *context, const weir_tls_context_options *options)
{
    weir__mutex_lock(&context->changing);
    return finish_change(context, apply_options(context, options));
}

/* ---- names ---- */

static int check_name(const weir_tls_context *context, const char *name,
                      const weir_tls_context *other)
{
    if (!context->is_server || (other != NULL && !other->is_server))
        return weir__tls_fail(-EINVAL, "names are for server contexts only");
    if (!weir__tls_name_is_valid(name))
        return weir__tls_fail(-EINVAL, "\"%s\" is not a valid server name",
                              name != NULL ? name : "");
    return 0;
}

int weir_tls_context_add_name(weir_tls_context *context, const char *name, weir_tls_context *other)
{
    weir_tls_context *former = NULL, *unused;
    int err = check_name(context, name, other);

    if (err < 0)
        return err;
    if (other != NULL && other != context)
        weir_tls_context_retain(other);
    weir__mutex_lock(&context->lock);
    err = weir__sni_map_set(&context->names, name, other, &former);
    weir__mutex_unlock(&context->lock);
    unused = err < 0 ? other : former;
    if (unused != context)
        weir_tls_context_release(unused);
    if (err == -ENOENT)
        return weir__tls_fail(err, "no such name: \"%s\"", name);
    return err < 0 ? weir__tls_fail(err, "%s", weir_error_text(err)) : 0;
}

weir_tls_context *weir__tls_context_find(weir_tls_context *context, const char *name)
{
    weir_tls_context *found;

    weir__mutex_lock(&context->lock);
    found = weir__sni_map_find(&context->names, name);
    /* Retained under the lock, while the name still holds a reference. */
    found = weir_tls_context_retain(found != NULL ? found : context);
    weir__mutex_unlock(&context->lock);
    return found;
}

weir_tls_sni_fn *weir__tls_context_sni_fn(weir_tls_context *context, void **ret_user_data)
{
    weir_tls_sni_fn *on_sni;

    weir__mutex_lock(&context->lock);
    on_sni = context->on_sni;
    *ret_user_data = context->on_sni_data;
    weir__mutex_unlock(&context->lock);
    return on_sni;
}

/* ---- reading ---- */

bool weir__tls_context_is_server(const weir_tls_context *context)
{
    return context->is_server;
}

/* Both under one lock: with the context before a replace and the on_sni after it, a client could
 * get in that the one rejects by verification and the other by name. */
weir__openssl_context *weir__tls_context_snapshot(weir_tls_context *context, bool *ret_has_names)
{
    weir__openssl_context *current;

    weir__mutex_lock(&context->lock);
    current = weir__openssl_context_retain(context->current);
    *ret_has_names = context->on_sni != NULL || context->names.count > 0;
    weir__mutex_unlock(&context->lock);
    return current;
}

weir__openssl_context *weir__tls_context_current(weir_tls_context *context)
{
    bool has_names;

    return weir__tls_context_snapshot(context, &has_names);
}

weir_tls_certificate *weir_tls_context_certificate(weir_tls_context *context)
{
    weir__openssl_context *current = weir__tls_context_current(context);
    weir_tls_certificate *certificate = weir__openssl_context_certificate(current);

    weir__openssl_context_release(current);
    return certificate;
}

/* ---- stats ---- */

void weir__tls_context_count(weir_tls_context *context, int err, bool is_resumed)
{
    count(err < 0 ? &context->stats.failed : &context->stats.handshakes);
    if (err == 0 && is_resumed)
        count(&context->stats.resumed);
    weir__tls_metrics_count(weir__tls_context_is_server(context), err, is_resumed);
}

void weir_tls_context_read_stats(const weir_tls_context *context, weir_tls_context_stats *ret_stats)
{
    *ret_stats = (weir_tls_context_stats){
        .handshakes = atomic_load_explicit(&context->stats.handshakes, memory_order_relaxed),
        .resumed = atomic_load_explicit(&context->stats.resumed, memory_order_relaxed),
        .failed = atomic_load_explicit(&context->stats.failed, memory_order_relaxed),
        .reloads = atomic_load_explicit(&context->stats.reloads, memory_order_relaxed),
    };
}
