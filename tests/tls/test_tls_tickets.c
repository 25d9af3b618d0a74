/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys of tickets by themselves, on a clock that is moved; then sessions that are taken up
 * again by them, or are not.
 */
#include <errno.h>
#include <string.h>

#include <weir/error.h>
#include <weir/tls_context.h>

#include "support/memory.h"
#include "support/test.h"
#include "support/tls/memory_handshake.h"
#include "support/tls/pki.h"
#include "tls/tls_tickets.h"

#define HOUR_NS weir_seconds(3600)

static weir_manual_clock *clock_at(int64_t ns)
{
    weir_manual_clock *clock;

    assert_int_equal(weir_manual_clock_create(ns, &clock), 0);
    return clock;
}

static weir_tls_tickets *tickets_on(weir_manual_clock *clock, int64_t rotation_ns)
{
    weir_tls_tickets *tickets;

    assert_int_equal(
        weir__tls_tickets_create_with(rotation_ns, weir_manual_clock_clock(clock), &tickets), 0);
    return tickets;
}

static weir__tls_ticket_key first_of(weir_tls_tickets *tickets)
{
    weir__tls_ticket_key key;

    assert_int_equal(weir__tls_tickets_first(tickets, &key), 0);
    return key;
}

static bool is_first(weir_tls_tickets *tickets, const weir__tls_ticket_key *key)
{
    weir__tls_ticket_key first = first_of(tickets);

    return memcmp(&first, key, sizeof(first)) == 0;
}

static bool opens(weir_tls_tickets *tickets, const weir__tls_ticket_key *key)
{
    weir__tls_ticket_key found;
    bool first;

    if (!weir__tls_tickets_find(tickets, key->name, &found, &first))
        return false;
    assert_memory_equal(&found, key, sizeof(found));
    return true;
}

TEST(tls_tickets, a_key_is_first_then_opens_then_is_forgotten)
{
    weir_manual_clock *clock = clock_at(HOUR_NS);
    weir_tls_tickets *tickets = tickets_on(clock, HOUR_NS);
    weir__tls_ticket_key key = first_of(tickets);

    assert_int_equal(weir_manual_clock_advance(clock, HOUR_NS - 1), 0);
    assert_true(is_first(tickets, &key));
    assert_int_equal(weir_manual_clock_advance(clock, 1), 0);
    assert_false(is_first(tickets, &key));
    assert_true(opens(tickets, &key));
    assert_int_equal(weir_manual_clock_advance(clock, HOUR_NS - 1), 0);
    assert_true(opens(tickets, &key));
    assert_int_equal(weir_manual_clock_advance(clock, 1), 0);
    assert_false(opens(tickets, &key));
    weir_tls_tickets_release(tickets);
    weir_manual_clock_release(clock);
}

TEST(tls_tickets, a_key_that_nobody_used_for_long_opens_nothing)
{
    weir_manual_clock *clock = clock_at(0);
    weir_tls_tickets *tickets = tickets_on(clock, 0);
    weir__tls_ticket_key key = first_of(tickets);

    assert_int_equal(weir_manual_clock_advance(clock, 24 * HOUR_NS - 1), 0);
    assert_true(opens(tickets, &key));
    assert_int_equal(weir_manual_clock_advance(clock, 1), 0);
    assert_false(opens(tickets, &key));
    assert_false(is_first(tickets, &key));
    weir_tls_tickets_release(tickets);
    weir_manual_clock_release(clock);
}

TEST(tls_tickets, keys_that_are_off_never_grow_old)
{
    weir_manual_clock *clock = clock_at(0);
    weir_tls_tickets *tickets = tickets_on(clock, WEIR_OFF);
    weir__tls_ticket_key key = first_of(tickets);

    assert_int_equal(weir_manual_clock_set(clock, WEIR_NEVER), 0);
    assert_true(is_first(tickets, &key));
    weir_tls_tickets_release(tickets);
    weir_manual_clock_release(clock);
}

