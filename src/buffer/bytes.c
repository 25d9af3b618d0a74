/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copying bytes. memcpy requires valid pointers even for a length of 0, which callers may not have:
 * hence the checks of the length.
 */
#include <weir/buf.h>

int weir_buf_get_span(const weir_buf *buf, size_t index, size_t length, weir_span *ret_span)
{
    if (!weir_buf_in_bounds(buf, index, length))
        return WEIR_EBOUNDS;
    *ret_span = weir_span_of(buf->data + index, length);
    return 0;
}

int weir_buf_peek_span(const weir_buf *buf, size_t length, weir_span *ret_span)
{
    return weir_buf_get_span(buf, buf->read, length, ret_span);
}

int weir_buf_read_span(weir_buf *buf, size_t length, weir_span *ret_span)
{
    int err = weir_buf_peek_span(buf, length, ret_span);

    if (err == 0)
        buf->read += (uint32_t)length;
    return err;
}

int weir_buf_get_bytes(const weir_buf *buf, size_t index, void *ret_bytes, size_t length)
{
    if (!weir_buf_in_bounds(buf, index, length))
        return WEIR_EBOUNDS;
    if (length > 0)
        memcpy(ret_bytes, buf->data + index, length);
    return 0;
}

int weir_buf_peek_bytes(const weir_buf *buf, void *ret_bytes, size_t length)
{
    return weir_buf_get_bytes(buf, buf->read, ret_bytes, length);
}

int weir_buf_read_bytes(weir_buf *buf, void *ret_bytes, size_t length)
{
    int err = weir_buf_peek_bytes(buf, ret_bytes, length);

    if (err == 0)
        buf->read += (uint32_t)length;
    return err;
}

int weir_buf_set_bytes(weir_buf *buf, size_t index, const void *bytes, size_t length)
{
    if (weir_buf_is_read_only(buf))
        return -EROFS;
    if (!weir_buf_in_bounds(buf, index, length))
        return WEIR_EBOUNDS;
    if (length > 0)
        memmove(buf->data + index, bytes, length);
    return 0;
}

int weir_buf_write_bytes(weir_buf *buf, const void *bytes, size_t length)
{
    int err = weir_buf_reserve(buf, length);

    if (err < 0)
        return err;
    if (length > 0)
        memcpy(weir_buf_space(buf), bytes, length);
    buf->write += (uint32_t)length;
    return 0;
}

int weir_buf_write_fill(weir_buf *buf, uint8_t byte, size_t length)
{
    int err = weir_buf_reserve(buf, length);

    if (err < 0)
        return err;
    memset(weir_buf_space(buf), byte, length);
    buf->write += (uint32_t)length;
    return 0;
}

int weir_buf_write_buf(weir_buf *buf, weir_buf *from, size_t length)
{
    int err;

    if (buf == from)
        return -EINVAL;
    if (length > weir_buf_readable(from))
        return WEIR_EBOUNDS;
    err = weir_buf_reserve(buf, length);
    if (err < 0)
        return err;
    /* memmove, because both may be views of the same memory. */
    memmove(weir_buf_space(buf), weir_buf_bytes(from), length);
    buf->write += (uint32_t)length;
    from->read += (uint32_t)length;
    return 0;
}
