/* SPDX-License-Identifier: Apache-2.0 */
/* Setup and teardown of tests on a backend. */
#include "support/loop/suite.h"

void suite_open(struct driver *driver, enum backend_id id)
{
    char reason[256] = "";

    if (driver_open(driver, &backends[id], reason, sizeof(reason)) < 0)
        WEIR_TEST_SKIP(reason);
}

void suite_close(struct driver *driver)
{
    const char *complaint = driver_close(driver);

    if (complaint != NULL)
        fail_msg("%s: %s", driver->backend->name, complaint);
}

void suite_run(enum backend_id id, void (*body)(struct driver *driver))
{
    size_t descriptors = descriptors_open();
    struct driver driver;

    descriptors_allow_all();
    suite_open(&driver, id);
    body(&driver);
    suite_close(&driver);
    assert_int_equal(descriptors_open(), descriptors);
}
