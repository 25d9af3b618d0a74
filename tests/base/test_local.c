/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thread-local variables and their removal.
 */
#include "support/test.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <weir/log.h>
#include <weir/thread.h>

#include "base/local.h"
#include "os/thread.h"
#include "support/memory.h"

static _Atomic int removals;
static void *_Atomic last_removed;

static void on_remove(void *value)
{
    atomic_fetch_add(&removals, 1);
    atomic_store(&last_removed, value);
}

static weir_local *create(weir_local_remove_fn *fn)
{
    weir_local *local;

    assert_int_equal(weir_local_create(fn, &local), 0);
    atomic_store(&removals, 0);
    atomic_store(&last_removed, NULL);
    return local;
}

TEST(local, is_unset_at_first)
{
    weir_local *local = create(on_remove);

    assert_null(weir_local_get(local));
    weir_local_remove(local);
    assert_int_equal(removals, 0);
    weir_local_release(local);
    weir_local_release(NULL);
}

TEST(local, keeps_what_was_set)
{
    weir_local *a = create(on_remove), *b = create(on_remove);
    int x, y;

    assert_int_equal(weir_local_set(a, &x), 0);
    assert_int_equal(weir_local_set(b, &y), 0);
    assert_ptr_equal(weir_local_get(a), &x);
    assert_ptr_equal(weir_local_get(b), &y);
    weir_locals_remove_all();
    assert_int_equal(removals, 2);
    weir_local_release(a);
    weir_local_release(b);
}

TEST(local, remove_calls_the_remover_and_set_does_not)
{
    weir_local *local = create(on_remove);
    int x, y;

    assert_int_equal(weir_local_set(local, &x), 0);
    assert_int_equal(weir_local_set(local, &y), 0);
    assert_int_equal(weir_local_set(local, NULL), 0);
    assert_int_equal(removals, 0);
    assert_null(weir_local_get(local));

    assert_int_equal(weir_local_set(local, &x), 0);
    weir_local_remove(local);
    assert_int_equal(removals, 1);
    assert_ptr_equal(last_removed, &x);
    assert_null(weir_local_get(local));
    weir_local_release(local);
}

TEST(local, needs_no_remover)
{
    weir_local *local = create(NULL);
    int x;

    assert_int_equal(weir_local_set(local, &x), 0);
    weir_local_remove(local);
    assert_null(weir_local_get(local));
    assert_int_equal(weir_local_set(local, &x), 0);
    weir_locals_remove_all();
    assert_null(weir_local_get(local));
    weir_local_release(local);
}

TEST(local, unsetting_what_was_never_set_takes_no_memory)
{
    weir_local *local = create(on_remove);
    size_t before = test_memory_allocations();

    assert_int_equal(weir_local_set(local, NULL), 0);
    assert_int_equal(test_memory_allocations(), before);
    weir_local_release(local);
}

struct other {
    weir_local *local;
    void *found;
    int own;
};

static void set_own(void *arg)
{
    struct other *other = arg;

    other->found = weir_local_get(other->local);
    if (weir_local_set(other->local, &other->own) < 0)
        abort();
}

TEST(local, each_thread_has_its_own_and_removes_it_at_its_end)
{
    struct other other = {.local = create(on_remove), .found = &other};
    weir__thread thread;
    int mine;

    assert_int_equal(weir_local_set(other.local, &mine), 0);
    assert_int_equal(weir__thread_start("other", set_own, &other, &thread), 0);
    weir__thread_join(&thread);
    assert_null(other.found);
    assert_int_equal(removals, 1);
    assert_ptr_equal(last_removed, &other.own);
    assert_ptr_equal(weir_local_get(other.local), &mine);
    weir_locals_remove_all();
    assert_int_equal(removals, 2);
    weir_local_release(other.local);
}

static _Atomic int step;

static void set_own_and_wait(void *arg)
{
    set_own(arg);
    atomic_store(&step, 1);
    while (atomic_load(&step) != 2)
        weir__thread_yield();
}

TEST(local, may_be_released_while_other_threads_have_values)
{
    struct other other = {.local = create(on_remove)};
    weir__thread thread;

    atomic_store(&step, 0);
    assert_int_equal(weir__thread_start("other", set_own_and_wait, &other, &thread), 0);
    while (atomic_load(&step) != 1)
        weir__thread_yield();
    weir_local_release(other.local);
    atomic_store(&step, 2);
    weir__thread_join(&thread);
    assert_int_equal(removals, 1);
    assert_ptr_equal(last_removed, &other.own);
}

TEST(local, an_index_is_not_used_twice)
{
    weir_local *first = create(on_remove), *second;
    int x;

    assert_int_equal(weir_local_set(first, &x), 0);
    weir_local_release(first);
    second = create(on_remove);
    assert_null(weir_local_get(second));
    weir_locals_remove_all();
    assert_int_equal(removals, 1);
    weir_local_release(second);
}

#define MANY 200

