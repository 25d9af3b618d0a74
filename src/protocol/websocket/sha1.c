/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/websocket/sha1.h"

#include <string.h>

#define BLOCK 64
#define LENGTH_AT 56 /* of a block that ends the text */

struct round {
    uint32_t constant;
    uint32_t (*mix)(uint32_t b, uint32_t c, uint32_t d);
};

static uint32_t rotate(uint32_t word, unsigned bits)
{
    return word << bits | word >> (32 - bits);
}

static uint32_t choose(uint32_t b, uint32_t c, uint32_t d)
{
    return (b & c) | (~b & d);
}

static uint32_t parity(uint32_t b, uint32_t c, uint32_t d)
{
    return b ^ c ^ d;
}

static uint32_t majority(uint32_t b, uint32_t c, uint32_t d)
{
    return (b & c) | (b & d) | (c & d);
}

static void put_u32(uint8_t *to, uint32_t word)
{
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(word >> (24 - 8 * i));
}

static uint32_t get_u32(const uint8_t *from)
{
    return (uint32_t)from[0] << 24 | (uint32_t)from[1] << 16 | (uint32_t)from[2] << 8 | from[3];
}

static void add_block(uint32_t state[5], const uint8_t *block)
{
    static const struct round rounds[] = {
        {0x5a827999, choose}, {0x6ed9eba1, parity}, {0x8f1bbcdc, majority}, {0xca62c1d6, parity}};
    uint32_t words[80], a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];

    for (size_t i = 0; i < 16; i++)
        words[i] = get_u32(block + 4 * i);
    for (size_t i = 16; i < 80; i++)
        words[i] = rotate(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
    for (size_t i = 0; i < 80; i++) {
        const struct round *round = &rounds[i / 20];
        uint32_t next = rotate(a, 5) + round->mix(b, c, d) + e + round->constant + words[i];

        e = d;
        d = c;
        c = rotate(b, 30);
        b = a;
        a = next;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
}

void weir__sha1(weir_span text, uint8_t ret_hash[WEIR__SHA1_LENGTH])
{
    uint32_t state[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    uint8_t last[BLOCK] = {0};
    uint64_t bits = (uint64_t)text.length * 8;

    for (; text.length >= BLOCK; text = weir_span_of(text.data + BLOCK, text.length - BLOCK))
        add_block(state, text.data);
    if (text.length > 0)
        memcpy(last, text.data, text.length);
    last[text.length] = 0x80;
    if (text.length >= LENGTH_AT) {
        add_block(state, last);
        memset(last, 0, sizeof(last));
    }
    put_u32(last + LENGTH_AT, (uint32_t)(bits >> 32));
    put_u32(last + LENGTH_AT + 4, (uint32_t)bits);
    add_block(state, last);
    for (size_t i = 0; i < 5; i++)
        put_u32(ret_hash + 4 * i, state[i]);
}
