/* SPDX-License-Identifier: Apache-2.0 */
#include <weir/tls_context.h>

#include <errno.h>
#include <string.h>

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "support/memory.h"
#include "support/test.h"
#include "support/tls/pki.h"
#include "tls/openssl/internal.h"

#define DAY 86400

static weir_tls_certificate *parse(const char *pem)
{
    weir_tls_certificate *certificate;

    assert_int_equal(weir_tls_certificate_parse(pem, &certificate), 0);
    return certificate;
}

TEST(tls_certificate, reports_whose_it_is_and_who_says_so)
{
    weir_tls_certificate *server = parse(pki()->server.certificate);

    assert_string_equal(weir_tls_certificate_subject(server), "CN=localhost");
    assert_non_null(strstr(weir_tls_certificate_issuer(server), "CN="));
    assert_string_not_equal(weir_tls_certificate_issuer(server), "CN=localhost");
    assert_true(strlen(weir_tls_certificate_serial(server)) > 0);
    assert_int_equal(strspn(weir_tls_certificate_serial(server), "0123456789ABCDEF"),
                     strlen(weir_tls_certificate_serial(server)));
    weir_tls_certificate_release(server);
}

TEST(tls_certificate, has_names_and_addresses)
{
    weir_tls_certificate *server = parse(pki()->server.certificate);
    static const char *const names[] = {"localhost", "127.0.0.1", "::1", "example.test"};
    size_t count = 0;

    while (weir_tls_certificate_name(server, count) != NULL)
        count++;
    assert_int_equal(count, sizeof(names) / sizeof(names[0]));
    for (size_t i = 0; i < count; i++) {
        bool is_found = false;

        for (size_t j = 0; j < count; j++)
            is_found |= strcmp(weir_tls_certificate_name(server, j), names[i]) == 0;
        assert_true(is_found);
    }
    assert_null(weir_tls_certificate_name(server, SIZE_MAX));
    weir_tls_certificate_release(server);
}

TEST(tls_certificate, holds_for_a_time)
{
    weir_tls_certificate *expired = parse(pki()->expired.certificate);
    weir_tls_certificate *future = parse(pki()->future.certificate);

    assert_true(weir_tls_certificate_not_before(expired) < weir_tls_certificate_not_after(expired));
    assert_true(weir_tls_certificate_not_after(expired) < weir_tls_certificate_not_before(future));
    assert_true(weir_tls_certificate_not_after(expired) > (int64_t)20000 * DAY); /* 2024 */
    weir_tls_certificate_release(expired);
    weir_tls_certificate_release(future);
}

TEST(tls_certificate, is_the_same_in_der_and_pem)
{
    weir_tls_certificate *server = parse(pki()->server.certificate);
    weir_tls_certificate *again = parse(weir_tls_certificate_pem(server));
    weir_span one = weir_tls_certificate_der(server), other = weir_tls_certificate_der(again);

    assert_int_equal(one.length, other.length);
    assert_memory_equal(one.data, other.data, one.length);
    assert_string_equal(weir_tls_certificate_pin(server), weir_tls_certificate_pin(again));
    assert_int_equal(strncmp(weir_tls_certificate_pem(server), pki()->server.certificate,
                             strlen(weir_tls_certificate_pem(server))),
                     0);
    weir_tls_certificate_release(server);
    weir_tls_certificate_release(again);
}

/* openssl x509 -pubkey -noout | openssl pkey -pubin -outform der | openssl dgst -sha256 -binary |
 * openssl base64 */