TEST(tls_tickets, too_many_rotations_push_the_oldest_out)
{
    weir_manual_clock *clock = clock_at(0);
    weir_tls_tickets *tickets = tickets_on(clock, HOUR_NS);
    weir__tls_ticket_key oldest = first_of(tickets);

    for (int i = 1; i < WEIR_TLS_TICKET_KEYS_MAX; i++)
        assert_int_equal(weir_tls_tickets_rotate(tickets), 0);
    assert_true(opens(tickets, &oldest));
    assert_int_equal(weir_tls_tickets_rotate(tickets), 0);
    assert_false(opens(tickets, &oldest));
    weir_tls_tickets_release(tickets);
    weir_manual_clock_release(clock);
}

TEST(tls_tickets, keys_that_are_set_stay)
{
    uint8_t keys[2 * WEIR_TLS_TICKET_KEY_SIZE];
    weir_manual_clock *clock = clock_at(0);
    weir_tls_tickets *tickets = tickets_on(clock, HOUR_NS);
    weir__tls_ticket_key random = first_of(tickets), first, second;

    for (size_t i = 0; i < sizeof(keys); i++)
        keys[i] = (uint8_t)i;
    memcpy(&first, keys, sizeof(first));
    memcpy(&second, keys + sizeof(first), sizeof(second));
    assert_int_equal(weir_tls_tickets_set(tickets, keys, 2), 0);
    assert_int_equal(weir_manual_clock_advance(clock, 100 * HOUR_NS), 0);
    assert_true(is_first(tickets, &first));
    assert_true(opens(tickets, &second));
    assert_false(opens(tickets, &random));
    weir_tls_tickets_release(tickets);
    weir_manual_clock_release(clock);
}

TEST(tls_tickets, what_makes_no_sense_is_rejected)
{
    uint8_t keys[(WEIR_TLS_TICKET_KEYS_MAX + 1) * WEIR_TLS_TICKET_KEY_SIZE] = {0};
    weir_tls_tickets *tickets;

    assert_int_equal(weir_tls_tickets_create(-2, &tickets), -EINVAL);
    assert_int_equal(weir_tls_tickets_create(0, &tickets), 0);
    assert_int_equal(weir_tls_tickets_set(tickets, keys, 0), -EINVAL);
    assert_int_equal(weir_tls_tickets_set(tickets, keys, WEIR_TLS_TICKET_KEYS_MAX + 1), -EINVAL);
    assert_string_equal(weir_tls_reason(), "the number of ticket keys must be 1 to 8");
    weir_tls_tickets_release(tickets);
    weir_tls_tickets_release(NULL);
}

TEST(tls_tickets, making_them_survives_without_memory)
{
    weir_tls_tickets *tickets;

    test_memory_fail_at(1);
    assert_int_equal(weir_tls_tickets_create(0, &tickets), -ENOMEM);
    test_memory_fail_at(0);
}

/* ---- sessions ---- */

static const enum weir_tls_version versions[] = {WEIR_TLS_VERSION_1_2, WEIR_TLS_VERSION_1_3};

#define EACH_VERSION(v) for (size_t v = 0; v < sizeof(versions) / sizeof(versions[0]); v++)

static weir_tls_context *server_of(const struct pki_leaf *leaf, weir_tls_tickets *tickets,
                                   enum weir_tls_version version)
{
    weir_tls_context *context;

    assert_int_equal(
        weir_tls_server_create(WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = leaf->certificate,
                                                        .key_pem = leaf->key, .tickets = tickets,
                                                        .max_version = version),
                               &context),
        0);
    return context;
}

TEST(tls_tickets, a_client_that_comes_back_takes_its_session_up)
{
    EACH_VERSION(i)
    {
        weir_tls_context *server = handshake_server(versions[i]),
                         *client = handshake_client(versions[i]);

        assert_false(handshake_resumes(client, server));
        for (int visit = 0; visit < 5; visit++)
            assert_true(handshake_resumes(client, server));
        weir_tls_context_release(client);
        weir_tls_context_release(server);
    }
}

