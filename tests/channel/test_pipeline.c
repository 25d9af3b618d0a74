/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adding, removing and finding handlers, and how events pass them.
 */
#include <errno.h>
#include <string.h>

#include <weir/error.h>

#include "support/channel/test_channel.h"
#include "support/executor/log_capture.h"
#include "support/memory.h"

static int add_at(struct test_channel *tc, const weir_place *place, const char *name)
{
    struct event_recorder options = {.events = &tc->events};

    strncpy(options.name, name, sizeof(options.name) - 1);
    return weir_pipeline_add(tc->pipeline, place, &event_recorder, &options);
}

static void assert_dump(struct test_channel *tc, const char *text)
{
    char buffer[256];

    assert_int_equal(weir_pipeline_dump(tc->pipeline, buffer, sizeof(buffer)), strlen(text));
    assert_string_equal(buffer, text);
}

/* ---- places and names ---- */

TEST(pipeline, adds_first_last_before_and_after)
{
    struct test_channel tc;

    tc_open(&tc);
    tc_add(&tc, "m");
    assert_int_equal(add_at(&tc, WEIR_PLACE(.first = true, .name = "first"), "first"), 0);
    assert_int_equal(add_at(&tc, WEIR_PLACE(.name = "last"), "last"), 0);
    assert_int_equal(add_at(&tc, WEIR_PLACE(.before = "m", .name = "before"), "before"), 0);
    assert_int_equal(add_at(&tc, WEIR_PLACE(.after = "m", .name = "after"), "after"), 0);
    assert_dump(&tc, "head <-> first <-> before <-> m <-> after <-> last <-> tail");
    assert_int_equal(weir_pipeline_count(tc.pipeline), 5);
    assert_int_equal(add_at(&tc, WEIR_PLACE(.before = "nobody"), "x"), -ENOENT);
    assert_int_equal(add_at(&tc, WEIR_PLACE(.before = "m", .after = "m"), "x"), -EINVAL);
    assert_int_equal(add_at(&tc, WEIR_PLACE(.first = true, .after = "m"), "x"), -EINVAL);
    assert_int_equal(weir_pipeline_add_last(tc.pipeline, NULL, NULL), -EINVAL);
    assert_int_equal(weir_pipeline_add_before(tc.pipeline, NULL, &event_recorder, NULL), -EINVAL);
    assert_int_equal(weir_pipeline_add_after(tc.pipeline, NULL, &event_recorder, NULL), -EINVAL);
    assert_int_equal(weir_pipeline_add_last_as(tc.pipeline, NULL, &event_recorder, NULL), -EINVAL);
    assert_int_equal(weir_pipeline_remove(tc.pipeline, NULL, NULL), -EINVAL);
    assert_int_equal(weir_pipeline_add_before(tc.pipeline, "nobody", &event_recorder,
                                              EVENT_RECORDER(&tc.events, "x")),
                     -ENOENT);
    assert_int_equal(weir_pipeline_add_after(tc.pipeline, "nobody", &event_recorder,
                                             EVENT_RECORDER(&tc.events, "x")),
                     -ENOENT);
    assert_int_equal(weir_pipeline_count(tc.pipeline), 5);
    tc_close(&tc);
}

TEST(pipeline, dumps_no_more_than_there_is_room_for)
{
    struct test_channel tc;
    char buffer[12];

    tc_open(&tc);
    tc_add(&tc, "a");
    assert_int_equal(weir_pipeline_dump(tc.pipeline, NULL, 0), strlen("head <-> a <-> tail"));
    assert_int_equal(weir_pipeline_dump(tc.pipeline, buffer, sizeof(buffer)),
                     strlen("head <-> a <-> tail"));
    assert_string_equal(buffer, "head <-> a ");
    tc_close(&tc);
}

