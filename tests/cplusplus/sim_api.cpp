/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uses every public function of libweir-sim once from C++11, as api.cpp does for libweir.
 */
#include <cerrno>
#include <csignal>
#include <cstring>

#include <weir/sim.h>
#include <weir/weir.h>

#include "expect.h"

namespace
{

struct counts {
    int checks, ends, starts;
    bool is_broken;
};

/* ---- a process: a server that dies once, and writes to its disk each time that it starts ---- */

int no_handlers(weir_channel *, void *)
{
    return 0;
}

int serve(void *arg)
{
    weir_group *group = nullptr;
    weir_server *server = nullptr;
    weir_server_options options = *WEIR_SERVER_OPTIONS();
    char byte = 0;

    static_cast<counts *>(arg)->starts++;
    EXPECT(weir_sim_disk_append("x", 1) == 0);
    EXPECT(weir_sim_disk_read(0, &byte, 1) == 1 && byte == 'x');
    EXPECT(weir_group_create(nullptr, &group) == 0);
    options.workers = group;
    options.address = "0.0.0.0:80";
    options.init_child = no_handlers;
    EXPECT(weir_server_start(&options, &server) == 0);
    EXPECT(weir_server_run(server) == 0); /* until SIGTERM, which a killed process receives, too */
    weir_server_release(server);
    weir_group_release(group);
    return weir_sim_is_dying() ? -EIO : 0;
}

/* ---- the world ---- */

void count_check(weir_sim *, bool at_end, void *arg)
{
    (at_end ? static_cast<counts *>(arg)->ends : static_cast<counts *>(arg)->checks)++;
}

void use_network(weir_sim *sim, weir_sim_host *host, weir_sim_host *other)
{
    weir_sim_network network = weir_sim_network();

    network.latency_ns = weir_ms(30);
    EXPECT(weir_sim_set_link(host, other, &network) == 0);
    weir_sim_partition(host, other, true);
    weir_sim_partition(host, other, false);
    weir_sim_host_stop(host);
    weir_sim_host_continue(host);
    weir_sim_step_clock(host, weir_seconds(3600));
    weir_sim_calm(sim, true);
    weir_sim_calm(sim, false);
}

int program(weir_sim *sim, void *arg)
{
    counts *counted = static_cast<counts *>(arg);
    weir_sim_host *host = nullptr, *other = nullptr;
    weir_sim_process *process = nullptr;
    int64_t before = weir_sim_now(sim);
    bool is_broken = counted->is_broken;

    *counted = counts();
    counted->is_broken = is_broken;
    EXPECT(weir_sim_current() == sim);
    EXPECT(weir_sim_check(sim, count_check, arg) == 0);
    EXPECT(weir_sim_host_create(sim, "server", "10.0.0.1 fd00::1", &host) == 0);
    EXPECT(weir_sim_host_create(sim, "client", "10.0.0.2", &other) == 0);
    use_network(sim, host, other);
    EXPECT(weir_sim_start(host, "server", serve, counted, &process) == 0);
    weir_sim_restart(process, weir_ms(10));
    weir_sim_sleep(weir_ms(20));
    EXPECT(weir_sim_now(sim) - before >= weir_ms(20));
    weir_sim_kill(process);
    EXPECT(!weir_sim_is_alive(process));
    weir_sim_sleep(weir_ms(20));
    EXPECT(weir_sim_is_alive(process));
    EXPECT(weir_sim_random(sim, 6) < 6);
    weir_sim_note(sim, "started %d times", counted->starts);
    weir_sim_signal(process, SIGTERM);
    if (counted->is_broken)
        weir_sim_fail(sim, "broken on purpose");
    if (weir_sim_child(process) != nullptr)
        return -EINVAL;
    return weir_sim_join(process);
}

void on_attempt(unsigned attempt, size_t faults_left, void *)
{
    EXPECT(attempt > 0);
    EXPECT(faults_left < 1000000);
}

void use_worlds()
{
    counts counted = counts();
    weir_sim_options isolated = *WEIR_SIM_OPTIONS();
    weir_sim_result result = weir_sim_result(), again = weir_sim_result();

    EXPECT(weir_sim_run(WEIR_SIM_OPTIONS(), program, &counted, &result) == 0);
    EXPECT(counted.starts == 2 && counted.checks > 0 && counted.ends == 1);
    EXPECT(weir_sim_run(WEIR_SIM_OPTIONS(), program, &counted, &again) == 0);
    EXPECT(result.hash == again.hash && result.events == again.events);
    weir_sim_result_free(&again);

    counted.is_broken = true;
    isolated.isolated = true;
    weir_sim_result_free(&result);
    EXPECT(weir_sim_run(&isolated, program, &counted, &result) == WEIR_ESIM);
    EXPECT(result.failure != nullptr && std::strcmp(result.failure, "broken on purpose") == 0);
    EXPECT(weir_sim_reduce(&isolated, program, &counted, &result, 5, on_attempt, &again) == 0);
    EXPECT(again.fault_count == 0);
    weir_sim_result_free(&again);
    weir_sim_result_free(&result);
}

} // namespace

int main()
{
    EXPECT(std::strcmp(weir_sim_fault_name(WEIR_SIM_FAULT_RESET), "reset") == 0);
    EXPECT(weir_sim_current() == nullptr);
    use_worlds();
    return failures != 0;
}
