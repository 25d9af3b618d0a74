/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of all messages, with a type of the test.
 */
#undef NDEBUG /* misuse is caught by the asserts of the header */

#include "support/test.h"

#include <string.h>

#include <weir/msg.h>

#include "buffer/msg.h"
#include "support/child.h"
#include "support/litmus.h"

struct greeting {
    weir_msg msg;
    uint32_t refs_at_the_end;
    int destroyed;
    const char *touched;
};

static void destroy_greeting(weir_msg *msg)
{
    struct greeting *greeting = WEIR_CONTAINER_OF(msg, struct greeting, msg);

    greeting->refs_at_the_end = weir_msg_refs(msg);
    greeting->destroyed++;
}

static size_t size_of_greeting(const weir_msg *msg)
{
    (void)msg;
    return 42;
}

static void touch_greeting(weir_msg *msg, const char *where)
{
    WEIR_CONTAINER_OF(msg, struct greeting, msg)->touched = where;
}

static const weir_msg_type greeting_type = {
    .name = "greeting",
    .destroy = destroy_greeting,
    .size = size_of_greeting,
    .touch = touch_greeting,
};

static const weir_msg_type plain_type = {.name = "plain", .destroy = destroy_greeting};

TEST(msg, the_last_release_destroys_it_once)
{
    struct greeting greeting = {.refs_at_the_end = 7};

    weir_msg_init(&greeting.msg, &greeting_type);
    assert_int_equal(weir_msg_refs(&greeting.msg), 1);
    assert_ptr_equal(weir_msg_retain(&greeting.msg), &greeting.msg);
    assert_int_equal(weir_msg_refs(&greeting.msg), 2);
    weir_msg_release(&greeting.msg);
    assert_int_equal(greeting.destroyed, 0);
    weir_msg_release(&greeting.msg);
    assert_int_equal(greeting.destroyed, 1);
}

TEST(msg, has_no_references_when_it_is_destroyed)
{
    struct greeting sole = {.refs_at_the_end = 7};

    weir_msg_init(&sole.msg, &greeting_type);
    weir_msg_release(&sole.msg);
    assert_int_equal(sole.refs_at_the_end, 0);
}

TEST(msg, that_is_static_is_never_destroyed)
{
    struct greeting greeting = {.msg = {.type = &greeting_type, .refs = WEIR_MSG_STATIC}};

    weir_msg_release(&greeting.msg);
    assert_ptr_equal(weir_msg_retain(&greeting.msg), &greeting.msg);
    weir_msg_release(&greeting.msg);
    weir_msg_release(&greeting.msg);
    assert_int_equal(greeting.destroyed, 0);
    assert_int_equal(weir_msg_refs(&greeting.msg), WEIR_MSG_STATIC);
}

TEST(msg, releasing_null_is_ignored)
{
    weir_msg_release(NULL);
}

TEST(msg, is_of_one_type)
{
    struct greeting greeting;

    weir_msg_init(&greeting.msg, &greeting_type);
    assert_true(weir_msg_is(&greeting.msg, &greeting_type));
    assert_false(weir_msg_is(&greeting.msg, &plain_type));
}

TEST(msg, size_is_what_the_type_says_or_8)
{
    struct greeting greeting;

    weir_msg_init(&greeting.msg, &greeting_type);
    assert_int_equal(weir_msg_size(&greeting.msg), 42);
    weir_msg_init(&greeting.msg, &plain_type);
    assert_int_equal(weir_msg_size(&greeting.msg), 8);
}

TEST(msg, a_touch_is_passed_to_the_type)
{
    struct greeting greeting = {.touched = NULL};

    weir_msg_init(&greeting.msg, &plain_type);
    weir_msg_touch(&greeting.msg, "nowhere");
    assert_null(greeting.touched);
    weir_msg_init(&greeting.msg, &greeting_type);
    weir_msg_touch(&greeting.msg, "here");
    assert_string_equal(greeting.touched, "here");
}

TEST(msg, of_an_immutable_type_is_shared_by_retaining)
{
    struct greeting greeting = {.destroyed = 0};
    weir_msg *share = NULL;

    weir_msg_init(&greeting.msg, &greeting_type);
    assert_int_equal(weir_msg_share(&greeting.msg, &share), 0);
    assert_ptr_equal(share, &greeting.msg);
    weir_msg_release(share);
    assert_int_equal(greeting.destroyed, 0);
    weir_msg_release(&greeting.msg);
    assert_int_equal(greeting.destroyed, 1);
}

static void release_twice(void)
{
    struct greeting greeting;

    weir_msg_init(&greeting.msg, &greeting_type);
    weir_msg_release(&greeting.msg);
    weir_msg_release(&greeting.msg);
}

static void retain_after_release(void)
{
    struct greeting greeting;

    weir_msg_init(&greeting.msg, &greeting_type);
    weir_msg_release(&greeting.msg);
    weir_msg_retain(&greeting.msg);
}

static void retain_and_release(void)
{
    struct greeting greeting;

    weir_msg_init(&greeting.msg, &greeting_type);
    weir_msg_release(weir_msg_retain(&greeting.msg));
}

TEST(msg, use_after_the_last_release_ends_a_debug_build)
{
    assert_false(child_survives(release_twice));
    assert_false(child_survives(retain_after_release));
    assert_true(child_survives(retain_and_release));
}

/* ---- several threads on behalf of one holder ---- */

static void retain(void *arg)
{
    weir_msg_retain(arg);
}

static void release(void *arg)
{
    weir_msg_release(arg);
}

TEST(msg, of_one_holder_is_retained_by_two_threads)
{
    struct greeting greeting = {.refs_at_the_end = 7};

    weir_msg_init(&greeting.msg, &greeting_type);
    litmus_references(retain, release, &greeting.msg);
    assert_int_equal(greeting.destroyed, 0);
    assert_int_equal(weir_msg_refs(&greeting.msg), 1);
    weir_msg_release(&greeting.msg);
    assert_int_equal(greeting.destroyed, 1);
}

static void retain_owned(void *arg)
{
    weir__msg_retain_owned(arg);
}

TEST(msg, that_is_owned_may_have_other_holders)
{
    struct greeting greeting = {0};

    weir_msg_init(&greeting.msg, &greeting_type);
    for (uint32_t refs = 1; refs < 4; refs++) {
        assert_int_equal(weir_msg_refs(&greeting.msg), refs);
        assert_ptr_equal(weir__msg_retain_owned(&greeting.msg), &greeting.msg);
    }
    for (int i = 0; i < 4; i++)
        weir_msg_release(&greeting.msg);
    assert_int_equal(greeting.destroyed, 1);
}

/* Two threads on behalf of one holder: within microseconds, if there are two CPUs. */
static void retain_as_if_owned(void)
{
    struct greeting greeting = {0};

    weir_msg_init(&greeting.msg, &greeting_type);
    for (int i = 0; i < 50; i++)
        litmus_references(retain_owned, release, &greeting.msg);
}

TEST(msg, that_is_not_owned_fails_an_assertion)
{
    assert_true(child_dies_with_output(retain_as_if_owned, "another thread has changed the count"));
}
