/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The least that a decoder can be: a loop over flat memory. It knows that the next read lies behind
 * this one, so that a frame which is cut in two needs no copy.
 */
#include "codec/cases.h"

#define DECODED_MAX 16384

/* The length of the first frame, all of it, and where its `size` bytes are; 0 = it is not whole. */
typedef size_t find_fn(const uint8_t *bytes, size_t length, const uint8_t **ret_frame,
                       size_t *ret_size);

static find_fn *find;
static size_t fixed_size;
static const uint8_t *begun; /* a frame that is not whole */
static volatile int64_t frames;
static const uint8_t *volatile last_frame;

static size_t find_fixed(const uint8_t *bytes, size_t length, const uint8_t **ret_frame,
                         size_t *ret_size)
{
    *ret_frame = bytes;
    *ret_size = fixed_size;
    return length >= fixed_size ? fixed_size : 0;
}

static size_t find_line(const uint8_t *bytes, size_t length, const uint8_t **ret_frame,
                        size_t *ret_size)
{
    const uint8_t *end = memchr(bytes, '\n', length);
    size_t line = end != NULL ? (size_t)(end - bytes) : 0;

    *ret_frame = bytes;
    *ret_size = line > 0 && bytes[line - 1] == '\r' ? line - 1 : line;
    return end != NULL ? line + 1 : 0;
}

static size_t find_delimited(const uint8_t *bytes, size_t length, const uint8_t **ret_frame,
                             size_t *ret_size)
{
    for (size_t i = 0; i < length; i++)
        if (bytes[i] == ';' || bytes[i] == '\n') {
            *ret_frame = bytes;
            *ret_size = i;
            return i + 1;
        }
    return 0;
}

static size_t whole(const uint8_t *bytes, size_t length, size_t header, size_t size, size_t back,
                    const uint8_t **ret_frame, size_t *ret_size)
{
    *ret_frame = bytes + header;
    *ret_size = size;
    return length >= header + size + back ? header + size + back : 0;
}

static size_t find_by_length(const uint8_t *bytes, size_t length, const uint8_t **ret_frame,
                             size_t *ret_size)
{
    uint32_t size;

    if (length < sizeof(size))
        return 0;
    memcpy(&size, bytes, sizeof(size));
    return whole(bytes, length, 4, __builtin_bswap32(size), 0, ret_frame, ret_size);
}

static size_t find_by_varint(const uint8_t *bytes, size_t length, const uint8_t **ret_frame,
                             size_t *ret_size)
{
    size_t size = 0, i = 0;

    do {
        if (i == length)
            return 0;
        size |= (size_t)(bytes[i] & 0x7f) << 7 * i;
    } while (bytes[i++] >= 0x80);
    return whole(bytes, length, i, size, 0, ret_frame, ret_size);
}

static size_t find_netstring(const uint8_t *bytes, size_t length, const uint8_t **ret_frame,
                             size_t *ret_size)
{
    size_t size = 0, i = 0;

    for (; i < length && bytes[i] != ':'; i++)
        size = size * 10 + (bytes[i] - '0');
    return i < length ? whole(bytes, length, i + 1, size, 1, ret_frame, ret_size) : 0;
}

/* Up to the quote that ends it; only a backslash makes that one which does not. */
static size_t length_of_string(const uint8_t *bytes, size_t length)
{
    const uint8_t *quote = bytes;
    size_t backslashes;

    do {
        quote = memchr(quote + 1, '"', length - (size_t)(quote + 1 - bytes));
        if (quote == NULL)
            return length;
        for (backslashes = 0; quote[-1 - (ptrdiff_t)backslashes] == '\\';)
            backslashes++;
    } while (backslashes % 2 != 0);
    return (size_t)(quote - bytes);
}

static size_t find_json(const uint8_t *bytes, size_t length, const uint8_t **ret_frame,
                        size_t *ret_size)
{
    size_t depth = 0;

    *ret_frame = bytes;
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] == '"')
            i += length_of_string(bytes + i, length - i);
        else if (bytes[i] == '{' || bytes[i] == '[')
            depth++;
        else if ((bytes[i] == '}' || bytes[i] == ']') && --depth == 0)
            return *ret_size = i + 1;
    }
    return 0;
}

static uint8_t digits[256];
static uint8_t decoded[DECODED_MAX];

static size_t find_base64(const uint8_t *bytes, size_t length, const uint8_t **ret_frame,
                          size_t *ret_size)
{
    uint8_t *to = decoded;

    for (size_t i = 0; i + 4 <= length; i += 4, to += 3) {
        uint32_t bits = (uint32_t)digits[bytes[i]] << 18 | (uint32_t)digits[bytes[i + 1]] << 12 |
                        (uint32_t)digits[bytes[i + 2]] << 6 | digits[bytes[i + 3]];

        to[0] = (uint8_t)(bits >> 16);
        to[1] = (uint8_t)(bits >> 8);
        to[2] = (uint8_t)bits;
    }
    *ret_frame = decoded;
    *ret_size = (size_t)(to - decoded);
    return length;
}

static void decoder_open(enum kind kind, size_t size)
{
    static find_fn *const finders[] = {find_fixed,     find_line,      find_delimited,
                                       find_by_length, find_by_varint, find_netstring,
                                       find_json,      find_base64};
    const char *letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    bench_require(size <= DECODED_MAX, "so large a frame");
    for (size_t i = 0; i < 64; i++)
        digits[(uint8_t)letters[i]] = (uint8_t)i;
    find = finders[kind];
    fixed_size = size;
    begun = NULL;
    frames = 0;
}

static void decoder_close(void)
{
}

static void decode(const uint8_t *bytes, size_t length)
{
    const uint8_t *end = bytes + length, *frame;
    size_t one, size;

    for (bytes = begun != NULL ? begun : bytes; bytes < end; bytes += one) {
        one = find(bytes, (size_t)(end - bytes), &frame, &size);
        if (one == 0)
            break;
        frames = frames + 1;
        last_frame = frame;
    }
    begun = bytes < end ? bytes : NULL;
}

static int64_t frames_decoded(void)
{
    return frames;
}
