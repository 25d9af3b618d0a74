/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uses every public function of libweir-tls once from C++11, as api.cpp does for libweir.
 */
#include <cstring>

#include <weir/tls.h>
#include <weir/tls_context.h>
#include <weir/weir.h>

#include "expect.h"

namespace
{

/* ---- contexts ---- */

void accept_any(weir_tls_sni_request *request, void *)
{
    EXPECT(std::strcmp(weir_tls_sni_request_server_name(request), "localhost") == 0);
    EXPECT(std::strcmp(weir_tls_sni_request_alpn(request), "x") == 0);
    weir_tls_sni_request_accept(request, nullptr);
}

void refuse_any(weir_tls_sni_request *request, void *)
{
    weir_tls_sni_request_reject(request, "not today");
}

weir_tls_context *make_server(weir_tls_sni_fn *choose)
{
    weir_tls_context_options options = *WEIR_TLS_CONTEXT_OPTIONS();
    weir_tls_context *context = nullptr;

    options.self_signed_for = "localhost";
    options.alpn = "x";
    options.on_sni = choose;
    EXPECT(weir_tls_server_create(&options, &context) == 0);
    return context;
}

weir_tls_context *make_client(const char *pins)
{
    weir_tls_context_options options = *WEIR_TLS_CONTEXT_OPTIONS();
    weir_tls_context *context = nullptr;

    options.verify = WEIR_TLS_VERIFY_PINS;
    options.pins = pins;
    options.alpn = "x";
    EXPECT(weir_tls_client_create(&options, &context) == 0);
    return context;
}

void use_contexts()
{
    weir_tls_context *server = make_server(nullptr), *other = make_server(nullptr);
    weir_tls_context_options options = *WEIR_TLS_CONTEXT_OPTIONS();
    weir_tls_context_stats stats;
    weir_tls_context *none = nullptr;

    EXPECT(weir_tls_server_create(&options, &none) < 0);
    EXPECT(std::strlen(weir_tls_reason()) > 0);
    EXPECT(weir_tls_context_add_name(server, "other.test", other) == 0);
    EXPECT(weir_tls_context_reload(server) == 0);
    EXPECT(weir_tls_context_replace(server, &options) < 0);
    weir_tls_context_read_stats(server, &stats);
    EXPECT(stats.reloads == 1);
    weir_tls_context_release(weir_tls_context_retain(server));
    weir_tls_context_release(other);
    weir_tls_context_release(server);
}

void use_tickets()
{
    const uint8_t keys[WEIR_TLS_TICKET_KEY_SIZE] = {1};
    weir_tls_tickets *tickets = nullptr;

    EXPECT(weir_tls_tickets_create(0, &tickets) == 0);
    EXPECT(weir_tls_tickets_rotate(tickets) == 0);
    EXPECT(weir_tls_tickets_set(tickets, keys, 1) == 0);
    weir_tls_tickets_release(weir_tls_tickets_retain(tickets));
    weir_tls_tickets_release(tickets);
}

void use_certificate(weir_tls_certificate *certificate)
{
    weir_tls_certificate *copy = nullptr;
    const char *pem = weir_tls_certificate_pem(certificate);

    EXPECT(weir_tls_certificate_parse(pem, &copy) == 0);
    EXPECT(std::strcmp(weir_tls_certificate_subject(copy), weir_tls_certificate_issuer(copy)) == 0);
    EXPECT(std::strlen(weir_tls_certificate_serial(copy)) > 0);
    EXPECT(std::strcmp(weir_tls_certificate_name(copy, 0), "localhost") == 0);
    EXPECT(weir_tls_certificate_not_before(copy) < weir_tls_certificate_not_after(copy));
    EXPECT(std::strlen(weir_tls_certificate_pin(copy)) == WEIR_TLS_PIN_SIZE - 1);
    EXPECT(weir_tls_certificate_der(copy).length > 0);
    weir_tls_certificate_release(weir_tls_certificate_retain(copy));
    weir_tls_certificate_release(copy);
}

/* ---- handlers ---- */

int handshakes = 0;

void look_at(const weir_tls_handshake *handshake)
{
    EXPECT(weir_tls_handshake_result(handshake) == 0);
    EXPECT(std::strlen(weir_tls_handshake_detail(handshake)) == 0);
    EXPECT(std::strcmp(weir_tls_handshake_version(handshake), "TLSv1.3") == 0);
    EXPECT(std::strlen(weir_tls_handshake_cipher(handshake)) > 0);
    EXPECT(std::strcmp(weir_tls_handshake_alpn(handshake), "x") == 0);
    EXPECT(std::strcmp(weir_tls_handshake_server_name(handshake), "localhost") == 0);
    EXPECT(!weir_tls_handshake_is_resumed(handshake));
    EXPECT(!weir_tls_handshake_is_stapled(handshake));
    if (weir_tls_handshake_peer(handshake) != nullptr)
        use_certificate(weir_tls_handshake_peer(handshake));
}

void on_event(weir_ctx *ctx, weir_msg *event)
{
    const weir_tls_handshake *handshake = weir_tls_handshake_of(event);

    EXPECT(handshake != nullptr || event == weir_event_tls_closed());
    if (handshake != nullptr) {
        handshakes++;
        look_at(handshake);
    }
    weir_fire_event(ctx, event);
}

/* What one has to send the other gets, until both have nothing more to say. */
void pump(weir_embedded *one, weir_embedded *other)
{
    for (bool moved = true; moved;) {
        moved = false;
        for (int n = 0; n < 2; n++) {
            weir_embedded *from = n == 0 ? one : other, *to = n == 0 ? other : one;

            for (weir_msg *msg; (msg = weir_embedded_read_outbound(from)) != nullptr; moved = true)
                EXPECT(weir_embedded_write_inbound(to, msg) == 0);
        }
    }
}

void add_listener(weir_embedded *embedded)
{
    static weir_handler listener;

    listener.name = "listener";
    listener.event = on_event;
    EXPECT(weir_pipeline_add_last(weir_embedded_pipeline(embedded), &listener, nullptr) == 0);
}

void use_handler()
{
    weir_tls_context *server = make_server(accept_any);
    weir_tls_certificate *certificate = weir_tls_context_certificate(server);
    weir_tls_context *client = make_client(weir_tls_certificate_pin(certificate));
    weir_embedded *one = nullptr, *other = nullptr;
    weir_tls_options options = *WEIR_TLS_OPTIONS();
    weir_place first = *WEIR_PLACE();

    options.server_name = "localhost";
    EXPECT(weir_embedded_create(nullptr, &one) == 0);
    EXPECT(weir_embedded_create(nullptr, &other) == 0);
    add_listener(one);
    add_listener(other);
    first.first = true;
    options.place = &first;
    EXPECT(weir_tls_add_with(weir_embedded_pipeline(one), client, &options) == 0);
    options = *WEIR_TLS_OPTIONS();
    options.place = &first;
    EXPECT(weir_tls_add_with(weir_embedded_pipeline(other), server, &options) == 0);
    pump(one, other);
    EXPECT(handshakes == 2);
    weir_msg *handshake = weir_tls_read_handshake(weir_embedded_pipeline(one));
    EXPECT(handshake != nullptr);
    weir_msg_release(handshake);
    weir_embedded_release(one);
    weir_embedded_release(other);
    weir_tls_certificate_release(certificate);
    weir_tls_context_release(client);
    weir_tls_context_release(server);
}

void use_client_handler()
{
    const char *pin = "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    weir_tls_context *client = make_client(pin);
    weir_embedded *embedded = nullptr;

    EXPECT(weir_embedded_create(nullptr, &embedded) == 0);
    EXPECT(weir_tls_add_client(weir_embedded_pipeline(embedded), client, "localhost") == 0);
    EXPECT(weir_pipeline_count(weir_embedded_pipeline(embedded)) == 1);
    weir_embedded_release(embedded);
    weir_tls_context_release(client);
}

void use_refusal()
{
    weir_tls_context *server = make_server(refuse_any);
    weir_embedded *embedded = nullptr;

    EXPECT(weir_embedded_create(nullptr, &embedded) == 0);
    EXPECT(weir_tls_add(weir_embedded_pipeline(embedded), server) == 0);
    weir_embedded_release(embedded);
    weir_tls_context_release(server);
}

void use_first_bytes()
{
    const uint8_t http[] = {'G', 'E', 'T', ' '};
    weir_tls_context *server = make_server(nullptr);
    weir_embedded *embedded = nullptr;
    weir_tls_detect_options options = *WEIR_TLS_DETECT_OPTIONS();
    weir_tls_hello_options hello_options = *WEIR_TLS_HELLO_OPTIONS();
    weir_tls_hello hello;
    weir_span bytes = {http, sizeof(http)};

    EXPECT(weir_tls_hello_read(bytes, &hello) == WEIR_ENOTTLS);
    options.context = server;
    options.init = [](weir_channel *, bool, void *) { return 0; };
    EXPECT(weir_embedded_create(nullptr, &embedded) == 0);
    EXPECT(weir_tls_detect_add(weir_embedded_pipeline(embedded), &options) == 0);
    hello_options.on_hello = [](weir_ctx *, const weir_tls_hello *, void *) { return 0; };
    EXPECT(weir_tls_hello_add(weir_embedded_pipeline(embedded), &hello_options) == 0);
    weir_embedded_release(embedded);
    weir_tls_context_release(server);
}

} /* namespace */

int main()
{
    use_contexts();
    use_tickets();
    use_handler();
    use_client_handler();
    use_refusal();
    use_first_bytes();
    return failures != 0;
}