TEST(pipeline, numbers_names_that_are_taken)
{
    struct test_channel tc;
    weir_ctx *second;

    tc_open(&tc);
    for (int i = 0; i < 3; i++)
        assert_int_equal(
            weir_pipeline_add_last(tc.pipeline, &event_recorder, EVENT_RECORDER(&tc.events, "a")),
            0);
    assert_dump(&tc, "head <-> recorder <-> recorder#2 <-> recorder#3 <-> tail");
    second = weir_pipeline_find(tc.pipeline, "recorder#2");
    assert_string_equal(weir_ctx_name(second), "recorder#2");
    assert_ptr_equal(weir_ctx_handler(second), &event_recorder);
    assert_ptr_equal(weir_ctx_channel(second), tc.channel);
    assert_ptr_equal(weir_ctx_pipeline(second), tc.pipeline);
    assert_ptr_equal(weir_pipeline_channel(tc.pipeline), tc.channel);
    assert_ptr_equal(weir_pipeline_find_handler(tc.pipeline, &event_recorder),
                     weir_pipeline_find(tc.pipeline, "recorder"));
    assert_null(weir_pipeline_find_handler(tc.pipeline, &lifecycle_recorder));
    assert_int_equal(weir_pipeline_add_last_as(tc.pipeline, "recorder#2", &event_recorder,
                                               EVENT_RECORDER(&tc.events, "b")),
                     -EEXIST);
    assert_int_equal(event_log_count(&tc.events, "b.deinit"), 1);
    tc_close(&tc);
}

TEST(pipeline, refuses_names_that_are_too_long)
{
    struct test_channel tc;
    char name[256];

    memset(name, 'x', sizeof(name));
    name[255] = '\0';
    tc_open(&tc);
    assert_int_equal(weir_pipeline_add_last_as(tc.pipeline, name, &event_recorder,
                                               EVENT_RECORDER(&tc.events, "a")),
                     -ENAMETOOLONG);
    tc_close(&tc);
}

TEST(pipeline, reports_an_unknown_handler)
{
    struct test_channel tc;
    weir_promise *done;

    tc_open_started(&tc, NULL, NULL);
    done = tc_promise(&tc, "done");
    assert_int_equal(weir_pipeline_remove(tc.pipeline, "nobody", done), -ENOENT);
    assert_int_equal(weir_promise_result(done), -ENOENT);
    weir_promise_release(done);
    done = tc_promise(&tc, "done");
    event_log_clear(&tc.events);
    assert_int_equal(weir_pipeline_remove(tc.pipeline, "a", done), 0);
    assert_events(&tc.events, "a.removed done=ok");
    assert_int_equal(weir_pipeline_remove(tc.pipeline, "a", NULL), -ENOENT);
    tc_run(&tc);
    assert_events(&tc.events, "a.deinit");
    weir_promise_release(done);
    tc_close(&tc);
}

TEST(pipeline, replaces_and_keeps_the_name_if_it_is_free)
{
    struct test_channel tc;

    tc_open_started(&tc, NULL, NULL);
    tc_add(&tc, "b");
    event_log_clear(&tc.events);
    assert_int_equal(weir_pipeline_replace(tc.pipeline, "a", WEIR_PLACE(.name = "b"),
                                           &event_recorder, EVENT_RECORDER(&tc.events, "c")),
                     -EEXIST);
    assert_events(&tc.events, "c.deinit");
    assert_int_equal(weir_pipeline_replace(tc.pipeline, "nobody", NULL, &event_recorder,
                                           EVENT_RECORDER(&tc.events, "c")),
                     -ENOENT);
    assert_int_equal(weir_pipeline_replace(tc.pipeline, "a", WEIR_PLACE(.first = true),
                                           &event_recorder, EVENT_RECORDER(&tc.events, "c")),
                     -EINVAL);
    event_log_clear(&tc.events);
    assert_int_equal(weir_pipeline_replace(tc.pipeline, "a", WEIR_PLACE(.name = "a"),
                                           &event_recorder, EVENT_RECORDER(&tc.events, "c")),
                     0);
    assert_events(&tc.events, "c.added a.removed");
    assert_dump(&tc, "head <-> a <-> b <-> tail");
    (void)tc_receive(&tc, "x");
    assert_events(&tc.events, "c.read(x) b.read(x)");
    tc_run(&tc);
    assert_events(&tc.events, "a.deinit");
    tc_close(&tc);
}

