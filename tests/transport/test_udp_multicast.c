/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UDP: multicast groups, inside this host.
 */
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <unistd.h>

#include <weir/error.h>
#include <weir/transport.h>

#include "support/executor/run_on_thread.h"
#include "support/loop/sockets.h"
#include "support/transport/datagram_endpoint.h"
#include "transport/endpoint.h"

/* Of each family: any address, its loopback address, and a group that is confined to the host. */
struct family {
    const char *any;
    const char *loopback;
    const char *group;
};

static const struct family four = {"0.0.0.0:0", "127.0.0.1:0", "239.7.8.9:0"};
static const struct family six = {"[::]:0", "[::1]:0", "[ff31::7]:0"};
static const struct family four_by_six = {"[::]:0", "127.0.0.1:0", "239.7.8.9:0"};

struct party {
    struct datagram_endpoint guest;
    struct datagram_endpoint host;
    const struct family *family;
    weir_address group;
    char interface[IF_NAMESIZE];
};

/* ---- an interface: loopback, if that carries multicast, which it need not for IPv6 ---- */

static int choose_interface(int descriptor, int family, unsigned index)
{
    const struct ip_mreqn by_index = {.imr_ifindex = (int)index};
    const int nowhere = 0; /* it does not leave the host */

    if (family == AF_INET)
        return setsockopt(descriptor, IPPROTO_IP, IP_MULTICAST_IF, &by_index, sizeof(by_index));
    if (setsockopt(descriptor, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, &nowhere, sizeof(nowhere)) < 0)
        return -1;
    return setsockopt(descriptor, IPPROTO_IPV6, IPV6_MULTICAST_IF, &index, sizeof(index));
}

static bool carries(const weir_address *group, unsigned index)
{
    int descriptor = socket_new(weir_address_family(group), SOCK_DGRAM);
    bool is_sent = choose_interface(descriptor, weir_address_family(group), index) == 0 &&
                   sendto(descriptor, "x", 1, 0, weir_address_sockaddr(group), group->length) == 1;

    (void)close(descriptor);
    return is_sent;
}

static void find_interface(struct party *party)
{
    struct if_nameindex *all = if_nameindex();
    weir_address group = party->group;

    assert_non_null(all);
    weir_address_set_port(&group, 9);
    for (struct if_nameindex *one = all; one->if_name != NULL; one++)
        if (party->interface[0] == '\0' && carries(&group, one->if_index))
            (void)snprintf(party->interface, sizeof(party->interface), "%s", one->if_name);
    if_freenameindex(all);
    if (party->interface[0] == '\0')
        WEIR_TEST_SKIP("no interface has a route for multicast");
}

/* ---- a party ---- */

static void party_open(struct party *party, struct host *host, const struct family *family)
{
    *party = (struct party){.family = family};
    assert_int_equal(weir_address_parse(family->group, &party->group), 0);
    find_interface(party);
    endpoint_init(&party->guest, host, NULL);
    assert_int_equal(endpoint_bind(&party->guest, family->any), 0);
    assert_endpoint_events(&party->guest, "active");
    endpoint_init(&party->host, host, NULL);
    assert_int_equal(endpoint_bind(&party->host, family->any), 0);
    assert_int_equal(choose_interface(weir__endpoint_of(party->host.channel)->handle.descriptor,
                                      weir_address_family(&party->group),
                                      if_nametoindex(party->interface)),
                     0);
    weir_address_set_port(&party->group, weir_address_port(&party->guest.address));
}

static void party_close(struct party *party)
{
    endpoint_close(&party->guest);
    endpoint_close(&party->host);
}

typedef void membership_fn(weir_channel *channel, const weir_address *group, const char *interface,
                           const weir_address *source, weir_promise *done);

static int change(struct party *party, membership_fn *fn, const weir_address *source)
{
    weir_promise *done = endpoint_promise(&party->guest);

    fn(party->guest.channel, &party->group, party->interface, source, done);
    return endpoint_result(done);
}

/* What is sent straight to the guest says that all that was sent before has come, or will not. */
static void say_and_whisper(struct party *party)
{
    weir_address guest;

    assert_int_equal(weir_address_parse(party->family->loopback, &guest), 0);
    weir_address_set_port(&guest, weir_address_port(&party->guest.address));
    assert_int_equal(endpoint_send(&party->host, "all", &party->group), 0);
    assert_int_equal(endpoint_send(&party->host, "you", &guest), 0);
}

