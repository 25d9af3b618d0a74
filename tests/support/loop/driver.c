/* SPDX-License-Identifier: Apache-2.0 */
/* A minimal loop: turns only. */
#include "support/loop/driver.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "support/loop/peer.h"
#include "support/test.h"

#define TURN_NS weir_ms(10)
#define REST_NS weir_ms(3)
#define REST_TURNS 3   /* consecutive turns without a callback that count as idle */
#define SLEEP_TURNS 50 /* more turns in a short time are a spin */

int driver_open(struct driver *driver, const struct backend *backend, char *reason, size_t size)
{
    weir__io_memory memory;
    int err;

    *driver = (struct driver){.backend = backend};
    weir__list_init(&driver->peers);
    weir__list_init(&driver->notified);
    err = backend_create(backend, &driver->io, reason, size);
    if (err < 0)
        return err;
    memory = counted_memory_functions(&driver->memory);
    weir__io_set_memory(driver->io, &memory);
    err = weir__io_begin(driver->io);
    if (err < 0) {
        (void)snprintf(reason, size, "%s: begin fails with %d", backend->name, err);
        weir__io_destroy(driver->io);
    }
    return err;
}

static bool any_attached(const struct driver *driver)
{
    weir_list_foreach (item, &driver->peers) {
        if (WEIR_CONTAINER_OF(item, struct peer, link)->handle != NULL)
            return true;
    }
    return false;
}

/* A handle that is left keeps the backend alive: destroying it would hide the culprit. */
const char *driver_close(struct driver *driver)
{
    int64_t give_up_ns = weir__monotonic_now() + TEST_TIMEOUT_NS;

    weir_list_foreach (item, &driver->peers)
        peer_close(WEIR_CONTAINER_OF(item, struct peer, link));
    while (any_attached(driver) && weir__monotonic_now() < give_up_ns)
        (void)driver_step(driver, TURN_NS);
    if (any_attached(driver)) {
        driver_fail(driver, "a closed handle was never detached");
        return driver->failure;
    }
    if (atomic_load(&driver->io->stats.handles) != 0)
        driver_fail(driver, "handles are counted that are not there");
    while (!weir__list_is_empty(&driver->peers))
        peer_free(WEIR_CONTAINER_OF(driver->peers.next, struct peer, link));
    weir__io_destroy(driver->io);
    if (driver->memory.live != 0)
        driver_fail(driver, "%zu blocks were not given back", driver->memory.live);
    return driver->failure[0] != '\0' ? driver->failure : NULL;
}

void driver_fail(struct driver *driver, const char *format, ...)
{
    va_list args;

    if (driver->failure[0] != '\0')
        return;
    va_start(args, format);
    (void)vsnprintf(driver->failure, sizeof(driver->failure), format, args);
    va_end(args);
}

bool driver_step(struct driver *driver, int64_t wait_ns)
{
    bool look = wait_ns == 0 || driver->more;
    int events = weir__io_wait(driver->io, look ? 0 : weir__monotonic_now() + wait_ns);
    weir__list *link;

    if (events < 0)
        driver_fail(driver, "the wait fails with %d", events);
    driver->turn++;
    driver->callbacks = 0;
    driver->dispatching = true;
    driver->more = weir__io_dispatch(driver->io, WEIR_NEVER);
    driver->dispatching = false;
    while ((link = weir__list_pop(&driver->notified)) != NULL)
        peer_end_turn(WEIR_CONTAINER_OF(link, struct peer, notified_link));
    return driver->failure[0] == '\0';
}

static void step_or_fail(struct driver *driver, int64_t wait_ns)
{
    if (!driver_step(driver, wait_ns))
        fail_msg("%s: %s", driver->backend->name, driver->failure);
}

void driver_turn(struct driver *driver)
{
    step_or_fail(driver, TURN_NS);
}

void driver_run_until_idle(struct driver *driver)
{
    int64_t give_up_ns = weir__monotonic_now() + TEST_TIMEOUT_NS;

    for (int quiet = 0; quiet < REST_TURNS; quiet = driver->callbacks == 0 ? quiet + 1 : 0) {
        if (weir__monotonic_now() > give_up_ns)
            fail_msg("%s never comes to rest", driver->backend->name);
        step_or_fail(driver, REST_NS);
    }
}

void driver_sleep(struct driver *driver, int64_t duration_ns)
{
    int64_t end_ns = weir__monotonic_now() + duration_ns;

    for (unsigned turns = 0; weir__monotonic_now() < end_ns; turns++) {
        if (turns > SLEEP_TURNS)
            fail_msg("%s spins", driver->backend->name);
        step_or_fail(driver, end_ns - weir__monotonic_now());
    }
}

void driver_turn_until(struct driver *driver, int64_t give_up_ns, const char *condition,
                       const char *file, int line)
{
    if (weir__monotonic_now() > give_up_ns) {
        print_error("%s: never: %s\n", driver->backend->name, condition);
        _fail(file, line);
    }
    step_or_fail(driver, TURN_NS);
}