/* ---- being told ---- */

TEST(pipeline, calls_added_and_removed_at_the_registration)
{
    struct test_channel tc;

    tc_open(&tc);
    tc_add(&tc, "a");
    tc_add(&tc, "b");
    assert_int_equal(weir_pipeline_remove(tc.pipeline, "a", NULL), 0);
    assert_null(weir_pipeline_find(tc.pipeline, "a"));
    assert_dump(&tc, "head <-> b <-> tail");
    assert_events(&tc.events, "");
    tc_start(&tc);
    assert_events(&tc.events, "ATTACH a.added a.removed b.added b.registered b.active "
                              "b.request_read READ a.deinit");
    tc_close(&tc);
}

static void add_in_listener(weir_promise *promise, void *user_data)
{
    (void)promise;
    tc_add(user_data, "late");
}

TEST(pipeline, calls_added_before_the_first_event)
{
    struct test_channel tc;
    weir_promise *done;

    tc_open(&tc);
    done = tc_promise(&tc, "done");
    assert_int_equal(weir_promise_add_listener(done, add_in_listener, &tc), 0);
    weir_channel_register(tc.channel, tc.stepper.executor, done);
    assert_events(&tc.events, "ATTACH done=ok late.added late.registered late.active "
                              "late.request_read READ");
    weir_promise_release(done);
    tc_close(&tc);
}

TEST(pipeline, removes_all_handlers_from_the_tail_on_when_it_ends)
{
    struct test_channel tc;

    tc_open_started(&tc, NULL, NULL);
    tc_add(&tc, "b");
    tc_add(&tc, "c");
    event_log_clear(&tc.events);
    weir_channel_abort(tc.channel, NULL);
    tc_run(&tc);
    assert_events(&tc.events,
                  "CLOSE a.inactive b.inactive c.inactive a.unregistered b.unregistered "
                  "c.unregistered c.removed b.removed a.removed a.deinit b.deinit c.deinit");
    tc_close(&tc);
}

static int refuse(void *state, const void *options)
{
    (void)state;
    return *(const int *)options;
}

static void refuse_deinit(void *state)
{
    (void)state;
    fail_msg("deinit without init");
}

TEST(pipeline, does_not_add_a_handler_whose_init_fails)
{
    static const weir_handler refusing = {
        .name = "refusing", .state_size = 64, .init = refuse, .deinit = refuse_deinit};
    struct test_channel tc;
    int err = -EDOM;

    tc_open_started(&tc, NULL, NULL);
    assert_int_equal(weir_pipeline_add_last(tc.pipeline, &refusing, &err), -EDOM);
    assert_int_equal(weir_pipeline_count(tc.pipeline), 1);
    tc_close(&tc);
}

static void go_at_once(weir_ctx *ctx)
{
    weir_fire_error(ctx, -EDOM, NULL);
    weir_ctx_remove(ctx);
    assert_true(weir_ctx_is_removed(ctx));
    weir_ctx_remove(ctx);
}

TEST(pipeline, allows_a_handler_to_remove_itself_in_added)
{
    static const weir_handler fickle = {.name = "fickle", .added = go_at_once};
    struct test_channel tc;

    tc_open_started(&tc, NULL, WEIR_CHANNEL_OPTIONS(.keep_open_on_error = true));
    log_capture_start();
    assert_int_equal(weir_pipeline_add_first(tc.pipeline, &fickle, NULL), 0);
    assert_events(&tc.events, "a.error(EDOM)");
    assert_int_equal(weir_pipeline_count(tc.pipeline), 1);
    tc_close(&tc);
}

/* ---- events ---- */