TEST(tls_tickets, sessions_survive_a_new_certificate)
{
    EACH_VERSION(i)
    {
        weir_tls_context *server = handshake_server(versions[i]),
                         *client = handshake_client(versions[i]);

        assert_false(handshake_resumes(client, server));
        assert_int_equal(
            weir_tls_context_replace(
                server, WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->renewed.certificate,
                                                 .key_pem = pki()->renewed.key)),
            0);
        assert_true(handshake_resumes(client, server));
        assert_int_equal(weir_tls_context_reload(server), 0);
        assert_true(handshake_resumes(client, server));
        weir_tls_context_release(client);
        weir_tls_context_release(server);
    }
}

TEST(tls_tickets, servers_that_share_keys_share_sessions)
{
    EACH_VERSION(i)
    {
        weir_tls_tickets *tickets;
        weir_tls_context *one, *two, *stranger, *client = handshake_client(versions[i]);

        assert_int_equal(weir_tls_tickets_create(0, &tickets), 0);
        one = server_of(&pki()->server, tickets, versions[i]);
        two = server_of(&pki()->renewed, tickets, versions[i]);
        stranger = handshake_server(versions[i]);
        weir_tls_tickets_release(tickets);
        assert_false(handshake_resumes(client, one));
        assert_true(handshake_resumes(client, two));
        assert_false(handshake_resumes(client, stranger));
        weir_tls_context_release(one);
        weir_tls_context_release(two);
        weir_tls_context_release(stranger);
        weir_tls_context_release(client);
    }
}

TEST(tls_tickets, former_keys_open_and_renew_and_older_ones_do_not)
{
    EACH_VERSION(i)
    {
        weir_manual_clock *clock = clock_at(0);
        weir_tls_tickets *tickets = tickets_on(clock, HOUR_NS);
        weir_tls_context *server = server_of(&pki()->server, tickets, versions[i]);
        weir_tls_context *client = handshake_client(versions[i]);

        assert_false(handshake_resumes(client, server));
        for (int hour = 0; hour < 4; hour++) { /* each visit renews what is then an hour old */
            assert_int_equal(weir_manual_clock_advance(clock, HOUR_NS), 0);
            assert_true(handshake_resumes(client, server));
        }
        assert_int_equal(weir_manual_clock_advance(clock, 2 * HOUR_NS), 0);
        assert_false(handshake_resumes(client, server));
        assert_true(handshake_resumes(client, server));
        weir_tls_context_release(client);
        weir_tls_context_release(server);
        weir_tls_tickets_release(tickets);
        weir_manual_clock_release(clock);
    }
}

static weir_tls_context *server_without(enum weir_tls_version version)
{
    weir_tls_context *context;

    assert_int_equal(weir_tls_server_create(
                         WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->server.certificate,
                                                  .key_pem = pki()->server.key,
                                                  .max_version = version, .resumption = WEIR_OFF),
                         &context),
                     0);
    return context;
}

TEST(tls_tickets, no_resumption_on_either_side)
{
    EACH_VERSION(i)
    {
        weir_tls_context *server = handshake_server(versions[i]),
                         *client = handshake_client(versions[i]);
        weir_tls_context *without = server_without(versions[i]), *forgetful;

        assert_int_equal(
            weir_tls_client_create(
                WEIR_TLS_CONTEXT_OPTIONS(.ca_pem = pki()->ca, .resumption = WEIR_OFF), &forgetful),
            0);
        for (int visit = 0; visit < 2; visit++) {
            assert_false(handshake_resumes(client, without));
            assert_false(handshake_resumes(forgetful, server));
        }
        weir_tls_context_release(forgetful);
        weir_tls_context_release(without);
        weir_tls_context_release(client);
        weir_tls_context_release(server);
    }
}

/* ---- by choice ---- */

