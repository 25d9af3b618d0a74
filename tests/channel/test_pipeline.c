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

static int add_at(struct rig *rig, const weir_place *place, const char *name)
{
    struct spy options = {.diary = &rig->diary};

    strncpy(options.name, name, sizeof(options.name) - 1);
    return weir_pipeline_add(rig->pipeline, place, &spy, &options);
}

static void assert_dump(struct rig *rig, const char *text)
{
    char buffer[256];

    assert_int_equal(weir_pipeline_dump(rig->pipeline, buffer, sizeof(buffer)), strlen(text));
    assert_string_equal(buffer, text);
}

/* ---- places and names ---- */

TEST(pipeline, adds_first_last_before_and_after)
{
    struct rig rig;

    rig_open(&rig);
    rig_add(&rig, "m");
    assert_int_equal(add_at(&rig, WEIR_PLACE(.first = true, .name = "first"), "first"), 0);
    assert_int_equal(add_at(&rig, WEIR_PLACE(.name = "last"), "last"), 0);
    assert_int_equal(add_at(&rig, WEIR_PLACE(.before = "m", .name = "before"), "before"), 0);
    assert_int_equal(add_at(&rig, WEIR_PLACE(.after = "m", .name = "after"), "after"), 0);
    assert_dump(&rig, "head <-> first <-> before <-> m <-> after <-> last <-> tail");
    assert_int_equal(weir_pipeline_count(rig.pipeline), 5);
    assert_int_equal(add_at(&rig, WEIR_PLACE(.before = "nobody"), "x"), -ENOENT);
    assert_int_equal(add_at(&rig, WEIR_PLACE(.before = "m", .after = "m"), "x"), -EINVAL);
    assert_int_equal(add_at(&rig, WEIR_PLACE(.first = true, .after = "m"), "x"), -EINVAL);
    assert_int_equal(weir_pipeline_add_last(rig.pipeline, NULL, NULL), -EINVAL);
    assert_int_equal(weir_pipeline_add_before(rig.pipeline, NULL, &spy, NULL), -EINVAL);
    assert_int_equal(weir_pipeline_add_after(rig.pipeline, NULL, &spy, NULL), -EINVAL);
    assert_int_equal(weir_pipeline_add_last_as(rig.pipeline, NULL, &spy, NULL), -EINVAL);
    assert_int_equal(weir_pipeline_remove(rig.pipeline, NULL, NULL), -EINVAL);
    assert_int_equal(weir_pipeline_add_before(rig.pipeline, "nobody", &spy, SPY(&rig.diary, "x")),
                     -ENOENT);
    assert_int_equal(weir_pipeline_add_after(rig.pipeline, "nobody", &spy, SPY(&rig.diary, "x")),
                     -ENOENT);
    assert_int_equal(weir_pipeline_count(rig.pipeline), 5);
    rig_close(&rig);
}

TEST(pipeline, dumps_no_more_than_there_is_room_for)
{
    struct rig rig;
    char buffer[12];

    rig_open(&rig);
    rig_add(&rig, "a");
    assert_int_equal(weir_pipeline_dump(rig.pipeline, NULL, 0), strlen("head <-> a <-> tail"));
    assert_int_equal(weir_pipeline_dump(rig.pipeline, buffer, sizeof(buffer)),
                     strlen("head <-> a <-> tail"));
    assert_string_equal(buffer, "head <-> a ");
    rig_close(&rig);
}

