/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread factory that counts and joins its threads, and can be made to fail.
 *
 *     struct thread_factory_fixture fixture;
 *     thread_factory_open(&fixture);
 *     weir_group_create(WEIR_GROUP_OPTIONS(.thread_factory = &fixture.factory, ...), &group);
 *     ...
 *     thread_factory_close(&fixture);    all threads have ended and freed their memory
 */
#ifndef WEIR_TEST_THREAD_FACTORY_H
#define WEIR_TEST_THREAD_FACTORY_H

#include <stdatomic.h>

#include <weir/thread.h>

#include "os/thread.h"

#define THREAD_FACTORY_MAX 64

struct thread_factory_fixture {
    weir_thread_factory factory;
    _Atomic int answer;       /* if not 0, start returns it instead of starting a thread */
    _Atomic unsigned asked;   /* calls of start */
    _Atomic unsigned started; /* threads started */
    struct {
        char name[16]; /* the name given to start */
        weir__thread thread;
    } threads[THREAD_FACTORY_MAX];
};

void thread_factory_open(struct thread_factory_fixture *fixture);
void thread_factory_close(struct thread_factory_fixture *fixture);

#endif
