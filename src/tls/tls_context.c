/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A context holds settings, which never change: new ones take their place. Making them is slow and
 * may fail, so it is done beside; putting them in their place is the exchange of a pointer.
 *
 * Two locks. `changing` is held by whoever makes new settings, while it reads files: two reloads
 * come one after the other, and the later one has read later. `lock` is held for a few instructions
 * by everybody who looks. Who holds both has taken `changing` first. Nothing is released under
 * `lock`.
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
#include "tls/tls_reason.h"
#include "tls/tls_sni_map.h"

struct weir_tls_context {
    weir__refs refs;
    bool is_server;
    const weir__tls_engine *engine;

    weir__mutex changing; /* guards: */
    weir_tls_context_options *options;
    weir_tls_tickets *tickets; /* a server's own, which outlive its settings; NULL = none yet */

    weir__mutex lock; /* guards: */
    weir__tls_settings *settings;
    weir_tls_choose_fn *choose;
    void *choose_data;
    weir__sni_map names; /* each keeps its context, unless that is this one */

    struct {
        _Atomic uint64_t handshakes;
        _Atomic uint64_t resumed;
        _Atomic uint64_t failed;
        _Atomic uint64_t reloads;
    } stats;
};

/* Relaxed: each figure stands by itself, and nothing hangs on it. */
static void count(_Atomic uint64_t *figure)
{
    atomic_fetch_add_explicit(figure, 1, memory_order_relaxed);
}

/* ---- new settings ---- */

static int make_settings(weir_tls_context *context, const weir_tls_context_options *options,
                         weir__tls_settings **ret_settings)
{
    char reason[WEIR__TLS_REASON_SIZE] = "";
    int err = context->engine->settings_create(options, context->is_server, reason, ret_settings);

    return err < 0 ? weir__tls_fail(err, "%s", reason) : 0;
}

/* Holds `changing`. */
static void put_in_place(weir_tls_context *context, weir__tls_settings *settings)
{
    weir__tls_settings *former = context->settings; /* nobody else changes it */

    if (former != NULL)
        context->engine->settings_inherit(settings, former);
    weir__mutex_lock(&context->lock);
    context->settings = settings;
    context->choose = context->options->choose;
    context->choose_data = context->options->choose_data;
    weir__mutex_unlock(&context->lock);
    if (former != NULL)
        context->engine->settings_release(former);
}

/* The keys of its own stay the same, so that clients find their sessions again. */
static int add_tickets(weir_tls_context *context, weir_tls_context_options *options)
{
    int err;

    if (!context->is_server || options->no_resumption || options->tickets != NULL)
        return 0;
    if (context->tickets == NULL) {
        err = weir_tls_tickets_create(0, &context->tickets);
        if (err < 0)
            return err;
    }
    options->tickets = context->tickets;
    return 0;
}

/* Holds `changing`, or is alone. If it fails all is as it was. */
static int take_options(weir_tls_context *context, const weir_tls_context_options *given)
{
    weir_tls_context_options options, *copy;
    weir__tls_settings *settings;
    int err = weir__options_read(&options, sizeof(options), given);

    if (err < 0)
        return weir__tls_fail(err, "the options are of a version that is not known here");
    err = weir__tls_context_options_check(&options, context->is_server);
    if (err == 0)
        err = add_tickets(context, &options);
    if (err < 0)
        return err;
    copy = weir__tls_context_options_copy(&options);
    if (copy == NULL)
        return -ENOMEM;
    err = make_settings(context, copy, &settings);
    if (err < 0) {
        weir__tls_context_options_free(copy);
        return err;
    }
    weir__tls_context_options_free(context->options);
    context->options = copy;
    put_in_place(context, settings);
    return 0;
}

/* ---- life ---- */

