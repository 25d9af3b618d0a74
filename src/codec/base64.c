/* SPDX-License-Identifier: Apache-2.0 */
#include <weir/text_codecs.h>

#include <errno.h>

#include <weir/codec.h>
#include <weir/error.h>

#include "codec/contiguous.h"
#include "codec/frames.h"

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

/* ---- encoding ---- */

static const char *alphabet_of(uint32_t flags)
{
    return (flags & WEIR_BASE64_URL) != 0 ? LETTERS "-_" : LETTERS "+/";
}

size_t weir_base64_encoded_length(size_t length, uint32_t flags)
{
    size_t whole = length / 3 * 4, rest = length % 3;

    if (rest == 0)
        return whole;
    return whole + ((flags & WEIR_BASE64_UNPADDED) != 0 ? rest + 1 : 4);
}

/* The last one or two bytes. */
static size_t encode_rest(weir_span rest, uint32_t flags, char *text)
{
    const char *alphabet = alphabet_of(flags);
    uint32_t bits = (uint32_t)rest.data[0] << 16;
    size_t length = 0;

    if (rest.length == 2)
        bits |= (uint32_t)rest.data[1] << 8;
    text[length++] = alphabet[bits >> 18];
    text[length++] = alphabet[bits >> 12 & 63];
    if (rest.length == 2)
        text[length++] = alphabet[bits >> 6 & 63];
    while ((flags & WEIR_BASE64_UNPADDED) == 0 && length < 4)
        text[length++] = '=';
    return length;
}

size_t weir_base64_encode(weir_span bytes, uint32_t flags, char *ret_text)
{
    const char *alphabet = alphabet_of(flags);
    char *text = ret_text;
    size_t i = 0;

    for (; bytes.length - i >= 3; i += 3) {
        uint32_t bits =
            (uint32_t)bytes.data[i] << 16 | (uint32_t)bytes.data[i + 1] << 8 | bytes.data[i + 2];

        *text++ = alphabet[bits >> 18];
        *text++ = alphabet[bits >> 12 & 63];
        *text++ = alphabet[bits >> 6 & 63];
        *text++ = alphabet[bits & 63];
    }
    if (i < bytes.length)
        text += encode_rest(weir_span_of(bytes.data + i, bytes.length - i), flags, text);
    return (size_t)(text - ret_text);
}

/* ---- decoding ---- */

/* The value of each digit plus one; 0 = not a digit. */
/* clang-format off */
#define DIGITS \
    ['A'] = 1, ['B'] = 2, ['C'] = 3, ['D'] = 4, ['E'] = 5, ['F'] = 6, ['G'] = 7, \
    ['H'] = 8, ['I'] = 9, ['J'] = 10, ['K'] = 11, ['L'] = 12, ['M'] = 13, ['N'] = 14, \
    ['O'] = 15, ['P'] = 16, ['Q'] = 17, ['R'] = 18, ['S'] = 19, ['T'] = 20, ['U'] = 21, \
    ['V'] = 22, ['W'] = 23, ['X'] = 24, ['Y'] = 25, ['Z'] = 26, ['a'] = 27, ['b'] = 28, \
    ['c'] = 29, ['d'] = 30, ['e'] = 31, ['f'] = 32, ['g'] = 33, ['h'] = 34, ['i'] = 35, \
    ['j'] = 36, ['k'] = 37, ['l'] = 38, ['m'] = 39, ['n'] = 40, ['o'] = 41, ['p'] = 42, \
    ['q'] = 43, ['r'] = 44, ['s'] = 45, ['t'] = 46, ['u'] = 47, ['v'] = 48, ['w'] = 49, \
    ['x'] = 50, ['y'] = 51, ['z'] = 52, ['0'] = 53, ['1'] = 54, ['2'] = 55, ['3'] = 56, \
    ['4'] = 57, ['5'] = 58, ['6'] = 59, ['7'] = 60, ['8'] = 61, ['9'] = 62
/* clang-format on */

static const uint8_t standard_digits[256] = {DIGITS, ['+'] = 63, ['/'] = 64};
static const uint8_t url_digits[256] = {DIGITS, ['-'] = 63, ['_'] = 64};

static const uint8_t *digits_of(uint32_t flags)
{
    return (flags & WEIR_BASE64_URL) != 0 ? url_digits : standard_digits;
}

/* Decodes `count` digits, 2 to 4, into 24 bits. False if one of them is invalid. */
static inline bool read_digits(const uint8_t *text, size_t count, const uint8_t *digits,
                               uint32_t *ret_bits)
{
    uint32_t bits = 0, all = 0;

    for (size_t i = 0; i < count; i++) {
        uint32_t digit = digits[text[i]] - 1u;

        all |= digit;
        bits |= digit << (18 - 6 * i);
    }
    *ret_bits = bits;
    return all < 64;
}