TEST(pipeline, numbers_names_that_are_taken)
{
    struct rig rig;
    weir_ctx *second;

    rig_open(&rig);
    for (int i = 0; i < 3; i++)
        assert_int_equal(weir_pipeline_add_last(rig.pipeline, &spy, SPY(&rig.diary, "a")), 0);
    assert_dump(&rig, "head <-> spy <-> spy#2 <-> spy#3 <-> tail");
    second = weir_pipeline_find(rig.pipeline, "spy#2");
    assert_string_equal(weir_ctx_name(second), "spy#2");
    assert_ptr_equal(weir_ctx_handler(second), &spy);
    assert_ptr_equal(weir_ctx_channel(second), rig.channel);
    assert_ptr_equal(weir_ctx_pipeline(second), rig.pipeline);
    assert_ptr_equal(weir_pipeline_channel(rig.pipeline), rig.channel);
    assert_ptr_equal(weir_pipeline_find_handler(rig.pipeline, &spy),
                     weir_pipeline_find(rig.pipeline, "spy"));
    assert_null(weir_pipeline_find_handler(rig.pipeline, &bystander));
    assert_int_equal(weir_pipeline_add_last_as(rig.pipeline, "spy#2", &spy, SPY(&rig.diary, "b")),
                     -EEXIST);
    assert_int_equal(diary_count(&rig.diary, "b.deinit"), 1);
    rig_close(&rig);
}

TEST(pipeline, refuses_names_that_are_too_long)
{
    struct rig rig;
    char name[256];

    memset(name, 'x', sizeof(name));
    name[255] = '\0';
    rig_open(&rig);
    assert_int_equal(weir_pipeline_add_last_as(rig.pipeline, name, &spy, SPY(&rig.diary, "a")),
                     -ENAMETOOLONG);
    rig_close(&rig);
}

/* D 42 */
TEST(pipeline, says_if_there_is_nobody_to_remove)
{
    struct rig rig;
    weir_promise *done;

    rig_open_started(&rig, NULL, NULL);
    done = rig_promise(&rig, "done");
    assert_int_equal(weir_pipeline_remove(rig.pipeline, "nobody", done), -ENOENT);
    assert_int_equal(weir_promise_result(done), -ENOENT);
    weir_promise_release(done);
    done = rig_promise(&rig, "done");
    diary_clear(&rig.diary);
    assert_int_equal(weir_pipeline_remove(rig.pipeline, "a", done), 0);
    assert_diary(&rig.diary, "a.removed done=ok");
    assert_int_equal(weir_pipeline_remove(rig.pipeline, "a", NULL), -ENOENT);
    rig_run(&rig);
    assert_diary(&rig.diary, "a.deinit");
    weir_promise_release(done);
    rig_close(&rig);
}

/* D 43 */
TEST(pipeline, replaces_and_keeps_the_name_if_it_is_free)
{
    struct rig rig;

    rig_open_started(&rig, NULL, NULL);
    rig_add(&rig, "b");
    diary_clear(&rig.diary);
    assert_int_equal(weir_pipeline_replace(rig.pipeline, "a", WEIR_PLACE(.name = "b"), &spy,
                                           SPY(&rig.diary, "c")),
                     -EEXIST);
    assert_diary(&rig.diary, "c.deinit");
    assert_int_equal(
        weir_pipeline_replace(rig.pipeline, "nobody", NULL, &spy, SPY(&rig.diary, "c")), -ENOENT);
    assert_int_equal(weir_pipeline_replace(rig.pipeline, "a", WEIR_PLACE(.first = true), &spy,
                                           SPY(&rig.diary, "c")),
                     -EINVAL);
    diary_clear(&rig.diary);
    assert_int_equal(weir_pipeline_replace(rig.pipeline, "a", WEIR_PLACE(.name = "a"), &spy,
                                           SPY(&rig.diary, "c")),
                     0);
    assert_diary(&rig.diary, "c.added a.removed");
    assert_dump(&rig, "head <-> a <-> b <-> tail");
    (void)rig_receive(&rig, "x");
    assert_diary(&rig.diary, "c.read(x) b.read(x)");
    rig_run(&rig);
    assert_diary(&rig.diary, "a.deinit");
    rig_close(&rig);
}

/* ---- being told ---- */

