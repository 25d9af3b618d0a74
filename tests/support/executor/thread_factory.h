/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread factory whose threads are counted and joined, and which can refuse.
 *
 *     struct workshop workshop;
 *     workshop_open(&workshop);
 *     weir_group_create(WEIR_GROUP_OPTIONS(.thread_factory = &workshop.factory, ...), &group);
 *     ...
 *     workshop_close(&workshop);    all threads have returned, and freed what was theirs
 */
#ifndef WEIR_TEST_THREAD_FACTORY_H
#define WEIR_TEST_THREAD_FACTORY_H

#include <stdatomic.h>

#include <weir/thread.h>

#include "os/thread.h"

#define WORKSHOP_THREADS_MAX 64

struct workshop {
    weir_thread_factory factory;
    _Atomic int answer;       /* what start returns instead of making a thread, if not 0 */
    _Atomic unsigned asked;   /* calls of start */
    _Atomic unsigned started; /* threads made */
    struct {
        char name[16]; /* as asked for */
        weir__thread thread;
    } threads[WORKSHOP_THREADS_MAX];
};

void workshop_open(struct workshop *workshop);
void workshop_close(struct workshop *workshop);

#endif
