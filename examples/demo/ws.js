// SPDX-License-Identifier: Apache-2.0
//
// ws.js echo URL [CA [CERT KEY]]: messages come back.
// ws.js large URL: one of the largest size does, and a larger one is refused.
// ws.js wait URL: prints "open", and then the code that the server closes with.
"use strict";
const assert = require("assert");
const fs = require("fs");
const WebSocket = require("ws");

const MAX = 16 << 20;
const [what, url, ca, cert, key] = process.argv.slice(2);
const read = (path) => path && fs.readFileSync(path);

function open() {
    const options = {maxPayload: 2 * MAX, ca: read(ca), cert: read(cert), key: read(key)};
    const socket = new WebSocket(url, options); // offers permessage-deflate
    return new Promise((resolve, reject) => {
        socket.on("open", () => resolve(socket));
        socket.on("error", reject);
    });
}

function closed(socket) {
    return new Promise((resolve) => socket.on("close", resolve));
}

function echo(socket, message, options) {
    return new Promise((resolve) => {
        socket.once("message", (data, isBinary) => {
            assert.strictEqual(isBinary, typeof message !== "string");
            assert.ok(data.equals(Buffer.from(message)), `${data.length} bytes`);
            resolve();
        });
        socket.send(message, options);
    });
}

async function checkEcho() {
    const socket = await open();
    assert.strictEqual(socket.extensions.split(";")[0], "permessage-deflate");
    await echo(socket, "");
    await echo(socket, "Grüße ".repeat(20));
    await echo(socket, Buffer.alloc(70_001, "bytes"));
    await echo(socket, Buffer.alloc(70_001, "bytes"), {compress: false});
    const ponged = new Promise((resolve) => socket.once("pong", resolve));
    socket.ping("?");
    assert.strictEqual((await ponged).toString(), "?");
    socket.close(1000);
    assert.strictEqual(await closed(socket), 1000);
}

async function checkLarge() {
    const socket = await open();
    await echo(socket, Buffer.alloc(MAX, "much"));
    socket.close();
    const greedy = await open();
    greedy.on("error", () => {}); // it may be reset while it sends
    greedy.send(Buffer.alloc(MAX + 1));
    assert.ok([1009, 1006].includes(await closed(greedy)));
}

async function wait() {
    const socket = await open();
    console.log("open");
    console.log(await closed(socket));
}

({echo: checkEcho, large: checkLarge, wait})[what]().catch((error) => {
    console.error(`ws.js: ${url}: ${error.stack}`);
    process.exit(1);
});
