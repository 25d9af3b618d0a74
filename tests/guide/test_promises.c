/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What docs/guide/09-promises.md shows.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guide/guide_fixture.h"

/* doc:begin submit */
static int square(void *arg, int status, void **ret_value)
{
    intptr_t n = (intptr_t)arg;

    if (status < 0)
        return status; /* cancelled: there is nothing to clean up here */
    if (n < 0)
        return -EDOM;
    *ret_value = (void *)(n * n);
    return 0;
}

static int compute(weir_group *workers, intptr_t n, intptr_t *ret_square)
{
    weir_promise *promise = NULL;
    int err = weir_group_submit(workers, square, (void *)n, &promise);

    if (!err)
        err = weir_promise_sync(promise, weir_seconds(10)); /* waits, then returns the result */
    if (!err)
        *ret_square = (intptr_t)weir_promise_value(promise);
    weir_promise_release(promise); /* NULL is ignored */
    return err;
}
/* doc:end */

TEST(promises, bring_a_result)
{
    weir_group *workers = make_group(WEIR_GROUP_OPTIONS(PLAIN, .threads = 1));
    intptr_t result = 0;

    assert_int_equal(compute(workers, 7, &result), 0);
    assert_int_equal(result, 49);
    assert_int_equal(compute(workers, -1, &result), -EDOM);
    end_group(workers);
}

/* doc:begin close-when-sent */
static void on_sent(weir_promise *sent, void *user_data)
{
    weir_channel *channel = user_data;

    if (weir_promise_result(sent) < 0)
        fprintf(stderr, "not sent: %s\n", weir_promise_detail(sent));
    weir_channel_close(channel, NULL);
    weir_channel_release(channel);
}

static void write_and_close(weir_channel *channel, weir_msg *msg)
{
    weir_promise *sent = NULL;
    int err = weir_promise_create(weir_channel_executor(channel), &sent);

    if (!err) {
        weir_channel_retain(channel); /* for the listener */
        err = weir_promise_add_listener(sent, on_sent, channel);
        if (err < 0)
            weir_channel_release(channel);
    }
    weir_channel_write_and_flush(channel, msg, sent); /* sent may be NULL */
    weir_promise_release(sent);
}
/* doc:end */

static const weir_handler nothing = {.name = "nothing"};

TEST(promises, are_heard_by_listeners)
{
    weir_embedded *embedded = embed(&nothing, NULL);

    write_and_close(weir_embedded_channel(embedded), text_msg("bye"));
    weir_embedded_run(embedded);
    assert_text(weir_embedded_read_outbound(embedded), "bye");
    assert_false(weir_channel_is_open(weir_embedded_channel(embedded)));
    weir_embedded_release(embedded);
}

/* doc:begin operation */
struct lookup {
    weir_promise *promise; /* retained */
    char answer[16];
};

static void free_lookup(void *value)
{
    free(value);
}

static void finish(struct lookup *lookup, int err)
{
    weir_promise *promise = lookup->promise;

    if (err < 0) {
        weir_promise_fail(promise, err, "unknown name");
        free_lookup(lookup);
    } else {
        weir_promise_succeed_with(promise, lookup, free_lookup); /* the promise owns it now */
    }
    weir_promise_release(promise);
}
/* doc:end */

static struct lookup *make_lookup(weir_promise *promise)
{
    struct lookup *lookup = malloc(sizeof(*lookup));

    assert_non_null(lookup);
    *lookup = (struct lookup){.promise = weir_promise_retain(promise), .answer = "42"};
    return lookup;
}

TEST(promises, are_completed_by_who_made_them)
{
    weir_promise *promise = NULL;

    assert_int_equal(weir_promise_create(NULL, &promise), 0);
    finish(make_lookup(promise), 0);
    assert_string_equal(((struct lookup *)weir_promise_value(promise))->answer, "42");
    assert_int_equal(weir_promise_succeed(promise, NULL), WEIR_ECOMPLETED);
    weir_promise_release(promise);
    assert_int_equal(weir_promise_create(NULL, &promise), 0);
    finish(make_lookup(promise), -ENOENT);
    assert_string_equal(weir_promise_detail(promise), "unknown name");
    weir_promise_release(promise);
}

