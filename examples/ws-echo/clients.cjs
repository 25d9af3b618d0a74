// SPDX-License-Identifier: Apache-2.0
//
// clients.cjs URL [deflate]: asks an echo server for messages of all kinds, by the package `ws`.
// Then it prints "ready" and waits until the server closes, with 1001.
'use strict';

const assert = require('assert');
const { once } = require('events');
const WebSocket = require('ws');

const [url, deflate] = process.argv.slice(2);

async function echoes(socket, message) {
    socket.send(message);
    const [data, isBinary] = await once(socket, 'message');
    assert.strictEqual(isBinary, typeof message !== 'string');
    assert.ok(Buffer.from(message).equals(data), `${data.length} bytes differ`);
}

async function main() {
    const socket = new WebSocket(url, {
        perMessageDeflate: deflate === 'deflate' ? { threshold: 0 } : false,
        rejectUnauthorized: false,
    });

    await once(socket, 'open');
    assert.strictEqual(socket.extensions.startsWith('permessage-deflate'), deflate === 'deflate');
    for (const size of [0, 1, 125, 126, 65535, 65536, 1 << 20]) {
        await echoes(socket, 'x°'.repeat(size).slice(0, size));
        await echoes(socket, Buffer.alloc(size, 'bytes'));
    }
    socket.ping('still there?');
    assert.strictEqual(String((await once(socket, 'pong'))[0]), 'still there?');
    console.log('ready');
    const [code] = await once(socket, 'close');
    assert.strictEqual(code, 1001);
}

main();
