/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of Unix sockets: made, taken over, guarded, removed.
 */
#include "transport/unix_path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <weir/error.h>
#include <weir/transport.h>

#include "os/system.h"
#include "support/executor/group.h"
#include "support/executor/log_capture.h"
#include "support/loop/host.h"
#include "support/transport/connection.h"

/* A folder with a place for a socket. */
struct place {
    char folder[64];
    char path[112];
    weir_address address;
};

static struct place place_make(void)
{
    struct place place = {.folder = "/tmp/weir-unix-XXXXXX"};
    char text[WEIR_ADDRESS_TEXT_SIZE];

    assert_non_null(mkdtemp(place.folder));
    (void)snprintf(place.path, sizeof(place.path), "%s/socket", place.folder);
    (void)snprintf(text, sizeof(text), "unix:%s", place.path);
    assert_int_equal(weir_address_parse(text, &place.address), 0);
    return place;
}

/* The same with a path that fills an address to the last byte, which is no 0 then. */
static struct place place_make_long(void)
{
    struct place place = place_make();
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    memset(address.sun_path, 'x', sizeof(address.sun_path));
    memcpy(address.sun_path, place.path, strlen(place.path));
    memcpy(place.path, address.sun_path, sizeof(address.sun_path));
    place.path[sizeof(address.sun_path)] = '\0';
    assert_int_equal(weir_address_from_sockaddr((const struct sockaddr *)&address, sizeof(address),
                                                &place.address),
                     0);
    return place;
}

/* Nothing is left in it. */
static void place_remove(const struct place *place)
{
    assert_int_equal(rmdir(place->folder), 0);
}

static bool exists(const char *path)
{
    struct stat status;

    return lstat(path, &status) == 0;
}

static unsigned mode_of(const char *path)
{
    struct stat status;

    assert_int_equal(lstat(path, &status), 0);
    return status.st_mode & 07777;
}

/* What a process leaves that was killed. */
static void leave_stale(const struct place *place, int type)
{
    int descriptor = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

    assert_int_equal(
        bind(descriptor, weir_address_sockaddr(&place->address), place->address.length), 0);
    close(descriptor);
    assert_true(exists(place->path));
}

static weir_channel *make_listener(const weir_channel_options *options)
{
    weir_channel *channel;

    assert_int_equal(weir_unix_create_server(WEIR_KIND_STREAM, options, NULL, &channel), 0);
    return channel;
}

static int bind_to(struct host *host, weir_channel *channel, const struct place *place)
{
    weir_promise *bound;
    int err;

    assert_int_equal(weir_promise_create(host->loop, &bound), 0);
    weir_group_register(host->group, channel, NULL);
    weir_channel_bind(channel, &place->address, bound);
    assert_int_equal(weir_promise_await(bound, TEST_TIMEOUT_NS), 0);
    err = weir_promise_result(bound);
    weir_promise_release(bound);
    return err;
}

static void end(weir_channel *channel)
{
    weir_channel_abort(channel, NULL);
    assert_int_equal(weir_channel_await_closed(channel, TEST_TIMEOUT_NS), 0);
    weir_channel_release(channel);
}

static bool answers(const struct place *place)
{
    int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool good =
        connect(descriptor, weir_address_sockaddr(&place->address), place->address.length) == 0;

    close(descriptor);
    return good;
}

/* ---- one who starts ---- */

TEST_EACH_LOOP(unix_path, comes_and_goes_with_its_listener)
{
    struct place place = place_make();
    weir_channel *listener = make_listener(NULL);

    assert_int_equal(bind_to(host, listener, &place), 0);
    assert_true(answers(&place));
    end(listener);
    assert_false(exists(place.path));
    place_remove(&place);
}

TEST_EACH_LOOP(unix_path, is_replaced_if_stale)
{
    struct place place = place_make();
    weir_channel *listener = make_listener(NULL);

    leave_stale(&place, SOCK_STREAM);
    assert_int_equal(bind_to(host, listener, &place), 0);
    assert_true(answers(&place));
    end(listener);
    place_remove(&place);
}

TEST_EACH_LOOP(unix_path, is_replaced_if_stale_and_of_another_type)
{
    struct place place = place_make();
    weir_channel *listener = make_listener(NULL);

    leave_stale(&place, SOCK_DGRAM);
    assert_int_equal(bind_to(host, listener, &place), 0);
    end(listener);
    place_remove(&place);
}

TEST_EACH_LOOP(unix_path, is_left_to_a_live_socket)
{
    struct place place = place_make();
    weir_channel *first = make_listener(NULL), *second = make_listener(NULL);

    assert_int_equal(bind_to(host, first, &place), 0);
    assert_int_equal(bind_to(host, second, &place), -EADDRINUSE);
    end(second);
    assert_true(answers(&place));
    end(first);
    place_remove(&place);
}

