// SPDX-License-Identifier: Apache-2.0
//
// clients.cjs FIRST SECOND: guests by the package `ws` at two servers, perhaps the same, that
// share their rooms. Then it prints "ready" and waits until the second server closes, with 1001.
'use strict';

const assert = require('assert');
const { once } = require('events');
const WebSocket = require('ws');

const [first, second] = process.argv.slice(2);
const insecure = { rejectUnauthorized: false };

// The next lines that a guest receives are these.
async function hears(guest, ...lines) {
    for (const line of lines) {
        while (guest.heard.length === 0)
            await once(guest, 'message');
        assert.strictEqual(guest.heard.shift(), line);
    }
}

async function enter(url, name, room) {
    const guest = new WebSocket(`${url}/rooms/${room}?name=${name}`, insecure);

    guest.heard = [];
    guest.on('message', (data) => guest.heard.push(String(data)));
    await hears(guest, `* ${decodeURIComponent(name)} has come`);
    return guest;
}

async function refused(url, path) {
    const [, response] = await once(new WebSocket(url + path, insecure), 'unexpected-response');

    assert.strictEqual(response.statusCode, 400);
}

async function closesWith(guest, message, code) {
    guest.send(message);
    assert.strictEqual((await once(guest, 'close'))[0], code);
}

async function main() {
    const ann = await enter(first, 'ann', 'kitchen');
    const bob = await enter(second, 'b%C3%B6b', 'kitchen');
    const eve = await enter(second, 'eve', 'garden');

    await hears(ann, '* böb has come');
    ann.send('hello');
    await hears(bob, 'ann: hello');
    await hears(ann, 'ann: hello');
    bob.send('hello, %s °');
    await hears(ann, 'böb: hello, %s °');
    eve.send('is anybody here?');
    await hears(eve, 'eve: is anybody here?');
    await closesWith(await enter(first, 'flo', 'cellar'), 'x'.repeat(1001), 1009);
    await closesWith(await enter(first, 'flo', 'attic'), Buffer.from('bytes'), 1003);
    await refused(first, '/rooms/kitchen');
    await refused(first, '/rooms/kitchen?name=%ff');
    await refused(first, `/rooms/kitchen?name=${'x'.repeat(65)}`);
    ann.close(3001, 'good night');
    assert.strictEqual((await once(ann, 'close'))[0], 3001);
    await hears(bob, 'böb: hello, %s °', '* ann has gone');
    console.log('ready');
    assert.strictEqual((await once(eve, 'close'))[0], 1001);
    assert.strictEqual(bob.heard.length, 0);
}

main();
