/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stops the thread of the global executor, which holds memory for a second after its last task.
 * Done after each test; a test that counts memory itself calls it before.
 */
#ifndef WEIR_TEST_GLOBAL_EXECUTOR_H
#define WEIR_TEST_GLOBAL_EXECUTOR_H

/* Waits until its tasks have run and its thread has ended. The next task starts a new thread. */
void global_executor_stop(void);

#endif