/* D 45 */
TEST(pipeline, tells_handlers_at_the_registration_that_were_added_and_removed_before)
{
    struct rig rig;

    rig_open(&rig);
    rig_add(&rig, "a");
    rig_add(&rig, "b");
    assert_int_equal(weir_pipeline_remove(rig.pipeline, "a", NULL), 0);
    assert_null(weir_pipeline_find(rig.pipeline, "a"));
    assert_dump(&rig, "head <-> b <-> tail");
    assert_diary(&rig.diary, "");
    rig_start(&rig);
    assert_diary(&rig.diary, "ATTACH a.added a.removed b.added b.registered b.active "
                             "b.request_read READ a.deinit");
    rig_close(&rig);
}

static void add_in_listener(weir_promise *promise, void *user_data)
{
    (void)promise;
    rig_add(user_data, "late");
}

/* D 48 */
TEST(pipeline, tells_a_handler_that_it_was_added_before_its_first_event)
{
    struct rig rig;
    weir_promise *done;

    rig_open(&rig);
    done = rig_promise(&rig, "done");
    assert_int_equal(weir_promise_add_listener(done, add_in_listener, &rig), 0);
    weir_channel_register(rig.channel, rig.stepper.executor, done);
    assert_diary(&rig.diary, "ATTACH done=ok late.added late.registered late.active "
                             "late.request_read READ");
    weir_promise_release(done);
    rig_close(&rig);
}

