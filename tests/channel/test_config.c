/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Channel options: defaults, checks, and who shares them.
 */
#include "channel/config.h"

#include <errno.h>

#include "support/channel/test_channel.h"
#include "support/executor/log_capture.h"
#include "support/memory.h"

static weir_channel_options options_of(const weir_channel_options *given)
{
    weir__config *config;
    weir_channel_options options;

    assert_int_equal(weir__config_create(given, &config), 0);
    weir__config_read(config, &options);
    weir__config_release(config);
    return options;
}

TEST(config, has_every_default_in_its_place)
{
    weir_channel_options options = options_of(NULL);

    assert_int_equal(options.connect_timeout_ns, weir_seconds(30));
    assert_int_equal(options.close_timeout_ns, weir_seconds(3));
    assert_int_equal(options.close_send_timeout_ns, weir_seconds(30));
    assert_int_equal(options.low_mark, 32 * 1024);
    assert_int_equal(options.high_mark, 64 * 1024);
    assert_int_equal(options.write_cap, WEIR_NEVER);
    assert_int_equal(options.reads_per_turn, 16);
    assert_int_equal(options.writes_per_flush, 16);
    assert_int_equal(options.receive_min, 64);
    assert_int_equal(options.receive_initial, 2048);
    assert_int_equal(options.receive_max, 131072);
    assert_int_equal(options.backlog, 4096);
}

TEST(config, derives_one_mark_from_the_other)
{
    assert_int_equal(options_of(WEIR_CHANNEL_OPTIONS(.high_mark = 1000)).low_mark, 500);
    assert_int_equal(options_of(WEIR_CHANNEL_OPTIONS(.low_mark = 100000)).high_mark, 200000);
    assert_int_equal(options_of(WEIR_CHANNEL_OPTIONS(.low_mark = 1)).high_mark, 64 * 1024);
    assert_int_equal(options_of(WEIR_CHANNEL_OPTIONS(.low_mark = WEIR_NEVER)).high_mark,
                     WEIR_NEVER);
}

TEST(config, moves_the_sizes_that_were_not_given)
{
    assert_int_equal(options_of(WEIR_CHANNEL_OPTIONS(.receive_max = 1000)).receive_initial, 1000);
    assert_int_equal(options_of(WEIR_CHANNEL_OPTIONS(.receive_max = 10)).receive_min, 10);
    assert_int_equal(options_of(WEIR_CHANNEL_OPTIONS(.receive_min = 200000)).receive_max, 200000);
    assert_int_equal(options_of(WEIR_CHANNEL_OPTIONS(.receive_initial = 16)).receive_min, 16);
}

TEST(config, switches_off_what_can_be)
{
    weir_channel_options options =
        options_of(WEIR_CHANNEL_OPTIONS(.connect_timeout_ns = WEIR_OFF, .write_cap = WEIR_OFF));

    assert_int_equal(options.connect_timeout_ns, WEIR_NEVER);
    assert_int_equal(options.write_cap, WEIR_NEVER);
}

TEST(config, rejects_invalid_options)
{
    static const weir_channel_options nonsense[] = {
        {.size = sizeof(weir_channel_options), .low_mark = 2, .high_mark = 1},
        {.size = sizeof(weir_channel_options), .low_mark = -1},
        {.size = sizeof(weir_channel_options), .connect_timeout_ns = -2},
        {.size = sizeof(weir_channel_options), .write_cap = -2},
        {.size = sizeof(weir_channel_options), .reads_per_turn = -1},
        {.size = sizeof(weir_channel_options), .receive_min = 10, .receive_max = 9},
        {.size = sizeof(weir_channel_options), .receive_initial = 10, .receive_max = 9},
        {.size = sizeof(weir_channel_options), .backlog = -1},
        {.size = sizeof(weir_channel_options), .reuse_address = 2},
        {.size = sizeof(weir_channel_options), .socket_option_count = 1},
    };
    const unsigned count = sizeof(nonsense) / sizeof(nonsense[0]);
    weir__config *config;

    log_capture_start();
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(weir__config_create(&nonsense[i], &config), -EINVAL);
    assert_int_equal(log_capture_count(WEIR_LOG_ERROR), count);
    assert_true(log_capture_last_contains("socket_option_count is too large"));
}

TEST(config, copies_socket_options)
{
    weir_socket_option given[] = {{1, 2, 3}, {4, 5, 6}};
    weir__config *config;

    assert_int_equal(
        weir__config_create(WEIR_CHANNEL_OPTIONS(.socket_options = given, .socket_option_count = 2),
                            &config),
        0);
    given[1].value = 0;
    assert_int_equal(config->options.socket_options[1].value, 6);
    weir__config_release(config);
    weir__config_release(NULL);
}

TEST(config, that_cannot_be_made_leaves_nothing)
{
    weir_socket_option given = {1, 2, 3};
    weir__config *config;

    for (unsigned n = 1; n <= 2; n++) {
        test_memory_fail_at(n);
        assert_int_equal(
            weir__config_create(
                WEIR_CHANNEL_OPTIONS(.socket_options = &given, .socket_option_count = 1), &config),
            -ENOMEM);
    }
    test_memory_fail_at(0);
}