static void destroy(weir_tls_context *context)
{
    weir_tls_context *other;

    while ((other = weir__sni_map_pop(&context->names)) != NULL)
        if (other != context)
            weir_tls_context_release(other);
    weir__sni_map_deinit(&context->names);
    if (context->settings != NULL)
        context->engine->settings_release(context->settings);
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
    *context = (weir_tls_context){.is_server = is_server, .engine = &weir__tls_openssl};
    weir__refs_init(&context->refs);
    weir__mutex_init(&context->changing);
    weir__mutex_init(&context->lock);
    err = take_options(context, options);
    if (err < 0) {
        err = weir__tls_complain(context->is_server, err);
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

/* ---- other settings ---- */

static int changed(weir_tls_context *context, int err)
{
    weir__mutex_unlock(&context->changing);
    if (err < 0)
        return weir__tls_complain(context->is_server, err);
    count(&context->stats.reloads);
    return 0;
}

int weir_tls_context_reload(weir_tls_context *context)
{
    weir__tls_settings *settings;
    int err;

    weir__mutex_lock(&context->changing);
    err = make_settings(context, context->options, &settings);
    if (err == 0)
        put_in_place(context, settings);
    return changed(context, err);
}

int weir_tls_context_replace(weir_tls_context *context, const weir_tls_context_options *options)
{
    weir__mutex_lock(&context->changing);
    return changed(context, take_options(context, options));
}

/* ---- names ---- */

static int check_name(const weir_tls_context *context, const char *name,
                      const weir_tls_context *other)
{
    if (!context->is_server || (other != NULL && !other->is_server))
        return weir__tls_fail(-EINVAL, "a client has no names");
    if (!weir__tls_name_is_valid(name))
        return weir__tls_fail(-EINVAL, "\"%s\" cannot be a server's name",
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
        return weir__tls_fail(err, "there is no name \"%s\" to be forgotten", name);
    return err < 0 ? weir__tls_fail(err, "%s", weir_error_text(err)) : 0;
}

weir_tls_context *weir__tls_context_find(weir_tls_context *context, const char *name)
{
    weir_tls_context *found;

    weir__mutex_lock(&context->lock);
    found = weir__sni_map_find(&context->names, name);
    /* Under the lock: the name keeps it for so long. */
    found = weir_tls_context_retain(found != NULL ? found : context);
    weir__mutex_unlock(&context->lock);
    return found;
}

weir_tls_choose_fn *weir__tls_context_chooser(weir_tls_context *context, void **ret_user_data)
{
    weir_tls_choose_fn *choose;

    weir__mutex_lock(&context->lock);
    choose = context->choose;
    *ret_user_data = context->choose_data;
    weir__mutex_unlock(&context->lock);
    return choose;
}

/* ---- what it has ---- */

bool weir__tls_context_is_server(const weir_tls_context *context)
{
    return context->is_server;
}

/* Settings of before a replace and the chooser of after it would be neither: whom the one refuses
 * by verification, and the other by name, would be let in. */
weir__tls_settings *weir__tls_context_begin(weir_tls_context *context, bool *ret_asks)
{
    weir__tls_settings *settings;

    weir__mutex_lock(&context->lock);
    settings = context->engine->settings_retain(context->settings);
    *ret_asks = context->choose != NULL || context->names.count > 0;
    weir__mutex_unlock(&context->lock);
    return settings;
}

weir__tls_settings *weir__tls_context_settings(weir_tls_context *context)
{
    bool asks;

    return weir__tls_context_begin(context, &asks);
}

weir_tls_certificate *weir_tls_context_certificate(weir_tls_context *context)
{
    weir__tls_settings *settings = weir__tls_context_settings(context);
    weir_tls_certificate *certificate = context->engine->settings_certificate(settings);

    context->engine->settings_release(settings);
    return certificate;
}

/* ---- figures ---- */

void weir__tls_context_count(weir_tls_context *context, int err, bool is_resumed)
{
    count(err < 0 ? &context->stats.failed : &context->stats.handshakes);
    if (err == 0 && is_resumed)
        count(&context->stats.resumed);
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
