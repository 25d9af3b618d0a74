/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thread-local variables, by index.
 *
 *     thread A   slots -> [hooks][  v ][    ][  v ] ...      one slot per weir_local, by its index
 *     thread B   slots -> [     ][  v ] ...                  grown when the thread sets a value
 *
 * A slot stores on_remove beside the value, so that a weir_local may be released while other
 * threads still have values of it. A pthread key, set when a thread gets its slots, calls
 * weir_locals_remove_all when a thread ends that was not started by weir.
 */
#include "base/local.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "os/thread.h"

#define SLOTS_MIN 32u
#define INDEX_LIMIT 65536u
#define ROUNDS_MAX 8

struct slot {
    void *value; /* NULL = unset */
    weir_local_remove_fn *on_remove;
};

static _Thread_local struct {
    struct slot *slots;
    uint32_t capacity;
} locals;

static _Atomic uint32_t next_index = WEIR__LOCAL_EXIT_HOOKS + 1;

static weir__once key_once = WEIR__ONCE_INIT;
static pthread_key_t key;
static int key_err;

int weir_local_create(weir_local_remove_fn *on_remove, weir_local **ret_local)
{
    weir_local *local = weir__alloc(sizeof(*local));

    if (local == NULL)
        return -ENOMEM;
    local->on_remove = on_remove;
    /* Relaxed: an index only has to be unique. */
    local->index = atomic_fetch_add_explicit(&next_index, 1, memory_order_relaxed);
    if (local->index >= INDEX_LIMIT) {
        atomic_fetch_sub_explicit(&next_index, 1, memory_order_relaxed);
        weir__free(local);
        return -ENOSPC;
    }
    *ret_local = local;
    return 0;
}

void weir_local_release(weir_local *local)
{
    weir__free(local);
}

void *weir_local_get(const weir_local *local)
{
    return local->index < locals.capacity ? locals.slots[local->index].value : NULL;
}

static void on_thread_exit(void *value)
{
    (void)value;
    weir_locals_remove_all();
}

static void create_key(void)
{
    key_err = -pthread_key_create(&key, on_thread_exit);
}

static int register_destructor(void)
{
    weir__once_run(&key_once, create_key);
    if (key_err < 0)
        return key_err;
    return -pthread_setspecific(key, &locals);
}

static int grow_to(uint32_t index)
{
    uint32_t capacity = SLOTS_MIN;
    struct slot *slots;
    int err = register_destructor();

    if (err < 0)
        return err;
    while (capacity <= index)
        capacity *= 2;
    slots = weir__realloc(locals.slots, capacity * sizeof(*slots));
    if (slots == NULL)
        return -ENOMEM;
    memset(slots + locals.capacity, 0, (capacity - locals.capacity) * sizeof(*slots));
    locals.slots = slots;
    locals.capacity = capacity;
    return 0;
}

int weir_local_set(const weir_local *local, void *value)
{
    if (local->index >= locals.capacity) {
        int err = value != NULL ? grow_to(local->index) : 0;

        if (err < 0 || value == NULL)
            return err;
    }
    locals.slots[local->index] = (struct slot){value, local->on_remove};
    return 0;
}

/* on_remove may set values and thereby move the slots: no pointer is kept across the call. */
static bool remove_at(uint32_t index)
{
    struct slot removed;

    if (index >= locals.capacity || locals.slots[index].value == NULL)
        return false;
    removed = locals.slots[index];
    locals.slots[index].value = NULL;
    if (removed.on_remove != NULL)
        removed.on_remove(removed.value);
    return true;
}

void weir_local_remove(const weir_local *local)
{
    (void)remove_at(local->index);
}

static bool remove_values_once(void)
{
    bool removed = false;

    for (uint32_t i = WEIR__LOCAL_EXIT_HOOKS + 1; i < locals.capacity; i++)
        removed |= remove_at(i);
    return removed;
}

static bool run_exit_hooks_once(void)
{
    return remove_at(WEIR__LOCAL_EXIT_HOOKS);
}

static void repeat(bool (*once)(void), const char *what)
{
    for (int round = 0; round < ROUNDS_MAX; round++)
        if (!once())
            return;
    weir__warn("local", NULL, "an ending thread still adds %s after %d rounds", what, ROUNDS_MAX);
}

void weir_locals_remove_all(void)
{
    repeat(remove_values_once, "values");
    repeat(run_exit_hooks_once, "exit hooks");
    repeat(remove_values_once, "values");

    weir__free(locals.slots);
    locals.slots = NULL;
    locals.capacity = 0;
}
