/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that processes start, their pidfds, and the environment of each. */
#ifndef WEIR_SIM_CHILD_H
#define WEIR_SIM_CHILD_H

#include <signal.h>
#include <sys/types.h>

#include "os/process.h"
#include "sim/world.h"

/* Of weir__virtual_os. */
pid_t weir__sim_process_id(void);
int weir__sim_process_start(const weir__process_options *options, weir__process *ret_process);
int weir__sim_first_descriptor(void);
const char *weir__sim_environment_get(const char *name);
int weir__sim_environment_put(const char *name, const char *value);
void weir__sim_environment_unset(const char *name);
char *const *weir__sim_environment_entries(void);

/* System calls. */
int weir__sim_pidfd_open(pid_t pid, unsigned flags);
int weir__sim_pidfd_send_signal(int number, int signal);
int weir__sim_waitid(idtype_t type, id_t id, siginfo_t *ret_info, int options);

/* The process has ended or was killed: its pidfds become readable. */
void weir__sim_pidfds_changed(weir_sim_process *process);

#endif
