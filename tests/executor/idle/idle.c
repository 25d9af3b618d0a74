/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idle SECONDS: sleeps that long beside two executors that sleep too, one for ever and one until a
 * timer in an hour, and says `begin` and `end` to whoever traces its system calls.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <weir/group.h>
#include <weir/schedule.h>

#include "executor/executor.h"

#define PATIENCE_NS weir_seconds(10)

static void do_nothing(void *arg, int status)
{
    (void)arg;
    (void)status;
}

/* The kernel's word for what a thread does: S = it sleeps. A thread that is being traced is in t.
 */
static char thread_state(int64_t id)
{
    char path[64], state = '?';
    FILE *file;

    (void)snprintf(path, sizeof(path), "/proc/self/task/%lld/stat", (long long)id);
    file = fopen(path, "r");
    if (file == NULL)
        return state;
    if (fscanf(file, "%*d %*s %c", &state) != 1)
        state = '?';
    (void)fclose(file);
    return state;
}

/* Its deadline is published, and nothing can keep it from sleeping any more: it does. */
static bool await_sleep(weir_executor *executor, int64_t end_ns)
{
    weir_thread_properties thread;

    if (weir_executor_thread(executor, &thread) < 0)
        return false;
    while (atomic_load(&executor->next_wakeup) == WEIR__AWAKE || thread_state(thread.id) != 'S') {
        if (weir__monotonic_now() > end_ns)
            return false;
        weir__thread_yield();
    }
    return true;
}

static void say(const char *word, size_t length)
{
    if (write(STDOUT_FILENO, word, length) != (ssize_t)length)
        abort();
}

int main(int argc, char **argv)
{
    int64_t seconds = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
    int64_t end_ns = weir__monotonic_now() + PATIENCE_NS;
    weir_group *group;

    if (weir_group_create(WEIR_GROUP_OPTIONS(.threads = 2, .io = WEIR_IO_NONE), &group) < 0 ||
        weir_execute(weir_group_at(group, 0), do_nothing, NULL) < 0 ||
        weir_schedule(weir_group_at(group, 1), weir_seconds(3600), NULL, do_nothing, NULL) < 0 ||
        !await_sleep(weir_group_at(group, 0), end_ns) ||
        !await_sleep(weir_group_at(group, 1), end_ns))
        return EXIT_FAILURE;

    say("begin\n", 6);
    weir__thread_sleep(weir_seconds(seconds));
    say("end\n", 4);
    weir_group_release(group);
    return EXIT_SUCCESS;
}
