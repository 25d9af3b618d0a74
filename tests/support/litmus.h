/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Litmus test of a reference count: two threads retain and release on behalf of one reference,
 * which the test holds. A change of the count that is not one read-modify-write loses some of
 * theirs: then the object is destroyed too early, or never. TSan does not report it, since loads
 * and stores are atomic, too.
 *
 *     litmus_references(retain, release, object);
 *     assert that the object has not been destroyed;
 *     release the test's reference;
 *     assert that now it has
 */
#ifndef WEIR_TEST_LITMUS_H
#define WEIR_TEST_LITMUS_H

#include <stdint.h>

#include <weir/thread.h>

/* Rounds of a thread while the other one ran, too. */
#ifdef __SANITIZE_THREAD__
#define LITMUS_ROUNDS 10000 /* for its reports alone */
#else
#define LITMUS_ROUNDS 1000000
#endif

void litmus_references(weir_thread_fn *retain, weir_thread_fn *release, void *object);

/*
 * Calls fn(arg) on two threads until one of them has called it `rounds` times while the other one
 * ran, too; or 50 times as often altogether, if there is one CPU. Returns the number of calls.
 */
uint64_t litmus_run(weir_thread_fn *fn, void *arg, uint64_t rounds);

/*
 * Calls first(first_arg) on another thread, and when it has returned then(then_arg) on this one.
 * Only what they do themselves orders them: TSan reports it if that is too little.
 */
void litmus_last_use(weir_thread_fn *first, void *first_arg, weir_thread_fn *then, void *then_arg);

#endif
