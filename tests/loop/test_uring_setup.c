/* SPDX-License-Identifier: Apache-2.0 */
/* Setting up a ring: on a kernel with fewer features, and on one that refuses. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "loop/uring.h"
#include "support/child.h"
#include "support/loop/suite.h"
#include "support/loop/uring_seam.h"
#include "support/seccomp.h"

#define ALL_OF_TASK_WORK                                                                   \
    (IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG | \
     IORING_SETUP_COOP_TASKRUN)

/* ---- less ---- */

static unsigned refused_flags;

static int setup_without(unsigned entries, struct io_uring *ring, struct io_uring_params *params)
{
    if ((params->flags & refused_flags) != 0)
        return -EINVAL;
    return uring_real.setup(entries, ring, params);
}

static void talk(struct driver *driver)
{
    struct peer *peer = peer_open_pair(driver, PAIR_TCP);

    peer_receive_start(peer, false);
    for (uint64_t i = 1; i <= 50; i++) {
        assert_int_equal(peer_remote_send(peer, 100), 100);
        driver_until(driver, peer->bytes == 100 * i);
    }
    peer_remote_close(peer);
    driver_until(driver, peer->ends == 1);
}

/* A ring on a kernel that does not know these flags works, and has what is left of them. */
static void expect_without(unsigned refused, unsigned expected)
{
    struct driver driver;

    refused_flags = refused;
    weir__uring_system.setup = setup_without;
    suite_open(&driver, BACKEND_URING);
    assert_int_equal(weir__uring_of(driver.io)->ring.flags & ALL_OF_TASK_WORK, expected);
    talk(&driver);
    suite_close(&driver);
}

TEST(uring_setup, asks_for_all_that_this_kernel_has)
{
    uring_seam_restore();
    expect_without(0, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
                          IORING_SETUP_TASKRUN_FLAG);
    uring_seam_restore();
}

TEST(uring_setup, does_without_what_the_kernel_refuses)
{
    uring_seam_restore();
    expect_without(IORING_SETUP_TASKRUN_FLAG,
                   IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN);
    expect_without(IORING_SETUP_DEFER_TASKRUN,
                   IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG);
    expect_without(IORING_SETUP_SINGLE_ISSUER,
                   IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG);
    expect_without(IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_TASKRUN_FLAG,
                   IORING_SETUP_COOP_TASKRUN);
    expect_without(ALL_OF_TASK_WORK, 0);
    uring_seam_restore();
}

TEST(uring_setup, reports_its_features)
{
    struct driver driver;
    char features[128];
    char little[8];

    suite_open(&driver, BACKEND_URING);
    weir__uring_features(weir__uring_of(driver.io), features, sizeof(features));
    assert_non_null(strstr(features, "sq 256 cq 4096 single-issuer defer-taskrun taskrun-flag"));
    weir__uring_features(weir__uring_of(driver.io), little, sizeof(little));
    assert_string_equal(little, "sq 256 ");
    suite_close(&driver);
}

/* ---- nothing ---- */

static int setup_error;
static int disabled_level;
static const char *release;

static int refuse_setup(unsigned entries, struct io_uring *ring, struct io_uring_params *params)
{
    (void)entries;
    (void)ring;
    (void)params;
    return setup_error;
}

static int return_disabled(void)
{
    return disabled_level;
}

static int return_release(struct utsname *ret_kernel)
{
    memset(ret_kernel, 0, sizeof(*ret_kernel));
    (void)snprintf(ret_kernel->release, sizeof(ret_kernel->release), "%s", release);
    return 0;
}

/* Skips a test of a later step if this kernel, or qemu, refuses the first. */
static void need_ring(void)
{
    struct driver driver;

    suite_open(&driver, BACKEND_URING);
    suite_close(&driver);
}

/* Expects the error, and a reason with all of these words, which are separated by '|'. */
static void expect_refusal(int err, const char *words)
{
    const weir__io_options options = {.name = "refused"};
    char reason[256] = "";
    weir__io *io;

    assert_int_equal(weir__io_create(&weir__io_uring, &options, &io, reason, sizeof(reason)), err);
    while (*words != '\0') {
        size_t length = strcspn(words, "|");
        char word[64];

        (void)snprintf(word, sizeof(word), "%.*s", (int)length, words);
        if (strstr(reason, word) == NULL)
            fail_msg("\"%s\" does not say \"%s\"", reason, word);
        words += length + (words[length] == '|');
    }
}