TEST_EACH_LOOP(unix_path, is_left_to_a_live_socket_with_the_longest_path)
{
    struct place place = place_make_long();
    weir_channel *first = make_listener(NULL), *second = make_listener(NULL);

    leave_stale(&place, SOCK_STREAM);
    assert_int_equal(bind_to(host, first, &place), 0);
    assert_int_equal(bind_to(host, second, &place), -EADDRINUSE);
    assert_true(answers(&place));
    end(second);
    end(first);
    place_remove(&place);
}

TEST_EACH_LOOP(unix_path, is_not_made_for_an_address_that_is_too_long)
{
    struct place place = place_make_long();
    struct sockaddr_storage address = place.address.storage;
    weir_channel *listener = make_listener(NULL);

    assert_int_equal(weir_address_from_sockaddr((const struct sockaddr *)&address, sizeof(address),
                                                &place.address),
                     0);
    assert_int_equal(bind_to(host, listener, &place), -EINVAL);
    end(listener);
    place_remove(&place);
}

TEST_EACH_LOOP(unix_path, is_left_alone_if_it_is_no_socket)
{
    struct place place = place_make();
    weir_channel *listener = make_listener(NULL);
    int file = open(place.path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

    close(file);
    log_capture_start();
    assert_int_equal(bind_to(host, listener, &place), -EEXIST);
    assert_true(log_capture_last_contains("not a socket"));
    end(listener);
    assert_true(exists(place.path));
    unlink(place.path);
    place_remove(&place);
}

TEST_EACH_LOOP(unix_path, is_not_removed_if_it_is_anothers_by_now)
{
    struct place place = place_make();
    weir_channel *listener = make_listener(NULL);

    assert_int_equal(bind_to(host, listener, &place), 0);
    unlink(place.path);
    leave_stale(&place, SOCK_STREAM);
    end(listener);
    assert_true(exists(place.path));
    unlink(place.path);
    place_remove(&place);
}

TEST_EACH_LOOP(unix_path, is_not_removed_if_it_is_to_be_left)
{
    struct place place = place_make();
    weir_channel *listener = make_listener(NULL), *other;

    assert_int_equal(bind_to(host, listener, &place), 0);
    assert_int_equal(weir_unix_disable_unlink(listener), 0);
    end(listener);
    assert_true(exists(place.path));
    unlink(place.path);
    assert_int_equal(weir_unix_create(WEIR_KIND_DATAGRAM, NULL, &other), 0);
    assert_int_equal(bind_to(host, other, &place), 0);
    assert_int_equal(weir_unix_disable_unlink(other), 0);
    end(other);
    assert_true(exists(place.path));
    unlink(place.path);
    place_remove(&place);
    assert_int_equal(weir_unix_create(WEIR_KIND_STREAM, NULL, &other), 0);
    assert_int_equal(weir_unix_disable_unlink(other), -EINVAL);
    weir_channel_release(other);
}

/* ---- permissions ---- */

/* The umask takes from what is asked for first, and is overruled then. */
TEST_EACH_LOOP(unix_path, has_the_permissions_that_are_asked_for)
{
    struct place place = place_make();
    weir_channel *tight = make_listener(WEIR_CHANNEL_OPTIONS(.unix_mode = 0600));
    weir_channel *wide = make_listener(WEIR_CHANNEL_OPTIONS(.unix_mode = 0666));
    mode_t before = umask(022);

    assert_int_equal(bind_to(host, tight, &place), 0);
    assert_int_equal(mode_of(place.path), 0600);
    end(tight);
    assert_int_equal(bind_to(host, wide, &place), 0);
    assert_int_equal(mode_of(place.path), 0666);
    end(wide);
    umask(before);
    place_remove(&place);
}

static unsigned mode_at_bind;
static weir__system system_before;

static int look_at_mode(const char *path, mode_t mode)
{
    mode_at_bind = mode_of(path);
    return system_before.chmod(path, mode);
}

TEST_EACH_LOOP(unix_path, never_has_more_permissions_than_are_asked_for)
{
    struct place place = place_make();
    weir_channel *listener = make_listener(WEIR_CHANNEL_OPTIONS(.unix_mode = 0600));
    mode_t before = umask(0);

    system_before = weir__sys;
    weir__sys.chmod = look_at_mode;
    assert_int_equal(bind_to(host, listener, &place), 0);
    umask(before);
    end(listener);
    place_remove(&place);
    host_end(host); /* whose thread makes calls */
    weir__sys = system_before;
    assert_int_equal(mode_at_bind, 0600);
}

TEST_EACH_LOOP(unix_path, has_the_permissions_of_the_umask_otherwise)
{
    struct place place = place_make();
    weir_channel *listener = make_listener(NULL);
    mode_t before = umask(027);

    assert_int_equal(bind_to(host, listener, &place), 0);
    umask(before);
    assert_int_equal(mode_of(place.path), 0750);
    end(listener);
    place_remove(&place);
}

/* ---- others ---- */

TEST_EACH_LOOP(unix_path, of_a_client_goes_with_it)
{
    struct place place = place_make();
    weir_channel *client;

    assert_int_equal(weir_unix_create(WEIR_KIND_SEQPACKET, NULL, &client), 0);
    assert_int_equal(bind_to(host, client, &place), 0);
    assert_true(exists(place.path));
    end(client);
    place_remove(&place);
}

TEST_EACH_LOOP(unix_path, of_datagrams_is_replaced_guarded_and_removed)
{
    struct place place = place_make();
    weir_channel *first, *second;

    leave_stale(&place, SOCK_DGRAM);
    assert_int_equal(
        weir_unix_create(WEIR_KIND_DATAGRAM, WEIR_CHANNEL_OPTIONS(.unix_mode = 0620), &first), 0);
    assert_int_equal(weir_unix_create(WEIR_KIND_DATAGRAM, NULL, &second), 0);
    assert_int_equal(bind_to(host, first, &place), 0);
    assert_int_equal(mode_of(place.path), 0620);
    assert_int_equal(bind_to(host, second, &place), -EADDRINUSE);
    end(second);
    assert_true(exists(place.path));
    end(first);
    place_remove(&place);
}

TEST_EACH_LOOP(unix_path, needs_a_folder)
{
    struct place place = place_make();
    weir_channel *listener = make_listener(NULL);

    place_remove(&place);
    assert_int_equal(bind_to(host, listener, &place), -ENOENT);
    end(listener);
}

/* ---- two who start at the same time ---- */

static struct {
    const struct place *place;
    int descriptor;
    weir__unix_path *file;
    int result;
} rival;

static int bind_rival(void)
{
    rival.descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    return weir__unix_path_bind(rival.descriptor, SOCK_STREAM, &rival.place->address,
                                &(const weir_channel_options){0}, &rival.file);
}

static int listen_rival(void)
{
    assert_int_equal(listen(rival.descriptor, 16), 0);
    return weir__unix_path_check(rival.file);
}

static void end_rival(void)
{
    weir__unix_path_end(rival.file, false);
    close(rival.descriptor);
}

/* The rival has bound, and begins to listen just when it is about to be moved aside: it is found to
 * be alive then, and put back. */
static int listen_before_rename(const char *from, const char *to)
{
    weir__sys.rename = system_before.rename;
    rival.result = listen_rival();
    return system_before.rename(from, to);
}

static void check_put_back(struct place place)
{
    int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    weir__unix_path *file = NULL;

    rival.place = &place;
    assert_int_equal(bind_rival(), 0);
    system_before = weir__sys;
    weir__sys.rename = listen_before_rename;
    assert_int_equal(weir__unix_path_bind(descriptor, SOCK_STREAM, &place.address,
                                          &(const weir_channel_options){0}, &file),
                     -EADDRINUSE);
    weir__sys = system_before;
    close(descriptor);
    assert_int_equal(rival.result, 0);
    assert_true(answers(&place));
    assert_int_equal(weir__unix_path_check(rival.file), 0);
    end_rival();
    place_remove(&place);
}

TEST(unix_path, is_put_back_if_it_has_begun_to_answer)
{
    check_put_back(place_make());
}

TEST(unix_path, is_put_back_also_if_its_path_is_as_long_as_can_be)
{
    check_put_back(place_make_long());
}

/* The rival has bound, and is so slow to listen that its file is taken for a stale one: it finds
 * out. */
TEST(unix_path, fails_if_it_was_removed_before_it_listened)
{
    struct place place = place_make();
    int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    weir__unix_path *file = NULL;

    rival.place = &place;
    assert_int_equal(bind_rival(), 0);
    assert_int_equal(weir__unix_path_bind(descriptor, SOCK_STREAM, &place.address,
                                          &(const weir_channel_options){0}, &file),
                     0);
    assert_int_equal(listen(descriptor, 16), 0);
    assert_int_equal(weir__unix_path_check(file), 0);
    assert_int_equal(listen_rival(), -EADDRINUSE);
    end_rival(); /* without touching what is not its own */
    assert_true(answers(&place));
    weir__unix_path_end(file, false);
    close(descriptor);
    place_remove(&place);
}