TEST(pipeline, brings_events_in_from_the_head_and_out_from_the_tail)
{
    struct test_channel tc;

    tc_open_started(&tc, NULL, NULL);
    tc_add(&tc, "b");
    event_log_clear(&tc.events);
    (void)tc_receive(&tc, "x");
    weir__channel_read_complete(tc.channel);
    assert_events(&tc.events, "a.read(x) b.read(x) a.read_complete b.read_complete b.request_read "
                              "a.request_read");
    weir_channel_write_and_flush(tc.channel, text_msg("y"), NULL);
    assert_events(&tc.events, "b.write(y) a.write(y) b.flush a.flush FLUSH");
    weir_write(weir_pipeline_find(tc.pipeline, "b"), text_msg("z"), NULL);
    assert_events(&tc.events, "a.write(z)");
    weir_channel_fire_event(tc.channel, text_msg("e"));
    assert_events(&tc.events, "a.event(e) b.event(e)");
    tc_close(&tc);
}

static void on_read_upper(weir_ctx *ctx, weir_msg *msg)
{
    weir_msg_release(msg);
    weir_fire_read(ctx, text_msg("changed"));
}

TEST(pipeline, skips_handlers_without_the_slot)
{
    static const weir_handler changer = {.name = "changer", .read = on_read_upper};
    struct test_channel tc;

    tc_open_started(&tc, NULL, NULL);
    for (int i = 0; i < 3; i++)
        assert_int_equal(weir_pipeline_add_last(tc.pipeline, &lifecycle_recorder,
                                                EVENT_RECORDER(&tc.events, "x")),
                         0);
    assert_int_equal(weir_pipeline_add_last(tc.pipeline, &changer, NULL), 0);
    tc_add(&tc, "b");
    event_log_clear(&tc.events);
    (void)tc_receive(&tc, "x");
    weir_pipeline_fire_read_complete(tc.pipeline);
    weir_channel_write(tc.channel, text_msg("y"), NULL);
    assert_events(&tc.events, "a.read(x) b.read(changed) a.read_complete b.read_complete "
                              "b.write(y) a.write(y)");
    tc_close(&tc);
}

static void on_error_again(weir_ctx *ctx, int err, const char *detail)
{
    assert_string_equal(detail, "first");
    weir_fire_error(ctx, err == -EDOM ? -ERANGE : -EDOM, "second");
}

TEST(pipeline, brings_an_error_of_an_error_to_the_next_handler)
{
    static const weir_handler clumsy = {.name = "clumsy", .error = on_error_again};
    struct test_channel tc;

    tc_open(&tc);
    assert_int_equal(weir_pipeline_add_last(tc.pipeline, &clumsy, NULL), 0);
    tc_add(&tc, "b");
    tc_start(&tc);
    event_log_clear(&tc.events);
    log_capture_start();
    weir_pipeline_fire_error(tc.pipeline, -EDOM, "first");
    assert_events(&tc.events, "b.error(ERANGE) b.close FIN");
    assert_true(log_capture_last_contains("second"));
    tc_close(&tc);
}

static void on_read_once(weir_ctx *ctx, weir_msg *msg)
{
    weir_ctx_remove(ctx);
    weir_fire_read(ctx, msg);
}

TEST(pipeline, allows_a_removed_handler_to_pass_messages_on)
{
    static const weir_handler once = {.name = "once", .read = on_read_once};
    struct test_channel tc;

    tc_open(&tc);
    assert_int_equal(weir_pipeline_add_last(tc.pipeline, &once, NULL), 0);
    assert_int_equal(weir_pipeline_add_last(tc.pipeline, &once, NULL), 0);
    tc_add(&tc, "b");
    tc_start(&tc);
    event_log_clear(&tc.events);
    (void)tc_receive(&tc, "x");
    assert_events(&tc.events, "b.read(x)");
    assert_dump(&tc, "head <-> b <-> tail");
    tc_close(&tc);
}