static void join_and_leave(struct host *host, const struct family *family)
{
    struct party party;

    party_open(&party, host, family);
    say_and_whisper(&party);
    assert_endpoint_events(&party.guest, "read(you)");
    assert_int_equal(change(&party, weir_udp_join, NULL), 0);
    say_and_whisper(&party);
    assert_endpoint_events(&party.guest, "read(all) read(you)");
    assert_int_equal(change(&party, weir_udp_join, NULL), -EADDRINUSE);
    assert_int_equal(change(&party, weir_udp_leave, NULL), 0);
    say_and_whisper(&party);
    assert_endpoint_events(&party.guest, "read(you)");
    assert_int_equal(change(&party, weir_udp_leave, NULL), -EADDRNOTAVAIL);
    assert_true(weir_channel_is_open(party.guest.channel));
    party_close(&party);
}

TEST_EACH_HOST(udp, joins_a_group_and_leaves_it)
{
    join_and_leave(host, &four);
}

TEST_EACH_HOST(udp, joins_a_group_and_leaves_it_with_ipv6)
{
    join_and_leave(host, &six);
}

static void let_others_join(struct host *host, const struct family *family)
{
    struct party party;
    weir_promise *done;

    party_open(&party, host, family);
    done = endpoint_promise(&party.host);
    weir_udp_join(party.host.channel, &party.group, party.interface, NULL, done);
    assert_int_equal(endpoint_result(done), 0);
    say_and_whisper(&party);
    assert_endpoint_events(&party.guest, "read(you)");
    party_close(&party);
}

TEST_EACH_HOST(udp, receives_nothing_of_a_group_that_only_others_have_joined)
{
    let_others_join(host, &four);
    let_others_join(host, &six);
}

/* What address the host sends to the group from. */
static weir_address source_of(struct party *party)
{
    assert_int_equal(change(party, weir_udp_join, NULL), 0);
    assert_int_equal(endpoint_send(&party->host, "who", &party->group), 0);
    assert_endpoint_events(&party->guest, "read(who)");
    assert_int_equal(change(party, weir_udp_leave, NULL), 0);
    return party->guest.sender;
}

static void join_source(struct host *host, const struct family *family, const char *stranger)
{
    struct party party;
    weir_address source, other;

    party_open(&party, host, family);
    source = source_of(&party);
    assert_int_equal(weir_address_parse(stranger, &other), 0);
    assert_int_equal(change(&party, weir_udp_join, &other), 0);
    say_and_whisper(&party);
    assert_endpoint_events(&party.guest, "read(you)");
    assert_int_equal(change(&party, weir_udp_join, &source), 0);
    say_and_whisper(&party);
    assert_endpoint_events(&party.guest, "read(all) read(you)");
    assert_int_equal(change(&party, weir_udp_leave, &source), 0);
    say_and_whisper(&party);
    assert_endpoint_events(&party.guest, "read(you)");
    party_close(&party);
}

TEST_EACH_HOST(udp, receives_only_from_joined_sources)
{
    join_source(host, &four, "127.0.0.9:0");
}

TEST_EACH_HOST(udp, receives_only_from_joined_sources_with_ipv6)
{
    join_source(host, &six, "[2001:db8::9]:0");
}

/* ---- from where ---- */

static void join_on_the_loop(void *arg)
{
    struct party *party = arg;

    weir_udp_join(party->guest.channel, &party->group, party->interface, NULL, NULL);
}

TEST_EACH_HOST(udp, joins_a_group_on_its_loop)
{
    struct party party;

    party_open(&party, host, &four);
    run_on_executor(weir_channel_executor(party.guest.channel), join_on_the_loop, &party);
    say_and_whisper(&party);
    assert_endpoint_events(&party.guest, "read(all) read(you)");
    party_close(&party);
}

