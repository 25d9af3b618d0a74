/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated signalfds, for weir_signals. */
#ifndef WEIR_SIM_SIGNAL_FILE_H
#define WEIR_SIM_SIGNAL_FILE_H

#include <signal.h>

#include "sim/world.h"

int weir__sim_signal_file(int descriptor, const sigset_t *mask, int flags);
bool weir__sim_signal_file_is(const weir__sim_file *file);
ssize_t weir__sim_signal_file_read(weir__sim_file *file, void *memory, size_t size);
void weir__sim_signal_files_changed(weir_sim_process *process);

#endif