TEST(pipeline, releases_unhandled_messages)
{
    struct test_channel tc;
    weir_msg *msg = weir_msg_retain(text_msg("x"));

    tc_open_started(&tc, NULL, NULL);
    weir_pipeline_fire_read(tc.pipeline, weir_msg_retain(msg));
    weir_pipeline_fire_event(tc.pipeline, msg);
    assert_int_equal(weir_msg_refs(msg), 1);
    weir_msg_release(msg);
    tc_close(&tc);
}

TEST(pipeline, closes_unhandled_accepted_channels)
{
    struct test_channel tc;
    weir_channel *accepted;

    tc_open_started(&tc, &(struct wire_options){.accepts = true, .silent = true}, NULL);
    assert_int_equal(wire_create(&tc.events, NULL, NULL, tc.channel, &accepted), 0);
    assert_ptr_equal(weir_channel_parent(accepted), tc.channel);
    assert_ptr_equal(weir_channel_of(weir__channel_msg(accepted)), accepted);
    weir_pipeline_fire_read(tc.pipeline, weir__channel_msg(accepted));
    assert_events(&tc.events, "a.read(channel) CLOSE DESTROY");
    tc_close(&tc);
}

TEST(pipeline, turns_a_disconnect_into_a_close_where_there_is_none)
{
    struct test_channel tc;

    tc_open_started(&tc, NULL, NULL);
    weir_channel_disconnect(tc.channel, NULL);
    assert_events(&tc.events, "a.close FIN");
    tc_close(&tc);

    tc_open_started(&tc, &(struct wire_options){.can_disconnect = true}, NULL);
    weir_channel_disconnect(tc.channel, NULL);
    assert_events(&tc.events, "a.disconnect DISCONNECT STOP");
    assert_false(weir_channel_is_active(tc.channel));
    tc_run(&tc);
    assert_events(&tc.events, "a.inactive");
    assert_true(weir_channel_is_open(tc.channel));
    tc_close(&tc);
}

/* ---- initialisers ---- */

static int init_inner(weir_channel *channel, void *tc)
{
    assert_ptr_equal(channel, ((struct test_channel *)tc)->channel);
    tc_add(tc, "i1");
    tc_add(tc, "i2");
    return 0;
}

static int init_outer(weir_channel *channel, void *tc)
{
    tc_add(tc, "o1");
    assert_int_equal(weir_pipeline_add_initializer(weir_channel_pipeline(channel), init_inner, tc),
                     0);
    tc_add(tc, "o2");
    return 0;
}

TEST(pipeline, runs_initialisers_in_their_place)
{
    struct test_channel tc;

    tc_open(&tc);
    tc_add(&tc, "a");
    assert_int_equal(weir_pipeline_add_initializer(tc.pipeline, init_outer, &tc), 0);
    tc_add(&tc, "z");
    tc_start(&tc);
    assert_dump(&tc, "head <-> a <-> o1 <-> i1 <-> i2 <-> o2 <-> z <-> tail");
    assert_int_equal(event_log_count(&tc.events, "i2.active"), 1);
    tc_close(&tc);
}

static int init_badly(weir_channel *channel, void *tc)
{
    (void)channel;
    tc_add(tc, "b");
    return -EDOM;
}

TEST(pipeline, closes_a_channel_whose_initializer_fails)
{
    struct test_channel tc;

    log_capture_start();
    tc_open(&tc);
    assert_int_equal(weir_pipeline_add_initializer(tc.pipeline, init_badly, &tc), 0);
    tc_start(&tc);
    assert_events(&tc.events,
                  "ATTACH b.added CLOSE b.registered b.unregistered b.removed b.deinit");
    assert_false(weir_channel_is_open(tc.channel));
    assert_int_equal(log_capture_count(WEIR_LOG_WARN), 1);
    tc_close(&tc);

    tc_open(&tc);
    tc_start(&tc);
    assert_int_equal(weir_pipeline_add_initializer(tc.pipeline, init_badly, &tc), 0);
    assert_false(weir_channel_is_open(tc.channel));
    tc_close(&tc);
}

/* ---- memory ---- */

