/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A mutex for short critical sections. Header-only, so that libweir-tls, which cannot call hidden
 * functions of libweir, can use it.
 */
#ifndef WEIR_OS_MUTEX_H
#define WEIR_OS_MUTEX_H

#include <assert.h>
#include <pthread.h>

typedef struct weir__mutex {
    pthread_mutex_t handle;
} weir__mutex;

/* clang-format off */
#define WEIR__MUTEX_INIT {PTHREAD_MUTEX_INITIALIZER}
/* clang-format on */

/* Cannot fail with default attributes, in glibc or musl. */
static inline void weir__mutex_init(weir__mutex *mutex)
{
    (void)pthread_mutex_init(&mutex->handle, NULL);
}

static inline void weir__mutex_deinit(weir__mutex *mutex)
{
    int err = pthread_mutex_destroy(&mutex->handle);

    assert(err == 0);
    (void)err;
}

static inline void weir__mutex_lock(weir__mutex *mutex)
{
    int err = pthread_mutex_lock(&mutex->handle);

    assert(err == 0);
    (void)err;
}

static inline void weir__mutex_unlock(weir__mutex *mutex)
{
    int err = pthread_mutex_unlock(&mutex->handle);

    assert(err == 0);
    (void)err;
}

#endif
