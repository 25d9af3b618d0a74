/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rebuilds the backend of a loop when it fails.
 *
 *      a wait failed, or 512 in a row ended early for no reason
 *          and a wait succeeded since the last rebuild:    rebuilt at once
 *          and none did, or the rebuild failed:            rebuilt after a backoff
 *
 * During the backoff there is no backend: the loop sleeps on its eventfd and runs tasks and timers.
 * The backoff starts at 10 ms and doubles up to 1 s.
 */
#include "loop/loop.h"

#include <weir/error.h>

#include "base/log.h"

#define PREMATURE_MAX 512
#define BACKOFF_MIN_NS weir_ms(10)
#define BACKOFF_MAX_NS weir_seconds(1)
#define LOG_INTERVAL_NS weir_seconds(1) /* between two equal messages */

static const char FAILED[] = "failed and is rebuilt";
static const char SPINS[] = "keeps returning without events and is rebuilt";
static const char REFUSED[] = "cannot be rebuilt";

void weir__loop_health_init(weir__loop *loop)
{
    loop->health.err = 0;
    loop->health.premature = 0;
    loop->health.backoff_ns = 0;
    loop->health.retry_at_ns = WEIR_NEVER;
}

static bool is_premature(const weir__io *io, int64_t deadline_ns)
{
    return weir__monotonic_now() < weir__earlier(deadline_ns, io->retry_at_ns);
}

/* A wait that did not block says nothing, unless it failed. */
void weir__loop_check_wait(weir__loop *loop, int64_t deadline_ns, int result)
{
    const weir__io *io = loop->io;

    if (result < 0) {
        loop->health.err = result;
        return;
    }
    if (io->broken || deadline_ns == 0 || weir__io_has_pending(io))
        return;
    if (!io->woken && !io->interrupted && is_premature(io, deadline_ns)) {
        loop->health.premature++;
    } else {
        loop->health.premature = 0;
        loop->health.backoff_ns = 0;
    }
}

void weir__loop_back_off(weir__loop *loop)
{
    int64_t now_ns = weir__monotonic_now(), backoff_ns = 2 * loop->health.backoff_ns;

    if (backoff_ns < BACKOFF_MIN_NS)
        backoff_ns = BACKOFF_MIN_NS;
    loop->health.backoff_ns = backoff_ns < BACKOFF_MAX_NS ? backoff_ns : BACKOFF_MAX_NS;
    if (loop->health.retry_at_ns == WEIR_NEVER)
        loop->health.broken_at_ns = now_ns;
    loop->health.retry_at_ns = now_ns + loop->health.backoff_ns;
    loop->io->broken = true;
}

/* A backend that keeps failing does not flood the log. */
static void log_error(weir__loop *loop, const char *what, int err)
{
    const char *name = loop->executor.name, *backend = loop->io->type->name;
    int64_t now_ns = weir__monotonic_now();

    if (what == loop->health.last_error && now_ns < loop->health.muted_until_ns) {
        loop->health.suppressed++;
        return;
    }
    loop->health.last_error = what;
    loop->health.muted_until_ns = now_ns + LOG_INTERVAL_NS;
    if (loop->health.suppressed > 0)
        weir__warn("loop", name, "%u messages about the %s backend were suppressed",
                   loop->health.suppressed, backend);
    loop->health.suppressed = 0;
    if (err < 0)
        weir__error("loop", name, "the %s backend %s: %s", backend, what, weir_error_text(err));
    else
        weir__error("loop", name, "the %s backend %s", backend, what);
}

/* The backoff stays set until the next good wait: without one, the rebuild has not helped. */
static void note_rebuilt(weir__loop *loop)
{
    if (loop->health.retry_at_ns != WEIR_NEVER)
        weir__warn("loop", loop->executor.name, "the %s backend works again after %lld ms",
                   loop->io->type->name,
                   (long long)((weir__monotonic_now() - loop->health.broken_at_ns) / weir_ms(1)));
    loop->health.retry_at_ns = WEIR_NEVER;
    if (loop->health.backoff_ns == 0)
        loop->health.backoff_ns = BACKOFF_MIN_NS / 2;
    weir__counter_add(loop->stats.rebuilds, 1);
}

static void rebuild(weir__loop *loop)
{
    int err = weir__io_rebuild(loop->io);

    loop->has_leftover = false;
    loop->ready_events = 0;
    if (err < 0) {
        log_error(loop, REFUSED, err);
        weir__loop_back_off(loop);
    } else {
        note_rebuilt(loop);
    }
}

void weir__loop_rebuild(weir__loop *loop)
{
    int err = loop->health.err;

    if (err < 0 || loop->health.premature >= PREMATURE_MAX) {
        log_error(loop, err < 0 ? FAILED : SPINS, err);
        loop->health.err = 0;
        loop->health.premature = 0;
        if (loop->health.backoff_ns > 0)
            weir__loop_back_off(loop);
        else
            rebuild(loop);
    } else if (loop->health.retry_at_ns != WEIR_NEVER &&
               weir__monotonic_now() >= loop->health.retry_at_ns) {
        rebuild(loop);
    }
}