/* The number of padding characters at the end, or -1 if it is wrong. */
static int padding_of(weir_span text, uint32_t flags)
{
    int padding = 0;

    if ((flags & WEIR_BASE64_UNPADDED) != 0)
        return 0;
    if (text.length % 4 != 0)
        return -1;
    while (padding < 2 && text.length > 0 && text.data[text.length - 1] == '=') {
        text.length--;
        padding++;
    }
    return padding;
}

/* Decodes the last two or three digits. Their unused bits must be zero. */
static int decode_rest(weir_span rest, const uint8_t *digits, uint8_t *bytes)
{
    uint32_t bits, beyond = rest.length == 2 ? 0xffff : 0xff;

    if (rest.length == 1 || !read_digits(rest.data, rest.length, digits, &bits) ||
        (bits & beyond) != 0)
        return WEIR_EMALFORMED;
    bytes[0] = (uint8_t)(bits >> 16);
    if (rest.length == 3)
        bytes[1] = (uint8_t)(bits >> 8);
    return (int)rest.length - 1;
}

ssize_t weir_base64_decode(weir_span text, uint32_t flags, void *ret_bytes)
{
    const uint8_t *digits = digits_of(flags);
    uint8_t *bytes = ret_bytes;
    int padding = padding_of(text, flags), rest;
    size_t i = 0;

    if (padding < 0)
        return WEIR_EMALFORMED;
    text.length -= (size_t)padding;
    for (; text.length - i >= 4; i += 4, bytes += 3) {
        uint32_t bits;

        if (!read_digits(text.data + i, 4, digits, &bits))
            return WEIR_EMALFORMED;
        bytes[0] = (uint8_t)(bits >> 16);
        bytes[1] = (uint8_t)(bits >> 8);
        bytes[2] = (uint8_t)bits;
    }
    if (i == text.length)
        return bytes - (uint8_t *)ret_bytes;
    rest = decode_rest(weir_span_of(text.data + i, text.length - i), digits, bytes);
    return rest < 0 ? rest : bytes - (uint8_t *)ret_bytes + rest;
}

/* ---- the codec ---- */

struct base64 {
    weir_msg_decoder_state decoder;
    uint32_t flags;
};

static ssize_t decode_into(weir_span in, uint32_t flags, weir_buf *out)
{
    return weir_base64_decode(in, flags, weir_buf_space(out));
}

static ssize_t encode_into(weir_span in, uint32_t flags, weir_buf *out)
{
    return (ssize_t)weir_base64_encode(in, flags, (char *)weir_buf_space(out));
}

/* Converts a buffer into a new one of at most `room` bytes. */
static int convert(weir_ctx *ctx, const weir_buf *in, size_t room,
                   ssize_t (*into)(weir_span in, uint32_t flags, weir_buf *out), weir_msg_list *out)
{
    const struct base64 *base64 = weir_ctx_state(ctx);
    weir_buf *made;
    ssize_t length = weir_buf_create(room, 0, &made);

    if (length < 0)
        return (int)length;
    length = into(weir_buf_span(in), base64->flags, made);
    if (length < 0) {
        weir_buf_release(made);
        return (int)length;
    }
    (void)weir_buf_advance(made, (size_t)length);
    return weir_msg_list_add(out, weir_buf_msg(made));
}

static int decode(weir_ctx *ctx, weir_msg *msg, weir_msg_list *out)
{
    weir_buf *in;
    int err = weir__contiguous_bytes(msg, &in);

    if (err < 0)
        return err;
    err = convert(ctx, in, weir_base64_decoded_max(weir_buf_readable(in)), decode_into, out);
    weir_buf_release(in);
    return err == WEIR_EMALFORMED ? weir_msg_decoder_fail(ctx, err, "invalid Base64") : err;
}

static int encode(weir_ctx *ctx, weir_msg *msg, weir_msg_list *out)
{
    const struct base64 *base64 = weir_ctx_state(ctx);
    weir_buf *in;
    int err = weir__contiguous_bytes(msg, &in);

    if (err < 0)
        return err;
    err = convert(ctx, in, weir_base64_encoded_length(weir_buf_readable(in), base64->flags),
                  encode_into, out);
    weir_buf_release(in);
    return err;
}

static int init(void *state, const void *flags)
{
    struct base64 *base64 = state;

    base64->flags = *(const uint32_t *)flags;
    if ((base64->flags & ~(WEIR_BASE64_URL | WEIR_BASE64_UNPADDED)) != 0)
        return weir__frames_reject("base64", "unknown flags");
    return 0;
}

static const weir_msg_codec codec = {
    .decoder = {.handler = {.name = "base64", .init = init, WEIR_MSG_CODEC_SLOTS(struct base64)},
                .accepts = weir__is_bytes,
                .decode = decode},
    .accepts = weir__is_bytes,
    .encode = encode,
};

int weir_base64_add(weir_pipeline *pipeline, uint32_t flags)
{
    return weir_pipeline_add_last(pipeline, &codec.decoder.handler, &flags);
}
