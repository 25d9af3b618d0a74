/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A temporary folder with files and links, for tests; removed with everything in it.
 *
 *     disk_tree *tree = disk_tree_create();
 *     disk_tree_file(tree, "root/folder/name", "hello");    makes the folders, too
 *     disk_tree_link(tree, "root/link", "folder/name");
 */
#ifndef WEIR_TEST_DISK_TREE_H
#define WEIR_TEST_DISK_TREE_H

#include <stddef.h>
#include <stdint.h>

typedef struct disk_tree {
    char path[64];
    char scratch[512];
} disk_tree;

disk_tree *disk_tree_create(void);
void disk_tree_destroy(disk_tree *tree);

/* The absolute path of something in the tree; valid until the next call. */
const char *disk_tree_path(disk_tree *tree, const char *path);

void disk_tree_folder(disk_tree *tree, const char *path);
void disk_tree_file(disk_tree *tree, const char *path, const char *text);
void disk_tree_bytes(disk_tree *tree, const char *path, const void *bytes, size_t length);
void disk_tree_link(disk_tree *tree, const char *path, const char *target);
void disk_tree_pipe(disk_tree *tree, const char *path);

/* Sets the modification time, in seconds since 1970. */
void disk_tree_set_time(disk_tree *tree, const char *path, int64_t seconds);
void disk_tree_truncate(disk_tree *tree, const char *path, int64_t length);
void disk_tree_remove(disk_tree *tree, const char *path);

#endif