TEST(uring_setup, explains_a_refusal)
{
    static const struct {
        int err;
        int disabled;
        const char *words;
    } refusals[] = {
        {-ENOSYS, 0, "no io_uring|CONFIG_IO_URING"},
        {-EPERM, 0, "not permitted|seccomp|containers|allow the io_uring_* system calls"},
        {-EPERM, 1, "for this user|io_uring_disabled is 1|kernel.io_uring_group"},
        {-EPERM, 2, "for all users|io_uring_disabled is 2|0 allows it"},
        {-EACCES, 0, "not permitted"},
        {-ENOMEM, 0, "no memory for io_uring"},
        {-EMFILE, 0, "no descriptor|ulimit -n"},
        {-ENFILE, 0, "no descriptor|fs.file-max"},
        {-EINVAL, 0, "io_uring_setup failed"},
    };

    uring_seam_restore();
    weir__uring_system.setup = refuse_setup;
    weir__uring_system.disabled = return_disabled;
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        setup_error = refusals[i].err;
        disabled_level = refusals[i].disabled;
        expect_refusal(setup_error, refusals[i].words);
    }
    uring_seam_restore();
}

TEST(uring_setup, reports_the_limit_of_locked_memory)
{
    struct rlimit before;
    struct rlimit small = {64 * 1024, 64 * 1024};

    assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &before), 0);
    small.rlim_max = before.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &small), 0);
    uring_seam_restore();
    weir__uring_system.setup = refuse_setup;
    setup_error = -ENOMEM;
    expect_refusal(-ENOMEM, "64 KiB|ulimit -l");
    uring_seam_restore();
    assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &before), 0);
}

TEST(uring_setup, needs_linux_6_1)
{
    static const char *const old[] = {"6.0.19-generic", "5.15.0", "4.19.0-27-amd64"};
    static const char *const recent[] = {"6.1.0-13-amd64", "6.18.44", "7.0.0-rc1", "odd"};

    uring_seam_restore();
    weir__uring_system.uname = return_release;
    for (size_t i = 0; i < sizeof(old) / sizeof(old[0]); i++) {
        release = old[i];
        expect_refusal(-ENOTSUP, "needs Linux 6.1 or newer");
        expect_refusal(-ENOTSUP, old[i]);
    }
    for (size_t i = 0; i < sizeof(recent) / sizeof(recent[0]); i++) {
        release = recent[i];
        expect_without(0, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
                              IORING_SETUP_TASKRUN_FLAG);
    }
    uring_seam_restore();
}

/* ---- filters, as containers have them ---- */

static const struct {
    long number;
    const char *name;
} calls[] = {
    {SYS_io_uring_setup, "io_uring_setup"},
    {SYS_io_uring_register, "io_uring_register"},
    {SYS_io_uring_enter, "io_uring_enter"},
};

static size_t filtered;   /* an index of calls */
static int filtered_with; /* an errno */

static void meet_a_filter(void)
{
    const weir__io_options options = {.name = "refused"};
    char reason[256] = "";
    weir__io *io;

    seccomp_refuse(calls[filtered].number, filtered_with);
    if (weir__io_create(&weir__io_uring, &options, &io, reason, sizeof(reason)) != -filtered_with ||
        strstr(reason, calls[filtered].name) == NULL ||
        strstr(reason, filtered_with == EPERM ? "seccomp" : "sandbox") == NULL)
        abort();
}

TEST(uring_setup, is_refused_by_a_filter_that_forbids_or_hides_any_of_its_calls)
{
    need_ring();
    for (filtered = 0; filtered < sizeof(calls) / sizeof(calls[0]); filtered++) {
        filtered_with = EPERM;
        assert_true(child_survives(meet_a_filter));
        filtered_with = ENOSYS;
        assert_true(child_survives(meet_a_filter));
    }
}

/* ---- a ring that takes operations and never completes them ---- */

static int enter_in_vain(unsigned ring, unsigned submit, unsigned wait, unsigned flags,
                         sigset_t *argument, size_t size)
{
    (void)ring;
    (void)submit;
    (void)wait;
    (void)flags;
    (void)argument;
    (void)size;
    return 0;
}

TEST(uring_setup, is_refused_if_no_completion_comes)
{
    uring_seam_restore();
    need_ring();
    weir__uring_system.enter = enter_in_vain;
    expect_refusal(-ETIMEDOUT, "io_uring_enter failed");
    uring_seam_restore();
}