TEST(tls_certificate, has_the_pin_that_others_compute)
{
    static const char pem[] = "-----BEGIN CERTIFICATE-----\n"
                              "MIICATCCAaagAwIBAgIIASNFZ4mrze8wCgYIKoZIzj0EAwIwLTEYMBYGA1UECgwP\n"
                              "TcO8bGxlciwgU8O2aG5lMREwDwYDVQQDDAhwaW4udGVzdDAgFw0yNjExMTUxNDA5\n"
                              "MjBaGA8yMTI2MTAyMjE0MDkyMFowLTEYMBYGA1UECgwPTcO8bGxlciwgU8O2aG5l\n"
                              "MREwDwYDVQQDDAhwaW4udGVzdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABPFa\n"
                              "dffOyWdUCLkbyE1PrRFApy7HnydlWZ3avvCesvdBKup6V+t0Dv5+mp3Pzy2QzW+A\n"
                              "ZDFHbioyvGsnRfSyOkijga0wgaowHQYDVR0OBBYEFAxJGpVPFbwk3YREhphw9eRG\n"
                              "yjYhMB8GA1UdIwQYMBaAFAxJGpVPFbwk3YREhphw9eRGyjYhMA8GA1UdEwEB/wQF\n"
                              "MAMBAf8wVwYDVR0RBFAwToIIcGluLnRlc3SCCioucGluLnRlc3SHBMAAAgeHECAB\n"
                              "DbgAAAAAAAAAAAAAAAeBCmFAcGluLnRlc3SGEmh0dHBzOi8vcGluLnRlc3QveDAK\n"
                              "BggqhkjOPQQDAgNJADBGAiEAn/w+cNRFakzrs/C5qip4gbaf372P3BuZYp0o+R+v\n"
                              "zuYCIQD9zyghv2AxYNi5vxQsePn4yAM+AexT7AJxLlf+AxS27Q==\n"
                              "-----END CERTIFICATE-----\n";
    weir_tls_certificate *certificate = parse(pem);

    assert_string_equal(weir_tls_certificate_pin(certificate),
                        "sha256/wGn7tpcLP3+FnSQC+x+DjshQ93wYZzpLtDEylzG9/Ao=");
    assert_string_equal(weir_tls_certificate_subject(certificate), "CN=pin.test,O=Müller\\, Söhne");
    assert_string_equal(weir_tls_certificate_serial(certificate), "0123456789ABCDEF");
    assert_int_equal(weir_tls_certificate_not_before(certificate), 1794751760);
    assert_int_equal(weir_tls_certificate_not_after(certificate), 4948351760);
    assert_string_equal(weir_tls_certificate_name(certificate, 0), "pin.test");
    assert_string_equal(weir_tls_certificate_name(certificate, 1), "*.pin.test");
    assert_string_equal(weir_tls_certificate_name(certificate, 2), "192.0.2.7");
    assert_string_equal(weir_tls_certificate_name(certificate, 3), "2001:db8::7");
    assert_string_equal(weir_tls_certificate_name(certificate, 4), "a@pin.test");
    assert_string_equal(weir_tls_certificate_name(certificate, 5), "https://pin.test/x");
    assert_null(weir_tls_certificate_name(certificate, 6));
    weir_tls_certificate_release(certificate);
}

TEST(tls_certificate, must_be_one)
{
    weir_tls_certificate *certificate = NULL;

    assert_int_equal(weir_tls_certificate_parse("", &certificate), WEIR_ETLS);
    assert_string_equal(weir_tls_reason(), "no start line");
    assert_int_equal(weir_tls_certificate_parse(pki()->server.key, &certificate), WEIR_ETLS);
    assert_int_equal(weir_tls_certificate_parse("-----BEGIN CERTIFICATE-----\nAAAA\n"
                                                "-----END CERTIFICATE-----\n",
                                                &certificate),
                     WEIR_ETLS);
    assert_true(strlen(weir_tls_reason()) > 0);
    assert_null(certificate);
}

TEST(tls_certificate, is_counted)
{
    weir_tls_certificate *server = parse(pki()->server.certificate);

    assert_ptr_equal(weir_tls_certificate_retain(server), server);
    weir_tls_certificate_release(server);
    assert_non_null(strstr(weir_tls_certificate_subject(server), "localhost"));
    weir_tls_certificate_release(server);
    weir_tls_certificate_release(NULL);
}

TEST(tls_certificate, survives_a_lack_of_memory)
{
    weir_tls_certificate *certificate;
    int err;

    for (unsigned n = 1;; n++) {
        test_memory_fail_at(n);
        err = weir_tls_certificate_parse(pki()->server.certificate, &certificate);
        if (!test_memory_failed())
            break;
        assert_int_equal(err, -ENOMEM);
    }
    test_memory_fail_at(0);
    assert_int_equal(err, 0);
    weir_tls_certificate_release(certificate);
}
