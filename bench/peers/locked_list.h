/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peers/locked_list.h - tasks for a loop whose library can only wake it: a list under a mutex,
 * which the loop takes whole. Only who adds to an empty list need wake the loop.
 */
#ifndef BENCH_PEERS_LOCKED_LIST_H
#define BENCH_PEERS_LOCKED_LIST_H

#include "executor/competitor.h"

#include <stdalign.h>

struct task {
    alignas(BENCH_LINE) struct task *next;
    task_fn *fn;
    void *arg;
};

struct locked_list {
    alignas(BENCH_LINE) pthread_mutex_t lock;
    struct task *first;
    struct task **end;
};

static inline void locked_list_init(struct locked_list *list)
{
    pthread_mutex_init(&list->lock, NULL);
    list->first = NULL;
    list->end = &list->first;
}

static inline void locked_list_deinit(struct locked_list *list)
{
    pthread_mutex_destroy(&list->lock);
}

/* True if the list was empty. */
static inline bool locked_list_add(struct locked_list *list, struct task *task, task_fn *fn,
                                   void *arg)
{
    bool was_empty;

    task->next = NULL;
    task->fn = fn;
    task->arg = arg;
    pthread_mutex_lock(&list->lock);
    was_empty = list->first == NULL;
    *list->end = task;
    list->end = &task->next;
    pthread_mutex_unlock(&list->lock);
    return was_empty;
}

static inline void locked_list_run(struct locked_list *list)
{
    struct task *task;

    pthread_mutex_lock(&list->lock);
    task = list->first;
    list->first = NULL;
    list->end = &list->first;
    pthread_mutex_unlock(&list->lock);

    for (struct task *next; task != NULL; task = next) {
        next = task->next;
        task->fn(task->arg, 0);
    }
}

#endif