/* doc:begin combine */
/* On the channels' loop: `all` completes when every channel has closed. */
static int close_all(weir_channel **channels, size_t count, weir_promise *all)
{
    weir_combiner *combiner = NULL;
    int err = weir_combiner_create(weir_executor_current(), &combiner);

    for (size_t i = 0; i < count && !err; i++) {
        weir_promise *closed = weir_channel_closed(channels[i]);

        weir_channel_close(channels[i], NULL);
        err = closed != NULL ? weir_combiner_add(combiner, closed) : -ENOMEM;
    }
    if (!err)
        err = weir_combiner_finish(combiner, all);
    weir_combiner_release(combiner);
    return err;
}
/* doc:end */

struct closing {
    weir_channel *channels[2];
    weir_promise *all;
    int err;
};

static void close_them(void *arg, int status)
{
    struct closing *closing = arg;

    if (status == 0)
        closing->err = close_all(closing->channels, 2, closing->all);
}

TEST(promises, are_combined)
{
    weir_group *group = make_loops(1);
    struct closing closing = {.err = 1};

    assert_int_equal(weir_promise_create(NULL, &closing.all), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(weir_tcp_create(NULL, &closing.channels[i]), 0);
        weir_group_register(group, closing.channels[i], NULL);
    }
    assert_int_equal(weir_group_execute(group, close_them, &closing), 0);
    assert_int_equal(weir_promise_sync(closing.all, TEST_TIMEOUT_NS), 0);
    assert_int_equal(closing.err, 0);
    for (int i = 0; i < 2; i++) {
        assert_false(weir_channel_is_open(closing.channels[i]));
        weir_channel_release(closing.channels[i]);
    }
    weir_promise_release(closing.all);
    end_group(group);
}

static weir_promise *connect_somewhere(weir_group *group)
{
    weir_promise *connecting = NULL;

    assert_int_equal(
        weir_client_connect(WEIR_CLIENT_OPTIONS(.group = group, .address = "inproc:nobody"),
                            &connecting),
        0);
    return connecting;
}

TEST(promises, have_a_detail_text)
{
    weir_group *group = make_loops(1);
    weir_promise *connecting = connect_somewhere(group);

    assert_int_equal(weir_promise_sync(connecting, TEST_TIMEOUT_NS), -ECONNREFUSED);
    assert_true(strlen(weir_promise_detail(connecting)) > 0);
    weir_promise_release(connecting);
    end_group(group);
}

static int cancel(weir_promise *promise)
{
    /* doc:begin cancel */
    int err = weir_promise_cancel(promise); /* 0: it is complete, with WEIR_ECANCELED */

    if (err == WEIR_ECOMPLETED)
        return 0; /* already complete */
    if (err == -EBUSY)
        return weir_promise_await(promise, WEIR_NEVER); /* too late: it has begun */
    /* doc:end */
    return err;
}

TEST(promises, are_cancelled_if_it_is_not_too_late)
{
    weir_promise *promise = NULL;

    assert_int_equal(weir_promise_create(NULL, &promise), 0);
    assert_int_equal(cancel(promise), 0);
    assert_int_equal(weir_promise_result(promise), WEIR_ECANCELED);
    assert_int_equal(cancel(promise), 0);
    weir_promise_release(promise);
}

TEST(promises, do_not_keep_anybody_waiting_when_they_are_forgotten)
{
    weir_promise *promise = NULL, *copy = NULL;

    assert_int_equal(weir_promise_create(NULL, &promise), 0);
    assert_int_equal(weir_promise_create(NULL, &copy), 0);
    assert_int_equal(weir_promise_cascade(promise, copy), 0);
    weir_promise_release(promise);
    assert_int_equal(weir_promise_sync(copy, TEST_TIMEOUT_NS), WEIR_EABANDONED);
    weir_promise_release(copy);
}
