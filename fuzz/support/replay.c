/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The main() of a fuzz target outside of fuzzing: runs every file of the given folder, so that all
 * inputs found by fuzzers are part of each test run.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The input is copied to a block of exactly its size, so that ASan detects an overrun. */
static int replay(const char *path, size_t size)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data = malloc(size > 0 ? size : 1);
    int err = -1;

    if (file != NULL && data != NULL && fread(data, 1, size, file) == size)
        err = LLVMFuzzerTestOneInput(data, size);
    if (file != NULL)
        fclose(file);
    free(data);
    return err;
}

static int replay_folder(const char *folder, int *ret_count)
{
    DIR *entries = opendir(folder);
    struct dirent *entry;
    struct stat status;
    char path[4096];
    int err = entries == NULL ? -1 : 0;

    while (err == 0 && (entry = readdir(entries)) != NULL) {
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        if (stat(path, &status) != 0 || !S_ISREG(status.st_mode))
            continue;
        err = replay(path, (size_t)status.st_size);
        *ret_count += 1;
    }
    if (err != 0)
        perror(entries == NULL ? folder : path);
    if (entries != NULL)
        closedir(entries);
    return err;
}

int main(int argc, char **argv)
{
    int count = 0;
    int err = argc == 2 ? replay_folder(argv[1], &count) : -1;

    printf("%d inputs replayed\n", count);
    return err != 0 || count == 0;
}