/* D 46, D 56 */
TEST(pipeline, removes_all_handlers_from_the_tail_on_when_it_ends)
{
    struct rig rig;

    rig_open_started(&rig, NULL, NULL);
    rig_add(&rig, "b");
    rig_add(&rig, "c");
    diary_clear(&rig.diary);
    weir_channel_abort(rig.channel, NULL);
    rig_run(&rig);
    assert_diary(&rig.diary,
                 "CLOSE a.inactive b.inactive c.inactive a.unregistered b.unregistered "
                 "c.unregistered c.removed b.removed a.removed a.deinit b.deinit c.deinit");
    rig_close(&rig);
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

/* D 47 */
TEST(pipeline, does_not_add_a_handler_whose_init_fails)
{
    static const weir_handler refusing = {
        .name = "refusing", .state_size = 64, .init = refuse, .deinit = refuse_deinit};
    struct rig rig;
    int err = -EDOM;

    rig_open_started(&rig, NULL, NULL);
    assert_int_equal(weir_pipeline_add_last(rig.pipeline, &refusing, &err), -EDOM);
    assert_int_equal(weir_pipeline_count(rig.pipeline), 1);
    rig_close(&rig);
}

static void go_at_once(weir_ctx *ctx)
{
    weir_fire_error(ctx, -EDOM, NULL);
    weir_ctx_remove(ctx);
    assert_true(weir_ctx_is_removed(ctx));
    weir_ctx_remove(ctx);
}

/* D 47 */
TEST(pipeline, lets_a_handler_go_as_soon_as_it_is_added)
{
    static const weir_handler fickle = {.name = "fickle", .added = go_at_once};
    struct rig rig;

    rig_open_started(&rig, NULL, WEIR_CHANNEL_OPTIONS(.keep_open_on_error = true));
    log_capture_start();
    assert_int_equal(weir_pipeline_add_first(rig.pipeline, &fickle, NULL), 0);
    assert_diary(&rig.diary, "a.error(EDOM)");
    assert_int_equal(weir_pipeline_count(rig.pipeline), 1);
    rig_close(&rig);
}

/* ---- events ---- */

TEST(pipeline, brings_events_in_from_the_head_and_out_from_the_tail)
{
    struct rig rig;

    rig_open_started(&rig, NULL, NULL);
    rig_add(&rig, "b");
    diary_clear(&rig.diary);
    (void)rig_receive(&rig, "x");
    weir__channel_read_complete(rig.channel);
    assert_diary(&rig.diary, "a.read(x) b.read(x) a.read_complete b.read_complete b.request_read "
                             "a.request_read");
    weir_channel_write_and_flush(rig.channel, text_msg("y"), NULL);
    assert_diary(&rig.diary, "b.write(y) a.write(y) b.flush a.flush FLUSH");
    weir_write(weir_pipeline_find(rig.pipeline, "b"), text_msg("z"), NULL);
    assert_diary(&rig.diary, "a.write(z)");
    weir_channel_fire_event(rig.channel, text_msg("e"));
    assert_diary(&rig.diary, "a.event(e) b.event(e)");
    rig_close(&rig);
}

static void on_read_upper(weir_ctx *ctx, weir_msg *msg)
{
    weir_msg_release(msg);
    weir_fire_read(ctx, text_msg("changed"));
}

/* D 54 */
TEST(pipeline, skips_handlers_without_the_slot)
{
    static const weir_handler changer = {.name = "changer", .read = on_read_upper};
    struct rig rig;

    rig_open_started(&rig, NULL, NULL);
    for (int i = 0; i < 3; i++)
        assert_int_equal(weir_pipeline_add_last(rig.pipeline, &bystander, SPY(&rig.diary, "x")), 0);
    assert_int_equal(weir_pipeline_add_last(rig.pipeline, &changer, NULL), 0);
    rig_add(&rig, "b");
    diary_clear(&rig.diary);
    (void)rig_receive(&rig, "x");
    weir_pipeline_fire_read_complete(rig.pipeline);
    weir_channel_write(rig.channel, text_msg("y"), NULL);
    assert_diary(&rig.diary, "a.read(x) b.read(changed) a.read_complete b.read_complete "
                             "b.write(y) a.write(y)");
    rig_close(&rig);
}

static void on_error_again(weir_ctx *ctx, int err, const char *detail)
{
    assert_string_equal(detail, "first");
    weir_fire_error(ctx, err == -EDOM ? -ERANGE : -EDOM, "second");
}

/* D 44 */
TEST(pipeline, brings_an_error_of_an_error_to_the_next_handler)
{
    static const weir_handler clumsy = {.name = "clumsy", .error = on_error_again};
    struct rig rig;

    rig_open(&rig);
    assert_int_equal(weir_pipeline_add_last(rig.pipeline, &clumsy, NULL), 0);
    rig_add(&rig, "b");
    rig_start(&rig);
    diary_clear(&rig.diary);
    log_capture_start();
    weir_pipeline_fire_error(rig.pipeline, -EDOM, "first");
    assert_diary(&rig.diary, "b.error(ERANGE) b.close FIN");
    assert_true(log_capture_last_contains("second"));
    rig_close(&rig);
}

static void on_read_once(weir_ctx *ctx, weir_msg *msg)
{
    weir_ctx_remove(ctx);
    weir_fire_read(ctx, msg);
}

TEST(pipeline, lets_a_handler_that_removed_itself_pass_on_what_it_has)
{
    static const weir_handler once = {.name = "once", .read = on_read_once};
    struct rig rig;

    rig_open(&rig);
    assert_int_equal(weir_pipeline_add_last(rig.pipeline, &once, NULL), 0);
    assert_int_equal(weir_pipeline_add_last(rig.pipeline, &once, NULL), 0);
    rig_add(&rig, "b");
    rig_start(&rig);
    diary_clear(&rig.diary);
    (void)rig_receive(&rig, "x");
    assert_diary(&rig.diary, "b.read(x)");
    assert_dump(&rig, "head <-> b <-> tail");
    rig_close(&rig);
}

TEST(pipeline, releases_what_nobody_wants)
{
    struct rig rig;
    weir_msg *msg = weir_msg_retain(text_msg("x"));

    rig_open_started(&rig, NULL, NULL);
    weir_pipeline_fire_read(rig.pipeline, weir_msg_retain(msg));
    weir_pipeline_fire_event(rig.pipeline, msg);
    assert_int_equal(weir_msg_refs(msg), 1);
    weir_msg_release(msg);
    rig_close(&rig);
}

TEST(pipeline, closes_accepted_channels_that_nobody_wants)
{
    struct rig rig;
    weir_channel *accepted;

    rig_open_started(&rig, &(struct wire_options){.accepts = true, .silent = true}, NULL);
    assert_int_equal(wire_create(&rig.diary, NULL, NULL, rig.channel, &accepted), 0);
    assert_ptr_equal(weir_channel_parent(accepted), rig.channel);
    assert_ptr_equal(weir_channel_of(weir__channel_msg(accepted)), accepted);
    weir_pipeline_fire_read(rig.pipeline, weir__channel_msg(accepted));
    assert_diary(&rig.diary, "a.read(channel) CLOSE DESTROY");
    rig_close(&rig);
}

TEST(pipeline, turns_a_disconnect_into_a_close_where_there_is_none)
{
    struct rig rig;

    rig_open_started(&rig, NULL, NULL);
    weir_channel_disconnect(rig.channel, NULL);
    assert_diary(&rig.diary, "a.close FIN");
    rig_close(&rig);

    rig_open_started(&rig, &(struct wire_options){.can_disconnect = true}, NULL);
    weir_channel_disconnect(rig.channel, NULL);
    assert_diary(&rig.diary, "a.disconnect DISCONNECT STOP");
    assert_false(weir_channel_is_active(rig.channel));
    rig_run(&rig);
    assert_diary(&rig.diary, "a.inactive");
    assert_true(weir_channel_is_open(rig.channel));
    rig_close(&rig);
}

/* ---- initialisers ---- */

static int init_inner(weir_channel *channel, void *rig)
{
    assert_ptr_equal(channel, ((struct rig *)rig)->channel);
    rig_add(rig, "i1");
    rig_add(rig, "i2");
    return 0;
}

static int init_outer(weir_channel *channel, void *rig)
{
    rig_add(rig, "o1");
    assert_int_equal(weir_pipeline_add_initializer(weir_channel_pipeline(channel), init_inner, rig),
                     0);
    rig_add(rig, "o2");
    return 0;
}

/* D 58 */
TEST(pipeline, runs_initialisers_in_their_place)
{
    struct rig rig;

    rig_open(&rig);
    rig_add(&rig, "a");
    assert_int_equal(weir_pipeline_add_initializer(rig.pipeline, init_outer, &rig), 0);
    rig_add(&rig, "z");
    rig_start(&rig);
    assert_dump(&rig, "head <-> a <-> o1 <-> i1 <-> i2 <-> o2 <-> z <-> tail");
    assert_int_equal(diary_count(&rig.diary, "i2.active"), 1);
    rig_close(&rig);
}

static int init_badly(weir_channel *channel, void *rig)
{
    (void)channel;
    rig_add(rig, "b");
    return -EDOM;
}

/* D 57 */
TEST(pipeline, closes_a_channel_whose_initialiser_fails)
{
    struct rig rig;

    log_capture_start();
    rig_open(&rig);
    assert_int_equal(weir_pipeline_add_initializer(rig.pipeline, init_badly, &rig), 0);
    rig_start(&rig);
    assert_diary(&rig.diary, "ATTACH b.added CLOSE b.registered b.unregistered b.removed b.deinit");
    assert_false(weir_channel_is_open(rig.channel));
    assert_int_equal(log_capture_count(WEIR_LOG_WARN), 1);
    rig_close(&rig);

    rig_open(&rig);
    rig_start(&rig);
    assert_int_equal(weir_pipeline_add_initializer(rig.pipeline, init_badly, &rig), 0);
    assert_false(weir_channel_is_open(rig.channel));
    rig_close(&rig);
}

/* ---- memory ---- */

TEST(pipeline, leaves_nothing_behind_when_there_is_no_memory)
{
    struct rig rig;
    unsigned n;
    int err;

    rig_open_started(&rig, NULL, NULL);
    for (n = 1;; n++) {
        test_memory_fail_at(n);
        err = weir_pipeline_add_last(rig.pipeline, &spy, SPY(&rig.diary, "b"));
        if (!test_memory_failed())
            break;
        assert_int_equal(err, -ENOMEM);
        assert_int_equal(weir_pipeline_count(rig.pipeline), 1);
    }
    test_memory_fail_at(0);
    assert_int_equal(n, 2); /* one allocation for context, state and name */
    rig_close(&rig);
}

TEST(pipeline, keeps_a_context_small)
{
    assert_int_equal(sizeof(weir_ctx), 40);
    assert_true(sizeof(weir_channel) <= 248); /* docs/internals/channel.md says what for */
}

static void leave_at_once(weir_ctx *ctx)
{
    weir_ctx_remove(ctx);
}

/* Before the registration as after it. */
TEST(pipeline, tells_a_handler_once_that_goes_as_soon_as_it_is_added)
{
    static weir_handler hasty;
    struct rig rig;

    hasty = spy;
    hasty.added = leave_at_once;
    rig_open(&rig);
    assert_int_equal(weir_pipeline_add_last(rig.pipeline, &hasty, SPY(&rig.diary, "h")), 0);
    rig_start(&rig);
    assert_int_equal(diary_count(&rig.diary, "h.removed"), 1);
    assert_int_equal(weir_pipeline_add_last(rig.pipeline, &hasty, SPY(&rig.diary, "i")), 0);
    rig_run(&rig);
    assert_int_equal(diary_count(&rig.diary, "i.removed"), 1);
    rig_close(&rig);
}

static void read_and_answer(weir_ctx *ctx, weir_msg *msg)
{
    weir_pipeline *pipeline = weir_ctx_pipeline(ctx);
    struct spy *self = weir_ctx_state(ctx);

    (void)weir_pipeline_replace(pipeline, "old", WEIR_PLACE(.name = "new"), &spy,
                                SPY(self->diary, "new"));
    weir_write(ctx, weir_msg_retain(msg), NULL);
    weir_fire_read(ctx, msg);
}

/* C.6: what the old one still passes on goes through the new one, in both directions. */
TEST(pipeline, brings_what_a_replaced_handler_passes_on_to_its_replacement)
{
    static weir_handler old;
    struct rig rig;

    old = spy;
    old.read = read_and_answer;
    rig_open_started(&rig, NULL, NULL);
    assert_int_equal(weir_pipeline_add_last_as(rig.pipeline, "old", &old, SPY(&rig.diary, "old")),
                     0);
    rig_add(&rig, "z");
    diary_clear(&rig.diary);
    (void)rig_receive(&rig, "x");
    assert_diary(&rig.diary, "a.read(x) new.added old.removed new.write(x) a.write(x) new.read(x) "
                             "z.read(x)");
    rig_run(&rig);
    assert_diary(&rig.diary, "old.deinit");
    assert_dump(&rig, "head <-> a <-> new <-> z <-> tail");
    rig_write(&rig, "y", NULL);
    (void)rig_receive(&rig, "w");
    assert_diary(&rig.diary, "z.write(y) new.write(y) a.write(y) a.read(w) new.read(w) z.read(w)");
    rig_close(&rig);
}

static void replace(struct rig *rig, const char *old, const char *name)
{
    struct spy options = {.diary = &rig->diary};

    strncpy(options.name, name, sizeof(options.name) - 1);
    assert_int_equal(
        weir_pipeline_replace(rig->pipeline, old, WEIR_PLACE(.name = name), &spy, &options), 0);
}

/* C.6: what was done before the registration is told in the order it was done. */
TEST(pipeline, tells_the_old_one_that_it_is_removed_when_the_new_one_is_added)
{
    struct rig rig;

    rig_open_with(&rig, &(const struct wire_options){.silent = true}, NULL);
    rig_add(&rig, "a");
    replace(&rig, "a", "b");
    assert_int_equal(add_at(&rig, WEIR_PLACE(.before = "b", .name = "x"), "x"), 0);
    replace(&rig, "b", "c");
    rig_add(&rig, "z");
    rig_start(&rig);
    assert_diary(&rig.diary, "a.added x.added b.added a.removed c.added b.removed z.added "
                             "x.registered c.registered z.registered x.active c.active z.active "
                             "z.request_read c.request_read x.request_read a.deinit b.deinit");
    rig_close(&rig);
}

TEST(pipeline, tells_one_that_was_added_replaced_and_removed_before_the_registration_all_of_it)
{
    struct rig rig;

    rig_open_with(&rig, &(const struct wire_options){.silent = true, .idle = true}, NULL);
    rig_add(&rig, "a");
    replace(&rig, "a", "b");
    assert_int_equal(weir_pipeline_remove(rig.pipeline, "b", NULL), 0);
    rig_start(&rig);
    assert_diary(&rig.diary, "a.added b.added a.removed b.removed a.deinit b.deinit");
    rig_close(&rig);
}

static void replace_the_next(weir_ctx *ctx)
{
    struct spy *self = weir_ctx_state(ctx);

    (void)weir_pipeline_replace(weir_ctx_pipeline(ctx), "old", WEIR_PLACE(.name = "new"), &spy,
                                SPY(self->diary, "new"));
}

TEST(pipeline, tells_one_that_is_replaced_while_the_others_are_told_that_it_is_removed)
{
    static weir_handler meddler;
    struct rig rig;

    meddler = spy;
    meddler.added = replace_the_next;
    rig_open_with(&rig, &(const struct wire_options){.silent = true, .idle = true}, NULL);
    assert_int_equal(weir_pipeline_add_last_as(rig.pipeline, "m", &meddler, SPY(&rig.diary, "m")),
                     0);
    rig_add(&rig, "old");
    rig_start(&rig);
    assert_int_equal(diary_count(&rig.diary, "old.added"), 1);
    assert_int_equal(diary_count(&rig.diary, "old.removed"), 1);
    assert_dump(&rig, "head <-> m <-> new <-> tail");
    rig_close(&rig);
}

/* Also while the old ones are still in memory. */
TEST(pipeline, may_be_changed_around_a_handler_that_was_replaced)
{
    struct rig rig;

    rig_open_started(&rig, NULL, NULL);
    assert_int_equal(weir_pipeline_replace(rig.pipeline, "a", WEIR_PLACE(.name = "b"), &spy,
                                           SPY(&rig.diary, "b")),
                     0);
    assert_int_equal(add_at(&rig, WEIR_PLACE(.before = "b", .name = "x"), "x"), 0);
    assert_int_equal(weir_pipeline_replace(rig.pipeline, "b", WEIR_PLACE(.name = "c"), &spy,
                                           SPY(&rig.diary, "c")),
                     0);
    assert_int_equal(add_at(&rig, WEIR_PLACE(.first = true, .name = "f"), "f"), 0);
    assert_int_equal(add_at(&rig, WEIR_PLACE(.after = "c", .name = "y"), "y"), 0);
    assert_int_equal(weir_pipeline_remove(rig.pipeline, "c", NULL), 0);
    assert_dump(&rig, "head <-> f <-> x <-> y <-> tail");
    diary_clear(&rig.diary);
    rig_write(&rig, "o", NULL);
    (void)rig_receive(&rig, "i");
    assert_diary(&rig.diary, "y.write(o) x.write(o) f.write(o) f.read(i) x.read(i) y.read(i)");
    rig_run(&rig);
    assert_int_equal(diary_count(&rig.diary, "a.deinit"), 1);
    assert_int_equal(diary_count(&rig.diary, "b.deinit"), 1);
    assert_int_equal(diary_count(&rig.diary, "c.deinit"), 1);
    diary_clear(&rig.diary);
    rig_write(&rig, "o", NULL);
    (void)rig_receive(&rig, "i");
    assert_diary(&rig.diary, "y.write(o) x.write(o) f.write(o) f.read(i) x.read(i) y.read(i)");
    rig_close(&rig);
}

/* ---- changes from `added` of a replacement ---- */

/* What a replacement does to the one that it replaces. */
static int nested_result;

static void replace_once_more(weir_ctx *ctx)
{
    struct spy *self = weir_ctx_state(ctx);

    diary_write(self->diary, "%s.added", self->name);
    nested_result = weir_pipeline_replace(weir_ctx_pipeline(ctx), "a", WEIR_PLACE(.name = "third"),
                                          &spy, SPY(self->diary, "third"));
}

/* A handler has left the pipeline as soon as its replacement is linked. */
TEST(pipeline, no_longer_finds_a_replaced_handler_when_its_replacement_is_added)
{
    static weir_handler meddler;
    struct rig rig;

    meddler = spy;
    meddler.added = replace_once_more;
    rig_open_started(&rig, NULL, NULL);
    rig_add(&rig, "z");
    diary_clear(&rig.diary);
    assert_int_equal(weir_pipeline_replace(rig.pipeline, "a", WEIR_PLACE(.name = "second"),
                                           &meddler, SPY(&rig.diary, "second")),
                     0);
    assert_int_equal(nested_result, -ENOENT);
    assert_dump(&rig, "head <-> second <-> z <-> tail");
    rig_write(&rig, "o", NULL);
    (void)rig_receive(&rig, "i");
    assert_diary(&rig.diary,
                 "second.added third.deinit a.removed z.write(o) second.write(o) second.read(i) "
                 "z.read(i)");
    rig_run(&rig);
    assert_diary(&rig.diary, "a.deinit");
    rig_close(&rig);
}

static void replace_itself(weir_ctx *ctx)
{
    struct spy *self = weir_ctx_state(ctx);

    diary_write(self->diary, "%s.added", self->name);
    nested_result =
        weir_pipeline_replace(weir_ctx_pipeline(ctx), "second", WEIR_PLACE(.name = "third"), &spy,
                              SPY(self->diary, "third"));
}

static void read_and_replace(weir_ctx *ctx, weir_msg *msg)
{
    static weir_handler second;
    struct spy *self = weir_ctx_state(ctx);

    second = spy;
    second.added = replace_itself;
    (void)weir_pipeline_replace(weir_ctx_pipeline(ctx), "old", WEIR_PLACE(.name = "second"),
                                &second, SPY(self->diary, "second"));
    weir_write(ctx, weir_msg_retain(msg), NULL);
    weir_fire_read(ctx, msg);
}

TEST(pipeline, brings_what_a_replaced_handler_passes_on_to_the_last_of_its_replacements)
{
    static weir_handler old;
    struct rig rig;

    old = spy;
    old.read = read_and_replace;
    rig_open_started(&rig, NULL, NULL);
    assert_int_equal(weir_pipeline_add_last_as(rig.pipeline, "old", &old, SPY(&rig.diary, "old")),
                     0);
    rig_add(&rig, "z");
    diary_clear(&rig.diary);
    (void)rig_receive(&rig, "x");
    assert_int_equal(nested_result, 0);
    assert_diary(&rig.diary, "a.read(x) second.added third.added second.removed old.removed "
                             "third.write(x) a.write(x) third.read(x) z.read(x)");
    rig_run(&rig);
    assert_diary(&rig.diary, "old.deinit second.deinit");
    assert_dump(&rig, "head <-> a <-> third <-> z <-> tail");
    rig_close(&rig);
}
