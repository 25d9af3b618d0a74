/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One counter.
 */
#include "support/loop/signals.h"

#include <signal.h>

#include "support/test.h"

static volatile sig_atomic_t count;

static void on_signal(int number)
{
    (void)number;
    count = count + 1;
}

void signals_count(int number)
{
    const struct sigaction action = {.sa_handler = on_signal};

    count = 0;
    assert_int_equal(sigaction(number, &action, NULL), 0);
}

int signals_counted(void)
{
    return count;
}
