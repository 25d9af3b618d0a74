/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The BIO of a session: OpenSSL reads straight from the received buffer and writes straight into
 * the one to send. It accepts everything that is written, so OpenSSL never has to retry.
 */
#include <stdatomic.h>
#include <string.h>

#include <weir/buf.h>

#include "tls/openssl/internal.h"

static void remember_first(weir__openssl_session *self, const uint8_t *bytes, size_t length)
{
    size_t room = sizeof(self->first) - self->first_length;

    if (length > room)
        length = room;
    memcpy(self->first + self->first_length, bytes, length);
    self->first_length += (uint8_t)length;
}

static int starve(weir__openssl_session *self, BIO *bio)
{
    self->is_starved = true;
    BIO_set_retry_read(bio);
    return -1;
}

/*
 * Before the next record of a flood OpenSSL sees no input, so that it returns. To reject the flood,
 * it is given the header of a record of an invalid type.
 */
static int stop_flood(weir__openssl_session *self, BIO *bio, char *ret_bytes)
{
    static const char invalid[SSL3_RT_HEADER_LENGTH] = {'\xff', 3, 3, 0, 1};

    if (self->stage != WEIR__OPENSSL_REJECTING)
        return starve(self, bio);
    memcpy(ret_bytes, invalid, sizeof(invalid));
    return (int)sizeof(invalid);
}

static int on_bio_read(BIO *bio, char *ret_bytes, int size)
{
    weir__openssl_session *self = BIO_get_data(bio);
    weir_buf *in = self->io->in;
    size_t length = in != NULL ? weir_buf_readable(in) : 0;

    self->is_starved = false;
    BIO_clear_retry_flags(bio);
    if (size <= 0)
        return 0;
    if (self->dataless > WEIR__OPENSSL_DATALESS_MAX && size == SSL3_RT_HEADER_LENGTH)
        return stop_flood(self, bio, ret_bytes);
    self->is_between_records =
        length == 0 && size == SSL3_RT_HEADER_LENGTH; /* wants a whole header */
    if (length == 0)
        return starve(self, bio);
    if (length > (size_t)size)
        length = (size_t)size;
    if (self->first_length < sizeof(self->first))
        remember_first(self, weir_buf_bytes(in), length);
    memcpy(ret_bytes, weir_buf_bytes(in), length);
    (void)weir_buf_skip(in, length); /* cannot fail: it has them */
    return (int)length;
}

static int on_bio_write(BIO *bio, const char *bytes, int length)
{
    weir__openssl_session *self = BIO_get_data(bio);
    weir__openssl_io *io = self->io;
    int err = 0;

    self->is_starved = false;
    BIO_clear_retry_flags(bio);
    if (length <= 0)
        return 0;
    if (io->out == NULL)
        err = weir_buf_create((size_t)length, 0, &io->out);
    if (err == 0)
        err = weir_buf_write_bytes(io->out, bytes, (size_t)length);
    if (err < 0)
        self->io_err = err;
    return err < 0 ? -1 : length;
}

static long on_bio_ctrl(BIO *bio, int command, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH ? 1 : 0;
}

/* Nothing looks it up by type, so it gets no index of its own: BIO_get_new_index fails for ever
 * after it once had no memory. */
static BIO_METHOD *create_method(void)
{
    BIO_METHOD *method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "weir buffers");

    if (method == NULL)
        return NULL;
    BIO_meth_set_read(method, on_bio_read);
    BIO_meth_set_write(method, on_bio_write);
    BIO_meth_set_ctrl(method, on_bio_ctrl);
    return method;
}

/* One for all sessions, created on first use and never freed; of two concurrent ones the second is
 * freed. Acquire and release: a thread that reads the pointer sees what it points to. */
static const BIO_METHOD *shared_method(void)
{
    static BIO_METHOD *_Atomic shared;
    BIO_METHOD *method = atomic_load_explicit(&shared, memory_order_acquire);
    BIO_METHOD *made;

    if (method != NULL)
        return method;
    made = create_method();
    if (made == NULL)
        return NULL;
    if (atomic_compare_exchange_strong_explicit(&shared, &method, made, memory_order_acq_rel,
                                                memory_order_acquire))
        return made;
    BIO_meth_free(made);
    return method;
}

BIO *weir__openssl_bio_create(weir__openssl_session *session)
{
    const BIO_METHOD *method = shared_method();
    BIO *bio = method == NULL ? NULL : BIO_new(method);

    if (bio == NULL)
        return NULL;
    BIO_set_data(bio, session);
    BIO_set_init(bio, 1);
    return bio;
}
