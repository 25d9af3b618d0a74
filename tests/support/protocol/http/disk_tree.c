/* SPDX-License-Identifier: Apache-2.0 */
#include "support/protocol/http/disk_tree.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/test.h"

disk_tree *disk_tree_create(void)
{
    disk_tree *tree = calloc(1, sizeof(*tree));

    assert_non_null(tree);
    (void)snprintf(tree->path, sizeof(tree->path), "/tmp/weir-tree-XXXXXX");
    assert_non_null(mkdtemp(tree->path));
    return tree;
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *where)
{
    (void)status;
    (void)type;
    (void)where;
    return remove(path);
}

void disk_tree_destroy(disk_tree *tree)
{
    assert_int_equal(nftw(tree->path, remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
    free(tree);
}

const char *disk_tree_path(disk_tree *tree, const char *path)
{
    (void)snprintf(tree->scratch, sizeof(tree->scratch), "%s/%s", tree->path, path);
    return tree->scratch;
}

/* Makes the folders above a path. */
static void make_parents(disk_tree *tree, const char *path)
{
    char *at;

    (void)disk_tree_path(tree, path);
    for (at = tree->scratch + strlen(tree->path) + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        (void)mkdir(tree->scratch, 0755);
        *at = '/';
    }
}

void disk_tree_folder(disk_tree *tree, const char *path)
{
    make_parents(tree, path);
    assert_int_equal(mkdir(disk_tree_path(tree, path), 0755), 0);
}

void disk_tree_bytes(disk_tree *tree, const char *path, const void *bytes, size_t length)
{
    FILE *file;

    make_parents(tree, path);
    file = fopen(disk_tree_path(tree, path), "we");
    assert_non_null(file);
    assert_true(fwrite(bytes, 1, length, file) == length);
    assert_int_equal(fclose(file), 0);
}

void disk_tree_file(disk_tree *tree, const char *path, const char *text)
{
    disk_tree_bytes(tree, path, text, strlen(text));
}

void disk_tree_link(disk_tree *tree, const char *path, const char *target)
{
    make_parents(tree, path);
    assert_int_equal(symlink(target, disk_tree_path(tree, path)), 0);
}

void disk_tree_pipe(disk_tree *tree, const char *path)
{
    make_parents(tree, path);
    assert_int_equal(mkfifo(disk_tree_path(tree, path), 0644), 0);
}

void disk_tree_set_time(disk_tree *tree, const char *path, int64_t seconds)
{
    const struct timespec times[2] = {{.tv_sec = (time_t)seconds}, {.tv_sec = (time_t)seconds}};

    assert_int_equal(utimensat(AT_FDCWD, disk_tree_path(tree, path), times, 0), 0);
}

void disk_tree_truncate(disk_tree *tree, const char *path, int64_t length)
{
    assert_int_equal(truncate(disk_tree_path(tree, path), (off_t)length), 0);
}

void disk_tree_remove(disk_tree *tree, const char *path)
{
    assert_int_equal(remove(disk_tree_path(tree, path)), 0);
}
