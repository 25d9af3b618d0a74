/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A certificate is swapped under load: no handshake fails, and nobody is interrupted. ./dev soak
 * tls-reload is the same for longer.
 */
#include "support/loop/host.h"
#include "support/tls/certificate_swaps.h"
#include "support/tls/pki.h"

TEST_EACH_HOST(tls_reload, fails_no_handshake)
{
    struct swaps swaps = {.group = host->group, .clients = 4, .count = 50};

    (void)pki(); /* on this thread */
    if (!swaps_run(&swaps))
        print_error("%s\n", swaps.why);
    assert_int_equal(swaps.failed, 0);
    assert_int_equal(swaps.stats.failed, 0);
    assert_int_equal(swaps.stats.reloads, 50);
    assert_int_equal(swaps.stats.handshakes, swaps.visits);
    assert_int_equal(swaps.stats.resumed, swaps.resumed);
    assert_true(swaps.resumed > 0); /* also across swaps: keys of tickets stay */
    assert_true(swaps.by_leaf[0] > 0 && swaps.by_leaf[1] > 0);
}
