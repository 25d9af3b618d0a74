/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ends the global executor's thread, which holds memory for a second after its last task. This is
 * done after each test; a test that counts memory itself does it before.
 */
#ifndef WEIR_TEST_GLOBAL_EXECUTOR_H
#define WEIR_TEST_GLOBAL_EXECUTOR_H

/* Returns when it has run what it had, and its thread is gone. It comes back with its next task. */
void global_executor_stop(void);

#endif
