/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lock that is held for a short time. All of it is here, so that the libraries on top of ours,
 * which see none of its hidden functions, have it as well.
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

/* With default attributes neither libc can fail here; what can is locking it twice. */
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
