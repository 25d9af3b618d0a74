/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tests raise weir__shutdown_grace_ns, so that they do not fail on a busy machine where a
 * thread ends late. Tests of the grace period itself use the default.
 */
#ifndef WEIR_TEST_GRACE_H
#define WEIR_TEST_GRACE_H

/* Sets the default of the library; sets the long grace period of the tests again. */
void grace_use_default(void);
void grace_use_long(void);

#endif
