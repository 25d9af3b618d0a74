/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugin LIBRARY...: loads each library as a plugin does, unloads it while a thread of weir runs,
 * and goes on: fails unless a task that began before has returned into the library, another one
 * runs after it, and the process ends in order.
 *
 * Declarations are those of weir/executor.h; the program is not linked with weir.
 */
#include <dlfcn.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <weir/executor.h>

typedef weir_executor *global_fn(void);
typedef int execute_fn(weir_executor *executor, weir_task_fn *fn, void *arg);

static int gate[2], ended[2];

static void wait_for_the_gate(void *arg, int status)
{
    char byte;

    (void)arg;
    (void)status;
    if (read(gate[0], &byte, 1) != 1)
        _exit(2);
}

static void say_end(void *arg, int status)
{
    (void)arg;
    (void)status;
    if (write(ended[1], "x", 1) != 1)
        _exit(2);
}

/* A pointer to a function, as POSIX lets dlsym return it. */
static int find(void *library, const char *name, void *ret_function)
{
    void *address = dlsym(library, name);

    memcpy(ret_function, &address, sizeof(address));
    return address != NULL;
}

static int use_and_unload(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    struct pollfd poll_fd = {.fd = ended[0], .events = POLLIN};
    weir_executor *executor;
    execute_fn *execute;
    global_fn *global;
    char byte;

    if (library == NULL || !find(library, "weir_executor_global", &global) ||
        !find(library, "weir_execute", &execute)) {
        printf("%s\n", dlerror());
        return 0;
    }
    executor = global();
    if (execute(executor, wait_for_the_gate, NULL) < 0 || execute(executor, say_end, NULL) < 0)
        return 0;
    dlclose(library);
    return write(gate[1], "x", 1) == 1 && poll(&poll_fd, 1, 60000) == 1 &&
           read(ended[0], &byte, 1) == 1;
}

int main(int argc, char **argv)
{
    if (pipe(gate) < 0 || pipe(ended) < 0)
        return 1;
    for (int i = 1; i < argc; i++)
        if (!use_and_unload(argv[i])) {
            printf("%s cannot be unloaded\n", argv[i]);
            return 1;
        }
    return 0;
}