TEST(local, grows_to_many_variables)
{
    weir_local *many[MANY];
    int values[MANY];

    for (int i = 0; i < MANY; i++)
        many[i] = create(on_remove);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(weir_local_set(many[i], &values[i]), 0);
    for (int i = 0; i < MANY; i++)
        assert_ptr_equal(weir_local_get(many[i]), &values[i]);
    weir_locals_remove_all();
    assert_int_equal(removals, MANY);
    for (int i = 0; i < MANY; i++) {
        assert_null(weir_local_get(many[i]));
        weir_local_release(many[i]);
    }
}

static struct {
    weir_local *local;
    int left;
} again;

static void set_again(void *value)
{
    on_remove(value);
    if (again.left-- > 0)
        if (weir_local_set(again.local, value) < 0)
            abort();
}

TEST(local, values_set_by_a_remover_are_removed_too)
{
    int x;

    again.local = create(set_again);
    again.left = 3;
    assert_int_equal(weir_local_set(again.local, &x), 0);
    weir_locals_remove_all();
    assert_int_equal(removals, 4);
    assert_null(weir_local_get(again.local));
    weir_local_release(again.local);
}

static void count_warnings(void *user_data, enum weir_log_level level, const char *subsystem,
                           const char *object, const char *message)
{
    (void)level, (void)subsystem, (void)object, (void)message;
    ++*(int *)user_data;
}

TEST(local, a_remover_that_never_stops_is_stopped_and_hooks_still_run)
{
    int x, warnings = 0, hook_ran = 0;

    again.local = create(set_again);
    again.left = 1000;
    weir_log_set(count_warnings, &warnings);
    assert_int_equal(weir_local_set(again.local, &x), 0);
    assert_int_equal(weir_thread_on_exit(on_remove, &hook_ran), 0);
    weir_locals_remove_all();
    weir_log_set(NULL, NULL);

    assert_int_equal(removals, 8 + 1 + 8);
    assert_true(warnings > 0);
    assert_null(weir_local_get(again.local));
    weir_local_release(again.local);
}

static weir_local *seen_by_hook;
static void *value_in_hook;

static void look_and_set(void *arg)
{
    value_in_hook = weir_local_get(seen_by_hook);
    if (weir_local_set(seen_by_hook, arg) < 0)
        abort();
}

TEST(local, exit_hooks_run_after_the_values_are_gone_and_what_they_set_goes_too)
{
    int x, y;

    seen_by_hook = create(on_remove);
    value_in_hook = &x;
    assert_int_equal(weir_thread_on_exit(look_and_set, &y), 0);
    assert_int_equal(weir_local_set(seen_by_hook, &x), 0);
    weir_locals_remove_all();
    assert_null(value_in_hook);
    assert_int_equal(removals, 2);
    assert_ptr_equal(last_removed, &y);
    weir_local_release(seen_by_hook);
}

static weir_local *late_local;
static int late_value;

static void set_late(void *arg)
{
    (void)arg;
    if (weir_local_set(late_local, &late_value) < 0)
        abort();
}

static void *set_before_the_destructor_of(void *key)
{
    if (weir_local_set(late_local, &late_value) < 0)
        abort();
    pthread_setspecific(*(pthread_key_t *)key, key);
    return NULL;
}

/* Destructors of other keys run before and after ours; values they set must not leak. */
TEST(local, values_set_by_a_destructor_of_another_key_are_removed)
{
    pthread_key_t key;
    pthread_t thread;

    late_local = create(on_remove);
    pthread_key_create(&key, set_late);
    assert_int_equal(pthread_create(&thread, NULL, set_before_the_destructor_of, &key), 0);
    pthread_join(thread, NULL);
    pthread_key_delete(key);
    assert_true(removals >= 1);
    weir_local_release(late_local);
}

TEST(local, set_fails_without_memory)
{
    weir_local *local = NULL;
    int x, y;

    test_memory_fail_at(1);
    assert_int_equal(weir_local_create(on_remove, &local), -ENOMEM);
    assert_null(local);

    local = create(on_remove);
    test_memory_fail_at(1);
    assert_int_equal(weir_local_set(local, &x), -ENOMEM);
    assert_null(weir_local_get(local));
    assert_int_equal(weir_local_set(local, &x), 0);

    test_memory_fail_at(1);
    assert_int_equal(weir_local_set(local, &y), 0); /* a variable that is set needs no memory */
    assert_false(test_memory_failed());
    test_memory_fail_at(0);
    weir_locals_remove_all();
    assert_int_equal(removals, 1);
    weir_local_release(local);
}

/* Must be the last test of this file: it uses all indices. */
TEST(local, runs_out_of_indices)
{
    weir_local *local, *last = NULL;
    int err, count = 0, x;

    while ((err = weir_local_create(NULL, &local)) == 0) {
        weir_local_release(last);
        last = local;
        assert_true(++count < 65536);
    }
    assert_int_equal(err, -ENOSPC);
    assert_int_equal(weir_local_create(NULL, &local), -ENOSPC);
    assert_int_equal(weir_local_set(last, &x), 0); /* the largest index */
    assert_ptr_equal(weir_local_get(last), &x);
    weir_local_remove(last);
    weir_local_release(last);
}
