/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UDP: many datagrams between two loops, every one of which is accounted for. ./dev soak udp does
 * the same with a million.
 */
#include "support/loop/host.h"
#include "support/transport/flood.h"

#define COUNT 20000

static void run(struct host *host, struct flood flood)
{
    struct host other;
    int err;

    host_open(&other, (enum backend_id)(host->backend - backends));
    flood.count = COUNT;
    err = flood_run(&flood, host->group, other.group);
    host_close(&other);
    assert_int_equal(err, 0);
    assert_int_equal(flood.received + flood.dropped, flood.count);
    assert_int_equal(flood.wrong, 0);
    assert_int_equal(flood.doubled, 0);
    assert_int_equal(flood.errors, 0);
    if (flood.patient)
        assert_true(flood.received > COUNT / 2);
}

TEST_EACH_HOST(udp, accounts_for_what_is_sent_in_a_hurry)
{
    run(host, (struct flood){0});
}

TEST_EACH_HOST(udp, brings_what_is_sent_with_patience)
{
    run(host, (struct flood){.patient = true});
}

TEST_EACH_HOST(udp, accounts_for_what_is_sent_in_segments)
{
    run(host, (struct flood){.segments = 16});
}