TEST(tls_tickets, the_keys_are_those_of_the_context_that_was_chosen)
{
    EACH_VERSION(i)
    {
        weir_tls_context *asked = handshake_server(versions[i]),
                         *chosen = handshake_server(versions[i]);
        weir_tls_context *other = handshake_server(versions[i]),
                         *client = handshake_client(versions[i]);

        assert_false(handshake_resumes_with(client, asked, chosen));
        assert_true(handshake_resumes_with(client, asked, chosen));
        assert_true(handshake_resumes(client, chosen));
        assert_false(handshake_resumes_with(client, asked, other));
        assert_false(handshake_resumes(client, asked));
        weir_tls_context_release(client);
        weir_tls_context_release(other);
        weir_tls_context_release(chosen);
        weir_tls_context_release(asked);
    }
}

TEST(tls_tickets, whether_there_is_resumption_is_for_the_chosen_to_say)
{
    EACH_VERSION(i)
    {
        weir_tls_context *with = handshake_server(versions[i]),
                         *without = server_without(versions[i]);
        weir_tls_context *client = handshake_client(versions[i]);

        assert_false(handshake_resumes_with(client, with, without));
        assert_false(handshake_resumes_with(client, with, without));
        assert_false(handshake_resumes_with(client, without, with));
        assert_true(handshake_resumes_with(client, without, with));
        assert_false(handshake_resumes_with(client, with, without)); /* has a ticket, of no use */
        weir_tls_context_release(client);
        weir_tls_context_release(without);
        weir_tls_context_release(with);
    }
}

/* ---- with a client's certificate ---- */

static weir_tls_context_options mutual_server(const char *ca)
{
    return (weir_tls_context_options){
        .size = sizeof(weir_tls_context_options),
        .certificate_pem = pki()->server.certificate,
        .key_pem = pki()->server.key,
        .ca_pem = ca,
        .verify = WEIR_TLS_VERIFY_REQUIRED,
    };
}

static weir_tls_context *mutual_client(enum weir_tls_version version)
{
    weir_tls_context *context;

    assert_int_equal(weir_tls_client_create(
                         WEIR_TLS_CONTEXT_OPTIONS(.certificate_pem = pki()->client.certificate,
                                                  .key_pem = pki()->client.key, .ca_pem = pki()->ca,
                                                  .max_version = version),
                         &context),
                     0);
    return context;
}

static void assert_knows_client(weir__openssl_session *session)
{
    weir_tls_certificate *certificate;

    assert_int_equal(weir__openssl_session_peer_certificate(session, &certificate), 0);
    assert_non_null(certificate);
    assert_string_equal(weir_tls_certificate_subject(certificate), "CN=client");
    weir_tls_certificate_release(certificate);
}

TEST(tls_tickets, the_clients_certificate_comes_with_its_session)
{
    EACH_VERSION(i)
    {
        weir_tls_context_options options = mutual_server(pki()->ca);
        weir_tls_context *server, *client = mutual_client(versions[i]);
        weir__openssl_negotiated negotiated;
        struct session_pair pair;

        assert_int_equal(weir_tls_server_create(&options, &server), 0);
        for (int visit = 0; visit < 2; visit++) {
            assert_true(handshake_run(&pair, client, server));
            weir__openssl_session_negotiated(pair.server.session, &negotiated);
            assert_int_equal(negotiated.is_resumed, visit > 0);
            assert_knows_client(pair.server.session);
            session_pair_close(&pair);
        }
        weir_tls_context_release(client);
        weir_tls_context_release(server);
    }
}

TEST(tls_tickets, a_session_ends_with_the_belief_in_its_client)
{
    EACH_VERSION(i)
    {
        weir_tls_context_options options = mutual_server(pki()->ca);
        weir_tls_context *server, *client = mutual_client(versions[i]);
        struct session_pair pair;

        assert_int_equal(weir_tls_server_create(&options, &server), 0);
        assert_false(handshake_resumes(client, server));
        options = mutual_server(pki()->strange_ca);
        assert_int_equal(weir_tls_context_replace(server, &options), 0);
        (void)handshake_run(&pair, client, server);
        assert_int_equal(pair.server.status, WEIR_EUNTRUSTED);
        session_pair_close(&pair);
        weir_tls_context_release(client);
        weir_tls_context_release(server);
    }
}
