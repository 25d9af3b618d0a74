/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/http/disk.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <weir/error.h>

#include "support/child.h"
#include "support/protocol/http/disk_faults.h"
#include "support/protocol/http/disk_tree.h"
#include "support/seccomp.h"
#include "support/test.h"

typedef int open_fn(int root, const char *path, uint32_t flags, int *ret_file,
                    weir__http_disk_info *ret_info);

/* Both ways to open: with openat2, and segment by segment. */
static open_fn *const ways[] = {weir__http_disk_open, weir__http_disk_open_by_segments};

struct site {
    disk_tree *tree;
    int root;
};

static struct site make_site(void)
{
    struct site site = {.tree = disk_tree_create()};

    disk_tree_file(site.tree, "root/a.txt", "a");
    disk_tree_file(site.tree, "root/folder/b.txt", "bb");
    disk_tree_file(site.tree, "root/folder/deep/c.txt", "ccc");
    disk_tree_file(site.tree, "secret.txt", "secret");
    disk_faults_install();
    assert_int_equal(weir__http_disk_open_root(disk_tree_path(site.tree, "root"), &site.root), 0);
    return site;
}

static void end_site(struct site *site)
{
    weir__http_disk_close(site->root);
    assert_int_equal(disk_faults_open_files(), 0);
    disk_faults_remove();
    disk_tree_destroy(site->tree);
}

/* Opens by both ways, which must agree; returns the size of the file, or the error. */
static int64_t size_of(const struct site *site, const char *path, uint32_t flags)
{
    weir__http_disk_info info = {0};
    int64_t results[2];

    for (size_t i = 0; i < 2; i++) {
        int file = -1, err = ways[i](site->root, path, flags, &file, &info);

        results[i] = err < 0 ? err : info.is_folder ? 0 : info.size;
        assert_true((err == 0) == (file >= 0));
        weir__http_disk_close(file);
    }
    assert_int_equal(results[0], results[1]);
    return results[0];
}

TEST(disk, opens_files_and_folders_beneath_a_root)
{
    struct site site = make_site();
    weir__http_disk_info info;
    int file;

    assert_int_equal(size_of(&site, "a.txt", 0), 1);
    assert_int_equal(size_of(&site, "folder/deep/c.txt", 0), 3);
    assert_int_equal(size_of(&site, "folder//deep/./c.txt", 0), 3);
    assert_int_equal(size_of(&site, "./a.txt", 0), 1);
    assert_int_equal(size_of(&site, "missing", 0), -ENOENT);
    assert_int_equal(size_of(&site, "a.txt/", 0), -ENOTDIR);
    assert_int_equal(size_of(&site, "a.txt/b", 0), -ENOTDIR);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(ways[i](site.root, "", 0, &file, &info), 0);
        assert_true(info.is_folder);
        weir__http_disk_close(file);
        assert_int_equal(ways[i](site.root, "folder/", 0, &file, &info), 0);
        assert_true(info.is_folder);
        weir__http_disk_close(file);
    }
    end_site(&site);
}

TEST(disk, never_leaves_the_root_by_a_path)
{
    static const char *const paths[] = {"..",
                                        "../secret.txt",
                                        "folder/../../secret.txt",
                                        "folder/..",
                                        "/etc/passwd",
                                        "//etc/passwd",
                                        "./../secret.txt",
                                        "folder/deep/../../..",
                                        "a.txt/..",
                                        "folder/..//../secret.txt"};
    struct site site = make_site();

    for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
        assert_int_equal(size_of(&site, paths[i], 0), -EINVAL);
        assert_int_equal(size_of(&site, paths[i], WEIR__HTTP_DISK_LINKS), -EINVAL);
    }
    end_site(&site);
}

