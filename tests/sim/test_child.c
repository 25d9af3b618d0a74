/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that simulated processes start: their exit, their environment, signals.
 */
#include "support/test.h"

#include <signal.h>
#include <stdio.h>

#include <weir/sim.h>
#include <weir/weir.h>

#include "os/environment.h"
#include "os/process.h"

struct family {
    weir_sim *sim;
    weir_promise *exited;
    weir_child_exit exit;
    int parent_id, child_id, reported_id;
    char variable[16];
    bool is_killed;
};

static struct family family;

static void on_exited(weir_child *child, const weir_child_exit *exit, void *user_data)
{
    family.exit = *exit;
    family.reported_id = weir_child_pid(child);
    (void)weir_promise_succeed(user_data, NULL);
}

static int child_main(void)
{
    (void)snprintf(family.variable, sizeof(family.variable), "%s", weir__environment_get("ROLE"));
    family.child_id = weir__process_id();
    while (family.is_killed && !weir_sim_is_dying())
        weir_sim_sleep(weir_ms(1));
    return 7;
}

static int spawn(weir_executor *loop)
{
    static char name[] = "child", role[] = "ROLE=child", *argv[] = {name, NULL};
    char *env[] = {role, NULL};
    weir_child *child = NULL;
    int err = weir_child_spawn(loop,
                               WEIR_CHILD_OPTIONS(.argv = argv, .extra_env = env,
                                                  .exited = on_exited, .user_data = family.exited),
                               &child);

    if (err == 0 && family.is_killed) {
        weir_sim_sleep(weir_ms(10));
        err = weir_child_signal(child, SIGKILL);
    }
    weir_child_release(child);
    return err < 0 ? err : weir_promise_sync(family.exited, weir_seconds(10));
}

static int parent_main(void *arg)
{
    weir_group *group = NULL;
    int err;

    (void)arg;
    if (weir__environment_get("ROLE") != NULL)
        return child_main();
    family.parent_id = weir__process_id();
    err = weir_promise_create(NULL, &family.exited);
    if (err == 0)
        err = weir_group_create(WEIR_GROUP_OPTIONS(.threads = 1), &group);
    if (err == 0)
        err = spawn(weir_group_at(group, 0));
    (void)weir_group_shutdown(group, 0, weir_seconds(1));
    weir_group_release(group);
    weir_promise_release(family.exited);
    return err;
}

static int program(weir_sim *sim, void *arg)
{
    weir_sim_host *host;
    weir_sim_process *process;
    int err = weir_sim_host_create(sim, "host", "10.0.0.1", &host);

    family.sim = sim;
    if (err == 0)
        err = weir_sim_start(host, "parent", parent_main, arg, &process);
    if (err < 0)
        return err;
    err = weir_sim_join(process);
    assert_non_null(weir_sim_child(process));
    assert_false(weir_sim_is_alive(weir_sim_child(process)));
    return err;
}

static void run(bool is_killed)
{
    weir_sim_result result = {0};

    family = (struct family){.is_killed = is_killed};
    assert_int_equal(weir_sim_run(WEIR_SIM_OPTIONS(.seed = 1), program, NULL, &result), 0);
    weir_sim_result_free(&result);
    assert_string_equal(family.variable, "child");
    assert_int_equal(family.reported_id, family.child_id);
    assert_int_not_equal(family.parent_id, family.child_id);
}

TEST(child, exits_with_a_status_and_has_its_own_environment)
{
    run(false);
    assert_int_equal(family.exit.status, 7);
    assert_int_equal(family.exit.signal, 0);
}

TEST(child, is_killed_by_its_parent)
{
    run(true);
    assert_int_equal(family.exit.status, -1);
    assert_int_equal(family.exit.signal, SIGKILL);
}
