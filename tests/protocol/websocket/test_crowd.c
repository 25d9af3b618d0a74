/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many connections at once, which end in all ways. ./dev soak websocket is the same for longer.
 */
#include "support/loop/host.h"
#include "support/protocol/websocket/ws_crowd.h"

TEST_EACH_LOOP(crowd, talks_and_leaves)
{
    static struct ws_crowd crowd;
    weir_group *group;

    assert_int_equal(
        weir_group_create(WEIR_GROUP_OPTIONS(.io = host->backend->io, .threads = 2), &group), 0);
    crowd = (struct ws_crowd){
        .group = group, .clients = 8, .visits = 60, .max_message = 40000, .seed = 1};
    assert_true(ws_crowd_run(&crowd));
    weir_group_release(group);
}
