/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reference counts, alone and shared.
 */
#include "support/test.h"

#include "base/memory.h"
#include "base/refcount.h"
#include "os/thread.h"
#include "support/litmus.h"

TEST(refcount, a_sole_owner_releases_the_last_reference)
{
    weir__refs refs;

    weir__refs_init(&refs);
    assert_true(weir__refs_release(&refs));
}

TEST(refcount, only_the_last_release_is_the_last)
{
    weir__refs refs;

    weir__refs_init(&refs);
    weir__refs_retain(&refs);
    weir__refs_retain(&refs);
    assert_false(weir__refs_release(&refs));
    assert_false(weir__refs_release(&refs));
    assert_true(weir__refs_release(&refs));
}

#define THREADS 4
#define ROUNDS 2000

struct shared {
    weir__refs refs;
    int written[THREADS]; /* plain: only the count orders them with the reads of the last owner */
};

static struct shared *objects[ROUNDS];
static _Atomic int freed, wrong;

static void release_one(struct shared *object)
{
    int sum = 0;

    if (!weir__refs_release(&object->refs))
        return;
    for (int i = 0; i < THREADS; i++)
        sum += object->written[i];
    if (sum != THREADS)
        atomic_fetch_add(&wrong, 1);
    atomic_fetch_add(&freed, 1);
    weir__free(object);
}

/* Every other time with a second reference, so that both ways to be the last are tested. */
static void write_and_release(void *arg)
{
    int me = *(int *)arg;

    for (int i = 0; i < ROUNDS; i++) {
        objects[i]->written[me] = 1;
        if (i % 2 == 0) {
            weir__refs_retain(&objects[i]->refs);
            release_one(objects[i]);
        }
        release_one(objects[i]);
    }
}

TEST(refcount, the_last_of_several_threads_sees_what_the_others_did)
{
    weir__thread threads[THREADS];
    int numbers[THREADS];

    for (int i = 0; i < ROUNDS; i++) {
        objects[i] = weir__zalloc(sizeof(*objects[i]));
        weir__refs_init(&objects[i]->refs);
        for (int j = 1; j < THREADS; j++)
            weir__refs_retain(&objects[i]->refs);
    }
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        assert_int_equal(weir__thread_start("owner", write_and_release, &numbers[i], &threads[i]),
                         0);
    }
    for (int i = 0; i < THREADS; i++)
        weir__thread_join(&threads[i]);
    assert_int_equal(atomic_load(&freed), ROUNDS);
    assert_int_equal(atomic_load(&wrong), 0);
}

static _Atomic int last_releases;

static void retain(void *arg)
{
    weir__refs_retain(arg);
}

static void release(void *arg)
{
    if (weir__refs_release(arg))
        atomic_fetch_add(&last_releases, 1);
}

TEST(refcount, of_one_holder_is_changed_by_two_threads)
{
    weir__refs refs;

    weir__refs_init(&refs);
    litmus_references(retain, release, &refs);
    assert_int_equal(atomic_load(&last_releases), 0);
    assert_true(weir__refs_release(&refs));
}