TEST(pipeline, leaves_nothing_behind_when_there_is_no_memory)
{
    struct test_channel tc;
    unsigned n;
    int err;

    tc_open_started(&tc, NULL, NULL);
    for (n = 1;; n++) {
        test_memory_fail_at(n);
        err = weir_pipeline_add_last(tc.pipeline, &event_recorder, EVENT_RECORDER(&tc.events, "b"));
        if (!test_memory_failed())
            break;
        assert_int_equal(err, -ENOMEM);
        assert_int_equal(weir_pipeline_count(tc.pipeline), 1);
    }
    test_memory_fail_at(0);
    assert_int_equal(n, 2); /* one allocation for context, state and name */
    tc_close(&tc);
}

TEST(pipeline, keeps_a_context_small)
{
    assert_int_equal(sizeof(weir_ctx), 40);
#ifdef NDEBUG /* else with the time of a write that may have been forgotten */
    assert_true(sizeof(weir_channel) <= 248); /* docs/internals/channel.md says what for */
#endif
}

static void leave_at_once(weir_ctx *ctx)
{
    weir_ctx_remove(ctx);
}

/* Before the registration as after it. */
TEST(pipeline, calls_removed_once_if_removed_in_added)
{
    static weir_handler hasty;
    struct test_channel tc;

    hasty = event_recorder;
    hasty.added = leave_at_once;
    tc_open(&tc);
    assert_int_equal(weir_pipeline_add_last(tc.pipeline, &hasty, EVENT_RECORDER(&tc.events, "h")),
                     0);
    tc_start(&tc);
    assert_int_equal(event_log_count(&tc.events, "h.removed"), 1);
    assert_int_equal(weir_pipeline_add_last(tc.pipeline, &hasty, EVENT_RECORDER(&tc.events, "i")),
                     0);
    tc_run(&tc);
    assert_int_equal(event_log_count(&tc.events, "i.removed"), 1);
    tc_close(&tc);
}

static void read_and_answer(weir_ctx *ctx, weir_msg *msg)
{
    weir_pipeline *pipeline = weir_ctx_pipeline(ctx);
    struct event_recorder *self = weir_ctx_state(ctx);

    IGNORE_RESULT(weir_pipeline_replace(pipeline, "old", WEIR_PLACE(.name = "new"), &event_recorder,
                                        EVENT_RECORDER(self->events, "new")));
    weir_write(ctx, weir_msg_retain(msg), NULL);
    weir_fire_read(ctx, msg);
}

/* C.6: what the old one still passes on goes through the new one, in both directions. */
TEST(pipeline, brings_what_a_replaced_handler_passes_on_to_its_replacement)
{
    static weir_handler old;
    struct test_channel tc;

    old = event_recorder;
    old.read = read_and_answer;
    tc_open_started(&tc, NULL, NULL);
    assert_int_equal(
        weir_pipeline_add_last_as(tc.pipeline, "old", &old, EVENT_RECORDER(&tc.events, "old")), 0);
    tc_add(&tc, "z");
    event_log_clear(&tc.events);
    (void)tc_receive(&tc, "x");
    assert_events(&tc.events, "a.read(x) new.added old.removed new.write(x) a.write(x) new.read(x) "
                              "z.read(x)");
    tc_run(&tc);
    assert_events(&tc.events, "old.deinit");
    assert_dump(&tc, "head <-> a <-> new <-> z <-> tail");
    tc_write(&tc, "y", NULL);
    (void)tc_receive(&tc, "w");
    assert_events(&tc.events, "z.write(y) new.write(y) a.write(y) a.read(w) new.read(w) z.read(w)");
    tc_close(&tc);
}

static void replace(struct test_channel *tc, const char *old, const char *name)
{
    struct event_recorder options = {.events = &tc->events};

    strncpy(options.name, name, sizeof(options.name) - 1);
    assert_int_equal(weir_pipeline_replace(tc->pipeline, old, WEIR_PLACE(.name = name),
                                           &event_recorder, &options),
                     0);
}

