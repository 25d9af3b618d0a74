/* SPDX-License-Identifier: Apache-2.0 */
#include "support/folder.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "support/bench.h"

static char folder[] = "/tmp/weir-bench-XXXXXX";

static void path_of(const char *name, char ret_path[PATH_MAX])
{
    snprintf(ret_path, PATH_MAX, "%s/%s", bench_folder(), name);
}

static void remove_folder(void)
{
    char command[64];

    snprintf(command, sizeof(command), "rm -rf %s", folder);
    bench_require(system(command) == 0, command);
}

const char *bench_folder(void)
{
    static bool made;

    if (!made) {
        made = true;
        bench_require(mkdtemp(folder) != NULL, "mkdtemp");
        atexit(remove_folder);
    }
    return folder;
}

FILE *bench_folder_create(const char *name)
{
    char path[PATH_MAX];
    FILE *file;

    path_of(name, path);
    file = fopen(path, "w");
    bench_require(file != NULL, path);
    return file;
}

void bench_folder_write(const char *name, const char *text)
{
    FILE *file = bench_folder_create(name);

    fputs(text, file);
    fclose(file);
}

void bench_folder_write_sized(int64_t size)
{
    char name[32], path[PATH_MAX];
    FILE *file;

    snprintf(name, sizeof(name), "%lld", (long long)size);
    path_of(name, path);
    if (access(path, F_OK) == 0)
        return;
    file = bench_folder_create(name);
    for (int64_t i = 0; i < size; i++)
        putc((int)(i % 251), file);
    fclose(file);
}
