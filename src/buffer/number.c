/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Integers of variable size. Those of fixed size are inline in the header.
 */
#include <weir/buf.h>

#include "base/no_stack_protector.h"

/* ---- of `size` bytes ---- */

static bool is_size(size_t size)
{
    return size >= 1 && size <= sizeof(uint64_t);
}

static int check_fits(uint64_t value, size_t size)
{
    if (!is_size(size))
        return -EINVAL;
    return size == sizeof(value) || value >> (8 * size) == 0 ? 0 : -EOVERFLOW;
}

/* The integer is in the last bytes of a big-endian word, in the first of a little-endian one. */
static uint64_t load(const uint8_t *bytes, size_t size, enum weir_byte_order order)
{
    uint8_t word[sizeof(uint64_t)] = {0};

    if (order == WEIR_LITTLE_ENDIAN) {
        memcpy(word, bytes, size);
        return weir_load_u64_le(word);
    }
    memcpy(word + sizeof(word) - size, bytes, size);
    return weir_load_u64(word);
}

static void store(uint8_t *bytes, size_t size, enum weir_byte_order order, uint64_t value)
{
    uint8_t word[sizeof(uint64_t)];

    if (order == WEIR_LITTLE_ENDIAN) {
        weir_store_u64_le(word, value);
        memcpy(bytes, word, size);
    } else {
        weir_store_u64(word, value);
        memcpy(bytes, word + sizeof(word) - size, size);
    }
}

int weir_buf_get_uint(const weir_buf *buf, size_t index, size_t size, enum weir_byte_order order,
                      uint64_t *ret_value)
{
    if (!is_size(size))
        return -EINVAL;
    if (!weir_buf_in_bounds(buf, index, size))
        return WEIR_EBOUNDS;
    *ret_value = load(buf->data + index, size, order);
    return 0;
}

int weir_buf_set_uint(weir_buf *buf, size_t index, size_t size, enum weir_byte_order order,
                      uint64_t value)
{
    int err = check_fits(value, size);

    if (err < 0)
        return err;
    if (weir_buf_is_read_only(buf))
        return -EROFS;
    if (!weir_buf_in_bounds(buf, index, size))
        return WEIR_EBOUNDS;
    store(buf->data + index, size, order, value);
    return 0;
}

int weir_buf_read_uint(weir_buf *buf, size_t size, enum weir_byte_order order, uint64_t *ret_value)
{
    int err = weir_buf_get_uint(buf, buf->read, size, order, ret_value);

    if (err == 0)
        buf->read += (uint32_t)size;
    return err;
}

int weir_buf_write_uint(weir_buf *buf, size_t size, enum weir_byte_order order, uint64_t value)
{
    int err = check_fits(value, size);

    if (err == 0)
        err = weir_buf_reserve(buf, size);
    if (err < 0)
        return err;
    store(weir_buf_space(buf), size, order, value);
    buf->write += (uint32_t)size;
    return 0;
}

/* ---- of variable length ---- */

int weir_buf_get_varint(const weir_buf *buf, size_t index, uint64_t *ret_value, size_t *ret_length)
{
    size_t available = index < buf->write ? buf->write - index : 0;
    uint64_t value = 0;

    for (size_t i = 0; i < available; i++) {
        uint8_t byte = buf->data[index + i];

        /* The tenth byte holds one bit, and must be the last. */
        if (i == WEIR_VARINT_MAX - 1 && byte > 1)
            return -EOVERFLOW;
        value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte >= 0x80)
            continue;
        if (byte == 0 && i > 0)
            return -EBADMSG;
        *ret_value = value;
        *ret_length = i + 1;
        return 0;
    }
    return WEIR_EBOUNDS;
}

static int64_t zigzag_decode(uint64_t zigzag)
{
    return (int64_t)(zigzag >> 1 ^ (0 - (zigzag & 1)));
}

int weir_buf_get_varint_signed(const weir_buf *buf, size_t index, int64_t *ret_value,
                               size_t *ret_length)
{
    uint64_t zigzag;
    int err = weir_buf_get_varint(buf, index, &zigzag, ret_length);

    if (err == 0)
        *ret_value = zigzag_decode(zigzag);
    return err;
}

WEIR__NO_STACK_PROTECTOR int weir_buf_read_varint(weir_buf *buf, uint64_t *ret_value)
{
    size_t length;
    int err = weir_buf_get_varint(buf, buf->read, ret_value, &length);

    if (err == 0)
        buf->read += (uint32_t)length;
    return err;
}

int weir_buf_read_varint_signed(weir_buf *buf, int64_t *ret_value)
{
    uint64_t zigzag;
    int err = weir_buf_read_varint(buf, &zigzag);

    if (err == 0)
        *ret_value = zigzag_decode(zigzag);
    return err;
}

int weir_buf_write_varint(weir_buf *buf, uint64_t value)
{
    size_t length = weir_varint_length(value);
    int err = weir_buf_reserve(buf, length);
    uint8_t *last;

    if (err < 0)
        return err;
    last = weir_buf_space(buf) + length - 1;
    for (uint8_t *byte = weir_buf_space(buf); byte < last; byte++, value >>= 7)
        *byte = (uint8_t)(value | 0x80);
    *last = (uint8_t)value;
    buf->write += (uint32_t)length;
    return 0;
}

int weir_buf_write_varint_signed(weir_buf *buf, int64_t value)
{
    uint64_t sign = value < 0 ? UINT64_MAX : 0;

    return weir_buf_write_varint(buf, (uint64_t)value << 1 ^ sign);
}