/* Changes before the registration are reported in order. */
TEST(pipeline, calls_added_of_the_new_before_removed_of_the_old)
{
    struct test_channel tc;

    tc_open_with(&tc, &(const struct wire_options){.silent = true}, NULL);
    tc_add(&tc, "a");
    replace(&tc, "a", "b");
    assert_int_equal(add_at(&tc, WEIR_PLACE(.before = "b", .name = "x"), "x"), 0);
    replace(&tc, "b", "c");
    tc_add(&tc, "z");
    tc_start(&tc);
    assert_events(&tc.events, "a.added x.added b.added a.removed c.added b.removed z.added "
                              "x.registered c.registered z.registered x.active c.active z.active "
                              "z.request_read c.request_read x.request_read a.deinit b.deinit");
    tc_close(&tc);
}

TEST(pipeline, calls_everything_of_a_handler_replaced_before_the_registration)
{
    struct test_channel tc;

    tc_open_with(&tc, &(const struct wire_options){.silent = true, .idle = true}, NULL);
    tc_add(&tc, "a");
    replace(&tc, "a", "b");
    assert_int_equal(weir_pipeline_remove(tc.pipeline, "b", NULL), 0);
    tc_start(&tc);
    assert_events(&tc.events, "a.added b.added a.removed b.removed a.deinit b.deinit");
    tc_close(&tc);
}

static void replace_the_next(weir_ctx *ctx)
{
    struct event_recorder *self = weir_ctx_state(ctx);

    IGNORE_RESULT(weir_pipeline_replace(weir_ctx_pipeline(ctx), "old", WEIR_PLACE(.name = "new"),
                                        &event_recorder, EVENT_RECORDER(self->events, "new")));
}

TEST(pipeline, calls_removed_of_a_handler_replaced_in_added_of_another)
{
    static weir_handler meddler;
    struct test_channel tc;

    meddler = event_recorder;
    meddler.added = replace_the_next;
    tc_open_with(&tc, &(const struct wire_options){.silent = true, .idle = true}, NULL);
    assert_int_equal(
        weir_pipeline_add_last_as(tc.pipeline, "m", &meddler, EVENT_RECORDER(&tc.events, "m")), 0);
    tc_add(&tc, "old");
    tc_start(&tc);
    assert_int_equal(event_log_count(&tc.events, "old.added"), 1);
    assert_int_equal(event_log_count(&tc.events, "old.removed"), 1);
    assert_dump(&tc, "head <-> m <-> new <-> tail");
    tc_close(&tc);
}

/* Also while the old ones are still in memory. */
TEST(pipeline, may_be_changed_around_a_handler_that_was_replaced)
{
    struct test_channel tc;

    tc_open_started(&tc, NULL, NULL);
    assert_int_equal(weir_pipeline_replace(tc.pipeline, "a", WEIR_PLACE(.name = "b"),
                                           &event_recorder, EVENT_RECORDER(&tc.events, "b")),
                     0);
    assert_int_equal(add_at(&tc, WEIR_PLACE(.before = "b", .name = "x"), "x"), 0);
    assert_int_equal(weir_pipeline_replace(tc.pipeline, "b", WEIR_PLACE(.name = "c"),
                                           &event_recorder, EVENT_RECORDER(&tc.events, "c")),
                     0);
    assert_int_equal(add_at(&tc, WEIR_PLACE(.first = true, .name = "f"), "f"), 0);
    assert_int_equal(add_at(&tc, WEIR_PLACE(.after = "c", .name = "y"), "y"), 0);
    assert_int_equal(weir_pipeline_remove(tc.pipeline, "c", NULL), 0);
    assert_dump(&tc, "head <-> f <-> x <-> y <-> tail");
    event_log_clear(&tc.events);
    tc_write(&tc, "o", NULL);
    (void)tc_receive(&tc, "i");
    assert_events(&tc.events, "y.write(o) x.write(o) f.write(o) f.read(i) x.read(i) y.read(i)");
    tc_run(&tc);
    assert_int_equal(event_log_count(&tc.events, "a.deinit"), 1);
    assert_int_equal(event_log_count(&tc.events, "b.deinit"), 1);
    assert_int_equal(event_log_count(&tc.events, "c.deinit"), 1);
    event_log_clear(&tc.events);
    tc_write(&tc, "o", NULL);
    (void)tc_receive(&tc, "i");
    assert_events(&tc.events, "y.write(o) x.write(o) f.write(o) f.read(i) x.read(i) y.read(i)");
    tc_close(&tc);
}

