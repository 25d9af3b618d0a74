/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The message: bytes, addresses, segments.
 */
#include "buffer/datagram.h"

#include <errno.h>

#include <weir/composite.h>
#include <weir/file_range.h>

#include "support/buffer/buf.h"
#include "support/memory.h"
#include "support/test.h"

static weir_address address(const char *text)
{
    weir_address parsed;

    assert_int_equal(weir_address_parse(text, &parsed), 0);
    return parsed;
}

TEST(datagram, has_content_and_a_recipient)
{
    weir_address recipient = address("[::1]:9");
    weir_msg *content = weir_buf_msg(make_buf_of("hello"));
    weir_datagram *datagram;

    assert_int_equal(weir_datagram_create(content, &recipient, &datagram), 0);
    assert_ptr_equal(weir_datagram_of(weir_datagram_msg(datagram)), datagram);
    assert_null(weir_datagram_of(content));
    assert_ptr_equal(weir_datagram_content(datagram), content);
    assert_ptr_equal(weir_datagram_buf(datagram), weir_buf_of(content));
    assert_true(weir_address_equal(weir_datagram_recipient(datagram), &recipient));
    assert_int_equal(weir_datagram_sender(datagram)->length, 0);
    weir_datagram_release(datagram);
}

TEST(datagram, counts_as_its_bytes)
{
    weir_datagram *datagram;
    weir_msg *content;

    assert_int_equal(weir_datagram_create(weir_buf_msg(make_buf_of("hello")), NULL, &datagram), 0);
    assert_int_equal(weir_msg_size(weir_datagram_msg(datagram)), 5);
    content = weir_datagram_take_content(datagram);
    assert_int_equal(weir_msg_size(weir_datagram_msg(datagram)), 0);
    assert_null(weir_datagram_content(datagram));
    assert_null(weir_datagram_buf(datagram));
    weir_msg_release(content);
    weir_datagram_release(datagram);
}

TEST(datagram, may_have_no_content)
{
    weir_datagram *datagram;

    assert_int_equal(weir_datagram_create(NULL, NULL, &datagram), 0);
    assert_int_equal(weir_msg_size(weir_datagram_msg(datagram)), 0);
    weir_datagram_release(datagram);
}

TEST(datagram, is_made_of_bytes_only)
{
    weir_composite *composite;
    weir_file_range *range;
    weir_datagram *datagram;

    assert_int_equal(weir_file_range_create(0, 0, 1, 0, &range), 0);
    assert_int_equal(weir_datagram_create(weir_file_range_msg(range), NULL, &datagram), -EINVAL);
    assert_int_equal(weir_composite_create(0, &composite), 0);
    assert_int_equal(weir_datagram_create(weir_composite_msg(composite), NULL, &datagram), 0);
    assert_null(weir_datagram_buf(datagram));
    weir_datagram_release(datagram);
}

TEST(datagram, takes_its_content_also_if_there_is_no_memory)
{
    weir_datagram *datagram;
    weir_msg *content = weir_buf_msg(make_buf_of("hello"));

    test_memory_fail_at(1);
    assert_int_equal(weir_datagram_create(content, NULL, &datagram), -ENOMEM);
    test_memory_fail_at(0);
}

TEST(datagram, can_be_readdressed)
{
    weir_address first = address("127.0.0.1:1"), second = address("[::1]:2");
    weir_datagram *datagram;

    assert_int_equal(weir_datagram_create(NULL, &first, &datagram), 0);
    weir_datagram_set_recipient(datagram, &second);
    assert_true(weir_address_equal(weir_datagram_recipient(datagram), &second));
    weir_datagram_make_reply(datagram); /* unknown */
    assert_int_equal(weir_datagram_recipient(datagram)->length, 0);
    weir_datagram_set_recipient(datagram, NULL);
    assert_int_equal(weir_datagram_recipient(datagram)->length, 0);
    weir_datagram_release(datagram);
}

TEST(datagram, is_shared_with_bytes_addresses_and_segments)
{
    weir_address recipient = address("127.0.0.1:1");
    weir_datagram *datagram, *other;
    weir_msg *share;

    assert_int_equal(
        weir_datagram_create(weir_buf_msg(make_buf_of("hello")), &recipient, &datagram), 0);
    weir_datagram_set_segment_size(datagram, 3);
    assert_int_equal(weir_msg_share(weir_datagram_msg(datagram), &share), 0);
    weir_datagram_release(datagram);
    other = weir_datagram_of(share);
    assert_int_equal(weir_datagram_segment_size(other), 3);
    assert_true(weir_address_equal(weir_datagram_recipient(other), &recipient));
    assert_memory_equal(weir_buf_bytes(weir_datagram_buf(other)), "hello", 5);
    weir_msg_release(share);
}

TEST(datagram, share_fails_without_memory)
{
    weir_datagram *datagram;
    weir_msg *share;
    int err;

    assert_int_equal(weir_datagram_create(weir_buf_msg(make_buf_of("hello")), NULL, &datagram), 0);
    for (unsigned n = 1;; n++) {
        test_memory_fail_at(n);
        err = weir_msg_share(weir_datagram_msg(datagram), &share);
        if (!test_memory_failed())
            break;
        assert_int_equal(err, -ENOMEM);
    }
    test_memory_fail_at(0);
    weir_msg_release(share);
    weir_datagram_release(datagram);
}

/* ---- where it is sent from ---- */

TEST(datagram, that_is_sent_from_an_address_keeps_it)
{
    weir_address here = address("127.0.0.2:1"), there = address("127.0.0.3:3");
    weir_datagram *datagram;
    weir_msg *other;

    assert_int_equal(weir_datagram_create(NULL, &there, &datagram), 0);
    weir_datagram_set_sender(datagram, &here);
    weir_datagram_make_reply(datagram); /* already a reply */
    assert_true(weir_address_equal(weir_datagram_recipient(datagram), &there));
    assert_int_equal(weir_msg_share(weir_datagram_msg(datagram), &other), 0);
    assert_true(weir_datagram_of(other)->has_source);
    assert_true(weir_address_equal(weir_datagram_sender(weir_datagram_of(other)), &here));
    weir_datagram_set_sender(datagram, NULL);
    assert_false(datagram->has_source);
    weir_msg_release(other);
    weir_datagram_release(datagram);
}

TEST(datagram, a_reply_is_sent_from_the_address_of_arrival)
{
    weir_address here = address("127.0.0.2:1"), there = address("127.0.0.3:3");
    weir_datagram *datagram;

    assert_int_equal(weir__datagram_received(NULL, weir_address_sockaddr(&there), there.length,
                                             &here, &datagram),
                     0);
    datagram->is_local = true;
    for (int i = 0; i < 2; i++) {
        weir_datagram_make_reply(datagram);
        assert_true(weir_address_equal(weir_datagram_recipient(datagram), &there));
        assert_true(weir_address_equal(weir_datagram_sender(datagram), &here));
        assert_true(datagram->has_source);
    }
    weir_datagram_release(datagram);
}