TEST(disk, follows_links_only_if_allowed_and_only_within_the_root)
{
    struct site site = make_site();
    disk_tree *tree = site.tree;

    disk_tree_link(tree, "root/file_link", "a.txt");
    disk_tree_link(tree, "root/folder_link", "folder/deep");
    disk_tree_link(tree, "root/folder/up", "../a.txt");
    disk_tree_link(tree, "root/folder/dots", "./.././folder/./deep/../b.txt");
    disk_tree_link(tree, "root/chain", "folder/up");
    disk_tree_link(tree, "root/loop", "loop");
    disk_tree_link(tree, "root/absolute", "/etc/passwd");
    disk_tree_link(tree, "root/out", "../secret.txt");
    disk_tree_link(tree, "root/out_folder", "..");
    disk_tree_link(tree, "root/far_out", "../../../../../../../../etc/passwd");
    disk_tree_link(tree, "root/proc", "/proc/self/root/etc/passwd");
    disk_tree_link(tree, "root/dangling", "nothing");
    assert_int_equal(size_of(&site, "file_link", 0), -ELOOP);
    assert_int_equal(size_of(&site, "folder_link/c.txt", 0), -ELOOP);
    assert_int_equal(size_of(&site, "out", 0), -ELOOP);
    assert_int_equal(size_of(&site, "file_link", WEIR__HTTP_DISK_LINKS), 1);
    assert_int_equal(size_of(&site, "folder_link/c.txt", WEIR__HTTP_DISK_LINKS), 3);
    assert_int_equal(size_of(&site, "folder_link/", WEIR__HTTP_DISK_LINKS), 0);
    assert_int_equal(size_of(&site, "folder/up", WEIR__HTTP_DISK_LINKS), 1);
    assert_int_equal(size_of(&site, "folder/dots", WEIR__HTTP_DISK_LINKS), 2);
    assert_int_equal(size_of(&site, "chain", WEIR__HTTP_DISK_LINKS), 1);
    assert_int_equal(size_of(&site, "loop", WEIR__HTTP_DISK_LINKS), -ELOOP);
    assert_int_equal(size_of(&site, "absolute", WEIR__HTTP_DISK_LINKS), -EXDEV);
    assert_int_equal(size_of(&site, "out", WEIR__HTTP_DISK_LINKS), -EXDEV);
    assert_int_equal(size_of(&site, "out_folder/secret.txt", WEIR__HTTP_DISK_LINKS), -EXDEV);
    assert_int_equal(size_of(&site, "far_out", WEIR__HTTP_DISK_LINKS), -EXDEV);
    assert_int_equal(size_of(&site, "proc", WEIR__HTTP_DISK_LINKS), -EXDEV);
    assert_int_equal(size_of(&site, "dangling", WEIR__HTTP_DISK_LINKS), -ENOENT);
    end_site(&site);
}

TEST(disk, does_not_follow_the_magic_links_of_proc)
{
    weir__http_disk_info info;
    int root, file, err;

    assert_int_equal(weir__http_disk_open_root("/proc", &root), 0);
    for (size_t i = 0; i < 2; i++) {
        err = ways[i](root, "self/cwd/etc", WEIR__HTTP_DISK_LINKS, &file, &info);
        assert_true(err == -ELOOP || err == -EXDEV);
        err = ways[i](root, "self/fd/0", WEIR__HTTP_DISK_LINKS, &file, &info);
        assert_true(err == -ELOOP || err == -EXDEV || err == -ENOENT);
    }
    weir__http_disk_close(root);
}