/* ---- changes from `added` of a replacement ---- */

/* What a replacement does to the one that it replaces. */
static int nested_result;

static void replace_once_more(weir_ctx *ctx)
{
    struct event_recorder *self = weir_ctx_state(ctx);

    event_log_write(self->events, "%s.added", self->name);
    nested_result = weir_pipeline_replace(weir_ctx_pipeline(ctx), "a", WEIR_PLACE(.name = "third"),
                                          &event_recorder, EVENT_RECORDER(self->events, "third"));
}

/* A handler has left the pipeline as soon as its replacement is linked. */
TEST(pipeline, no_longer_finds_a_replaced_handler_when_its_replacement_is_added)
{
    static weir_handler meddler;
    struct test_channel tc;

    meddler = event_recorder;
    meddler.added = replace_once_more;
    tc_open_started(&tc, NULL, NULL);
    tc_add(&tc, "z");
    event_log_clear(&tc.events);
    assert_int_equal(weir_pipeline_replace(tc.pipeline, "a", WEIR_PLACE(.name = "second"), &meddler,
                                           EVENT_RECORDER(&tc.events, "second")),
                     0);
    assert_int_equal(nested_result, -ENOENT);
    assert_dump(&tc, "head <-> second <-> z <-> tail");
    tc_write(&tc, "o", NULL);
    (void)tc_receive(&tc, "i");
    assert_events(&tc.events,
                  "second.added third.deinit a.removed z.write(o) second.write(o) second.read(i) "
                  "z.read(i)");
    tc_run(&tc);
    assert_events(&tc.events, "a.deinit");
    tc_close(&tc);
}

static void replace_itself(weir_ctx *ctx)
{
    struct event_recorder *self = weir_ctx_state(ctx);

    event_log_write(self->events, "%s.added", self->name);
    nested_result =
        weir_pipeline_replace(weir_ctx_pipeline(ctx), "second", WEIR_PLACE(.name = "third"),
                              &event_recorder, EVENT_RECORDER(self->events, "third"));
}

static void read_and_replace(weir_ctx *ctx, weir_msg *msg)
{
    static weir_handler second;
    struct event_recorder *self = weir_ctx_state(ctx);

    second = event_recorder;
    second.added = replace_itself;
    IGNORE_RESULT(weir_pipeline_replace(weir_ctx_pipeline(ctx), "old", WEIR_PLACE(.name = "second"),
                                        &second, EVENT_RECORDER(self->events, "second")));
    weir_write(ctx, weir_msg_retain(msg), NULL);
    weir_fire_read(ctx, msg);
}

TEST(pipeline, brings_what_a_replaced_handler_passes_on_to_the_last_of_its_replacements)
{
    static weir_handler old;
    struct test_channel tc;

    old = event_recorder;
    old.read = read_and_replace;
    tc_open_started(&tc, NULL, NULL);
    assert_int_equal(
        weir_pipeline_add_last_as(tc.pipeline, "old", &old, EVENT_RECORDER(&tc.events, "old")), 0);
    tc_add(&tc, "z");
    event_log_clear(&tc.events);
    (void)tc_receive(&tc, "x");
    assert_int_equal(nested_result, 0);
    assert_events(&tc.events, "a.read(x) second.added third.added second.removed old.removed "
                              "third.write(x) a.write(x) third.read(x) z.read(x)");
    tc_run(&tc);
    assert_events(&tc.events, "old.deinit second.deinit");
    assert_dump(&tc, "head <-> a <-> third <-> z <-> tail");
    tc_close(&tc);
}