TEST(config, of_one_channel_changes_without_the_others)
{
    struct test_channel tc;
    weir_channel_options options;
    weir__config *shared, *own;

    tc_open_started(&tc, NULL, NULL);
    shared = weir__config_retain(weir__channel_config(tc.channel));
    assert_int_equal(
        weir_channel_set_options(tc.channel,
                                 WEIR_CHANNEL_OPTIONS(.reads_per_turn = 3, .read_on_demand = true)),
        0);
    assert_events(&tc.events, "STOP CONFIGURE");
    assert_false(weir_channel_auto_read(tc.channel));
    weir_channel_get_options(tc.channel, &options);
    assert_int_equal(options.reads_per_turn, 3);
    assert_int_equal(shared->options.reads_per_turn, 16);

    own = weir__channel_config(tc.channel);
    assert_int_equal(weir_channel_set_options(tc.channel, WEIR_CHANNEL_OPTIONS(.high_mark = 5)), 0);
    assert_ptr_equal(weir__channel_config(tc.channel), own);
    assert_true(weir_channel_auto_read(tc.channel));
    weir_channel_set_auto_read(tc.channel, false);
    assert_int_equal(weir_channel_set_options(tc.channel, WEIR_CHANNEL_OPTIONS(.high_mark = 5)), 0);
    assert_false(weir_channel_auto_read(tc.channel)); /* as it was set by hand */
    weir_channel_get_options(tc.channel, &options);
    assert_int_equal(options.high_mark, 5);
    assert_int_equal(weir_channel_set_options(tc.channel, WEIR_CHANNEL_OPTIONS(.backlog = -1)),
                     -EINVAL);
    weir__config_release(shared);
    tc_close(&tc);
}

TEST(config, is_kept_if_there_is_no_memory_for_another)
{
    struct test_channel tc;
    weir_channel_options options;

    for (unsigned n = 1;; n++) {
        tc_open_started(&tc, NULL, NULL);
        test_memory_fail_at(n);
        if (weir_channel_set_options(tc.channel, WEIR_CHANNEL_OPTIONS(.reads_per_turn = 3)) == 0)
            break;
        assert_true(test_memory_failed());
        test_memory_fail_at(0);
        weir_channel_get_options(tc.channel, &options);
        assert_int_equal(options.reads_per_turn, 16);
        tc_close(&tc);
    }
    test_memory_fail_at(0);
    tc_close(&tc);
}

static void set_socket_option(struct test_channel *tc, int value, int reads)
{
    const weir_socket_option option = {.level = 1, .name = 2, .value = value};

    assert_int_equal(
        weir_channel_set_options(tc->channel, WEIR_CHANNEL_OPTIONS(.socket_options = &option,
                                                                   .socket_option_count = 1,
                                                                   .reads_per_turn = reads)),
        0);
}

/* Under AddressSanitizer it shows that the memory is still there. */
TEST(config, lends_socket_options_for_as_long_as_there_is_the_channel)
{
    struct test_channel tc;
    weir_channel_options first, second, third;

    tc_open_started(&tc, NULL, NULL);
    set_socket_option(&tc, 10, 1);
    weir_channel_get_options(tc.channel, &first);
    set_socket_option(&tc, 20, 1);
    weir_channel_get_options(tc.channel, &second);
    set_socket_option(&tc, 30, 1);
    weir_channel_get_options(tc.channel, &third);
    assert_int_equal(first.socket_options[0].value, 10);
    assert_int_equal(second.socket_options[0].value, 20);
    assert_int_equal(third.socket_options[0].value, 30);
    tc_close(&tc);
}

TEST(config, keeps_no_more_memory_for_socket_options_that_stay_the_same)
{
    struct test_channel tc;
    weir_channel_options before, after;
    size_t live;

    tc_open_started(&tc, NULL, NULL);
    set_socket_option(&tc, 10, 1);
    weir_channel_get_options(tc.channel, &before);
    live = test_memory_live();
    for (int i = 2; i < 10; i++)
        set_socket_option(&tc, 10, i);
    weir_channel_get_options(tc.channel, &after);
    assert_int_equal(after.reads_per_turn, 9);
    assert_ptr_equal(after.socket_options, before.socket_options);
    assert_int_equal(test_memory_live(), live);
    tc_close(&tc);
}

TEST(config, with_socket_options_is_kept_if_there_is_no_memory_for_another)
{
    struct test_channel tc;
    weir_channel_options options;
    const weir_socket_option other = {.level = 1, .name = 2, .value = 20};
    unsigned n = 1;
    int err;

    tc_open_started(&tc, NULL, NULL);
    set_socket_option(&tc, 10, 1);
    do {
        test_memory_fail_at(n++);
        err = weir_channel_set_options(
            tc.channel, WEIR_CHANNEL_OPTIONS(.socket_options = &other, .socket_option_count = 1));
        weir_channel_get_options(tc.channel, &options);
        assert_int_equal(options.socket_options[0].value, err == 0 ? 20 : 10);
    } while (err < 0);
    assert_int_equal(n, 5); /* a config, its socket options, and what keeps those before */
    test_memory_fail_at(0);
    tc_close(&tc);
}