TEST(disk, opens_neither_pipes_nor_sockets_nor_devices)
{
    struct site site = make_site();
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    weir__http_disk_info info;
    int root, file, server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    disk_tree_pipe(site.tree, "root/pipe");
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/root/socket", site.tree->path);
    assert_int_equal(bind(server, (const struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(size_of(&site, "pipe", 0), -EACCES);
    assert_int_equal(size_of(&site, "socket", 0), -EACCES);
    (void)close(server);
    assert_int_equal(weir__http_disk_open_root("/dev", &root), 0);
    assert_int_equal(weir__http_disk_open(root, "null", 0, &file, &info), -EACCES);
    assert_int_equal(weir__http_disk_look_up(root, "null", &info), -EACCES);
    weir__http_disk_close(root);
    end_site(&site);
}

TEST(disk, refuses_long_segments_and_paths)
{
    struct site site = make_site();
    char *path = malloc(2 * PATH_MAX);

    assert_non_null(path);
    memset(path, 'x', 2 * PATH_MAX);
    path[NAME_MAX] = '\0';
    assert_int_equal(size_of(&site, path, 0), -ENOENT);
    path[NAME_MAX] = 'x';
    path[NAME_MAX + 1] = '\0';
    assert_int_equal(size_of(&site, path, 0), -ENAMETOOLONG);
    path[NAME_MAX + 1] = 'x';
    path[2 * PATH_MAX - 1] = '\0';
    assert_int_equal(size_of(&site, path, 0), -ENAMETOOLONG);
    for (int i = 0; i < PATH_MAX + 4; i += 2)
        memcpy(path + i, "./", 2);
    path[PATH_MAX - 2] = '\0';
    assert_int_equal(size_of(&site, path, 0), 0);
    path[PATH_MAX - 2] = '.';
    path[PATH_MAX] = '\0';
    assert_int_equal(size_of(&site, path, 0), -ENAMETOOLONG);
    free(path);
    end_site(&site);
}

TEST(disk, walks_the_segments_where_openat2_is_refused)
{
    static const int errors[] = {ENOSYS, EPERM};
    struct site site = make_site();

    for (size_t i = 0; i < 2; i++) {
        disk_faults_refuse_openat2(errors[i]);
        assert_int_equal(size_of(&site, "folder/deep/c.txt", 0), 3);
        assert_int_equal(size_of(&site, "missing", 0), -ENOENT);
    }
    disk_faults_refuse_openat2(EACCES); /* is not the kernel's lack of it */
    assert_int_equal(
        weir__http_disk_open(site.root, "a.txt", 0, &(int){0}, &(weir__http_disk_info){0}),
        -EACCES);
    end_site(&site);
}

static char container_root[128];

static void open_without_openat2(void)
{
    weir__http_disk_info info;
    int root, file;

    seccomp_refuse(SYS_openat2, EPERM);
    if (weir__http_disk_open_root(container_root, &root) < 0 ||
        weir__http_disk_open(root, "folder/deep/c.txt", 0, &file, &info) < 0 || info.size != 3)
        _exit(1);
}

TEST(disk, works_in_a_container_whose_filter_refuses_openat2)
{
    struct site site = make_site();

    (void)snprintf(container_root, sizeof(container_root), "%s", disk_tree_path(site.tree, "root"));
    assert_true(child_survives(open_without_openat2));
    end_site(&site);
}

TEST(disk, a_rename_at_the_same_time_is_retried)
{
    struct site site = make_site();

    disk_faults_inject(DISK_OPENAT2, 1, EAGAIN);
    assert_int_equal(size_of(&site, "a.txt", 0), 1);
    assert_int_equal(disk_faults_injected(), 1);
    disk_faults_refuse_openat2(EAGAIN);
    assert_int_equal(
        weir__http_disk_open(site.root, "a.txt", 0, &(int){0}, &(weir__http_disk_info){0}),
        -EAGAIN);
    end_site(&site);
}

TEST(disk, temporary_files_have_no_name_and_keep_their_bytes)
{
    struct site site = make_site();
    char bytes[5];
    int file;

    for (int way = 0; way < 2; way++) {
        if (way == 1) /* a file system without O_TMPFILE */
            disk_faults_inject(DISK_OPENAT, 1, EOPNOTSUPP);
        disk_tree_folder(site.tree, way == 0 ? "temp" : "other");
        assert_int_equal(weir__http_disk_create_temporary(
                             disk_tree_path(site.tree, way == 0 ? "temp" : "other"), &file),
                         0);
        assert_int_equal(rmdir(site.tree->scratch), 0); /* it is empty */
        assert_int_equal(weir__http_disk_write(file, 3, "hello", 5), 0);
        assert_int_equal(weir__http_disk_read(file, 3, bytes, 5), 0);
        assert_memory_equal(bytes, "hello", 5);
        assert_int_equal(weir__http_disk_read(file, 4, bytes, 5), WEIR_ETRUNCATED);
        weir__http_disk_close(file);
    }
    assert_int_equal(weir__http_disk_create_temporary("/nonexistent", &file), -ENOENT);
    end_site(&site);
}

static int count_entry(const char *name, void *user_data)
{
    assert_true(strcmp(name, ".") != 0 && strcmp(name, "..") != 0);
    ++*(int *)user_data;
    return 0;
}

static int stop(const char *name, void *user_data)
{
    (void)name;
    (void)user_data;
    return 7;
}

TEST(disk, lists_a_large_folder)
{
    struct site site = make_site();
    weir__http_disk_info info;
    char path[64];
    int folder, count = 0;

    for (int i = 0; i < 500; i++) {
        (void)snprintf(path, sizeof(path), "root/many/%d", i);
        disk_tree_file(site.tree, path, "");
    }
    assert_int_equal(weir__http_disk_open(site.root, "many", 0, &folder, &info), 0);
    assert_int_equal(weir__http_disk_list(folder, count_entry, &count), 0);
    assert_int_equal(count, 500);
    weir__http_disk_close(folder);
    assert_int_equal(weir__http_disk_open(site.root, "", 0, &folder, &info), 0);
    assert_int_equal(weir__http_disk_list(folder, stop, NULL), 7);
    assert_int_equal(weir__http_disk_look_up(folder, "folder", &info), 0);
    assert_true(info.is_folder);
    assert_int_equal(weir__http_disk_look_up(folder, "a.txt", &info), 0);
    assert_int_equal(info.size, 1);
    weir__http_disk_close(folder);
    end_site(&site);
}

/* Does everything once. Returns the first error. */
static int do_everything(struct site *site, open_fn *open)
{
    weir__http_disk_info info;
    char bytes[3];
    int file, count = 0, err = open(site->root, "folder/up", WEIR__HTTP_DISK_LINKS, &file, &info);

    if (err < 0)
        return err;
    err = weir__http_disk_read(file, 0, bytes, 1);
    weir__http_disk_close(file);
    if (err == 0)
        err = open(site->root, "folder", 0, &file, &info);
    if (err < 0)
        return err;
    err = weir__http_disk_list(file, count_entry, &count);
    if (err == 0)
        err = weir__http_disk_look_up(file, "b.txt", &info);
    weir__http_disk_close(file);
    if (err == 0)
        err = weir__http_disk_create_temporary(site->tree->path, &file);
    if (err < 0)
        return err;
    err = weir__http_disk_write(file, 0, "abc", 3);
    weir__http_disk_close(file);
    return err;
}

TEST(disk, every_call_may_fail)
{
    struct site site = make_site();
    unsigned failed = 0;

    disk_tree_link(site.tree, "root/folder/up", "../a.txt");
    for (int call = 0; call < DISK_CALL_COUNT; call++) {
        for (size_t way = 0; way < 2; way++) {
            for (unsigned n = 1;; n++) {
                int err;

                disk_faults_inject((enum disk_call)call, n, EIO);
                err = do_everything(&site, ways[way]);
                if (disk_faults_injected() == 0)
                    break;
                failed++;
                if (err >= 0)
                    fail_msg("%s %u: no error", disk_faults_name((enum disk_call)call), n);
                assert_int_equal(disk_faults_open_files(), 1); /* the root */
            }
        }
    }
    assert_true(failed > 20);
    disk_faults_inject(DISK_PREAD, 1, EINTR);
    assert_int_equal(do_everything(&site, ways[0]), 0);
    disk_faults_inject(DISK_OPENAT2, 1, EINTR);
    assert_int_equal(do_everything(&site, ways[0]), 0);
    end_site(&site);
}