/* The join comes after the bind, though nobody waits for that. */
TEST_EACH_HOST(udp, joins_a_group_in_the_order_it_is_asked_to)
{
    weir_address any, group;
    struct datagram_endpoint endpoint;
    weir_promise *joined;

    assert_int_equal(weir_address_parse("0.0.0.0:0", &any), 0);
    assert_int_equal(weir_address_parse("239.7.8.9:0", &group), 0);
    endpoint_init(&endpoint, host, NULL);
    joined = endpoint_promise(&endpoint);
    weir_channel_bind(endpoint.channel, &any, NULL);
    weir_udp_join(endpoint.channel, &group, "lo", NULL, joined);
    assert_int_equal(endpoint_result(joined), 0);
    endpoint_close(&endpoint);
}

/* ---- refusals ---- */

static int try_to_join(struct datagram_endpoint *endpoint, const weir_address *group,
                       const char *interface, const weir_address *source)
{
    weir_promise *joined = endpoint_promise(endpoint);

    weir_udp_join(endpoint->channel, group, interface, source, joined);
    return endpoint_result(joined);
}

TEST_EACH_HOST(udp, rejects_invalid_groups)
{
    weir_address group, nobody, other;
    struct datagram_endpoint endpoint;

    assert_int_equal(weir_address_parse("239.7.8.9:0", &group), 0);
    assert_int_equal(weir_address_parse("127.0.0.1:0", &nobody), 0);
    assert_int_equal(weir_address_parse("[::1]:0", &other), 0);
    endpoint_init(&endpoint, host, NULL);
    assert_int_equal(try_to_join(&endpoint, &group, NULL, NULL), -ENOTCONN);
    assert_int_equal(endpoint_bind(&endpoint, "0.0.0.0:0"), 0);
    assert_int_equal(try_to_join(&endpoint, NULL, NULL, NULL), -EINVAL);
    assert_int_equal(try_to_join(&endpoint, &nobody, NULL, NULL), -EINVAL);
    assert_int_equal(try_to_join(&endpoint, &group, NULL, &other), -EINVAL);
    assert_int_equal(try_to_join(&endpoint, &group, "no-such-one", NULL), -ENODEV);
    assert_int_equal(try_to_join(&endpoint, &group, "a-name-that-is-much-too-long", NULL),
                     -ENAMETOOLONG);
    assert_true(weir_channel_is_open(endpoint.channel));
    assert_int_equal(endpoint_do(&endpoint, weir_channel_close), 0);
    assert_int_equal(try_to_join(&endpoint, &group, "lo", NULL), WEIR_ECLOSED);
    endpoint_close(&endpoint);
}

TEST_EACH_HOST(udp, is_the_only_one_to_join_groups)
{
    weir_channel *channel;
    weir_promise *joined;
    weir_address group;

    assert_int_equal(weir_address_parse("239.7.8.9:0", &group), 0);
    assert_int_equal(weir_tcp_create(NULL, &channel), 0);
    assert_int_equal(weir_promise_create(host->loop, &joined), 0);
    weir_udp_join(channel, &group, NULL, NULL, joined);
    assert_int_equal(endpoint_result(joined), -ENOTSUP);
    weir_channel_release(channel);
}

/* ---- answers, with packet_info ---- */

static void answer(weir_ctx *ctx, weir_datagram *datagram)
{
    weir_datagram_make_reply(datagram);
    weir_write_and_flush(ctx, weir_datagram_msg(datagram), NULL);
}

/* Nobody can send from a group's address. */
static void ask_a_group(struct host *host, const struct family *family)
{
    struct party party;

    party_open(&party, host, family);
    party.guest.on_read = answer;
    assert_int_equal(
        weir_channel_set_options(party.guest.channel, WEIR_CHANNEL_OPTIONS(.packet_info = true)),
        0);
    assert_int_equal(change(&party, weir_udp_join, NULL), 0);
    assert_int_equal(endpoint_send(&party.host, "all", &party.group), 0);
    assert_endpoint_events(&party.host, "active read(all)");
    party_close(&party);
}

TEST_EACH_HOST(udp_multicast, groups_can_answer_over_ipv4)
{
    ask_a_group(host, &four);
}

TEST_EACH_HOST(udp_multicast, groups_can_answer_over_ipv6)
{
    ask_a_group(host, &six);
}

TEST_EACH_HOST(udp_multicast, groups_can_answer_on_a_socket_of_both)
{
    ask_a_group(host, &four_by_six);
}
