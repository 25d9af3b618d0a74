/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy_header.h"

#include <errno.h>
#include <string.h>
#include <weir/tls.h>

/* Flags of WEIR_PROXY_SSL. */
#define CLIENT_SSL 0x01
#define CLIENT_CERT_CONN 0x02 /* the certificate was sent in this connection, */
#define CLIENT_CERT_SESS 0x04 /* or in the one whose session was resumed */

/* doc:begin ssl */
static int put_tlv(weir_buf *buf, uint8_t type, weir_span value)
{
    int err = weir_buf_write_u8(buf, type);

    if (!err)
        err = weir_buf_write_u16(buf, (uint16_t)value.length);
    return err ? err : weir_buf_write_bytes(buf, value.data, value.length);
}

/* "CN=client,O=Example": the value, up to the next comma. */
static weir_span common_name(const weir_tls_certificate *certificate)
{
    const char *name = strstr(weir_tls_certificate_subject(certificate), "CN=");

    return name != NULL ? weir_span_of(name + 3, strcspn(name + 3, ",+")) : weir_span_of("", 0);
}

static int put_ssl(weir_buf *buf, const weir_tls_handshake *handshake)
{
    const weir_tls_certificate *peer = weir_tls_handshake_peer(handshake);
    int flags = CLIENT_SSL;
    int err;

    if (peer != NULL)
        flags |= weir_tls_handshake_is_resumed(handshake) ? CLIENT_CERT_SESS
                                                          : CLIENT_CERT_CONN | CLIENT_CERT_SESS;
    err = weir_buf_write_u8(buf, (uint8_t)flags);
    if (!err)
        err = weir_buf_write_u32(buf, peer == NULL); /* 0 = a verified certificate */
    if (!err)
        err = put_tlv(buf, WEIR_PROXY_SSL_VERSION,
                      weir_span_of_text(weir_tls_handshake_version(handshake)));
    if (!err)
        err = put_tlv(buf, WEIR_PROXY_SSL_CIPHER,
                      weir_span_of_text(weir_tls_handshake_cipher(handshake)));
    if (!err && peer != NULL)
        err = put_tlv(buf, WEIR_PROXY_SSL_CN, common_name(peer));
    return err;
}
/* doc:end */

/* doc:begin header */
static int create(weir_channel *channel, const weir_tls_handshake *handshake, weir_buf *ssl,
                  weir_proxy_header **ret_header)
{
    weir_address source, destination;
    weir_proxy_tlv tlvs[3] = {
        {WEIR_PROXY_SSL, weir_span_of(weir_buf_bytes(ssl), weir_buf_readable(ssl))}};
    weir_span alpn = weir_span_of_text(weir_tls_handshake_alpn(handshake));
    weir_span name = weir_span_of_text(weir_tls_handshake_server_name(handshake));
    size_t count = 1;
    int err;

    if (alpn.length > 0)
        tlvs[count++] = (weir_proxy_tlv){WEIR_PROXY_ALPN, alpn};
    if (name.length > 0)
        tlvs[count++] = (weir_proxy_tlv){WEIR_PROXY_AUTHORITY, name};
    err = weir_channel_remote_address(channel, &source);
    if (!err)
        err = weir_channel_local_address(channel, &destination);
    if (err)
        return err;
    return weir_proxy_header_create(WEIR_PROXY_HEADER_OPTIONS(.source = &source,
                                                              .destination = &destination,
                                                              .tlvs = tlvs, .tlv_count = count),
                                    ret_header);
}

int proxy_header_create(weir_channel *channel, weir_proxy_header **ret_header)
{
    weir_msg *handshake = weir_tls_read_handshake(weir_channel_pipeline(channel));
    weir_buf *ssl = NULL;
    int err = handshake != NULL ? weir_buf_create(256, 0, &ssl) : WEIR_ECLOSED;

    if (!err)
        err = put_ssl(ssl, weir_tls_handshake_of(handshake));
    if (!err)
        err = create(channel, weir_tls_handshake_of(handshake), ssl, ret_header);
    weir_buf_release(ssl);
    if (handshake != NULL)
        weir_msg_release(handshake);
    return err;
}
/* doc:end */
