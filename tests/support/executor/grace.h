/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In tests a thread that ends late is waited for with patience, so that those of a deadline's
 * consequences do not fail because there was no CPU for it; but for tests of just that.
 */
#ifndef WEIR_TEST_GRACE_H
#define WEIR_TEST_GRACE_H

/* From now on a late thread is given up as soon as in a user's program; and with patience again. */
void grace_use_default(void);
void grace_use_long(void);

#endif
