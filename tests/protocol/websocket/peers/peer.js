// SPDX-License-Identifier: Apache-2.0
//
// node peer.js TASK: the package ws of npm, as a client and as a server. TASK is described in
// drive.py.
'use strict';

const assert = require('assert');
const {spawn} = require('child_process');
const fs = require('fs');
const https = require('https');
const {once} = require('events');
const {WebSocket, WebSocketServer} = require('ws');

const task = JSON.parse(process.argv[2]);
const MIB = 1 << 20;
const prose = 'the quick brown fox jumps over the lazy dog, grüße 😀\n';

// --- client ---------------------------------------------------------------------------------------

async function open(url, options = {}) {
    const ws = new WebSocket(url, ['other', 'chat'], options);
    await once(ws, 'open');
    assert.strictEqual(ws.protocol, 'chat');
    return ws;
}

async function receive(ws) {
    const [data, isBinary] = await once(ws, 'message');
    return isBinary ? data : data.toString();
}

async function echo(ws, data, options) {
    ws.send(data, options);
    assert.deepStrictEqual(await receive(ws), data);
}

async function close(ws, code, reason) {
    ws.close(code, reason);
    const [received] = await once(ws, 'close');
    assert.strictEqual(received, code);
}

async function checkMessages(ws) {
    const binary = Buffer.alloc(MIB);
    for (let i = 0; i < MIB; i++)
        binary[i] = (i * i) >> 7;
    await echo(ws, 'hello');
    await echo(ws, '');
    await echo(ws, prose.repeat(2000));
    await echo(ws, binary);
    await echo(ws, prose.repeat(3), {compress: false});
    for (let i = 0; i < 20; i++)
        await echo(ws, prose.repeat(i));
}

// Control frames between the fragments, as RFC 6455 allows.
async function checkFragments(ws) {
    ws.send('one ', {fin: false});
    ws.ping('between');
    ws.send('two ', {fin: false});
    ws.send('three', {fin: true});
    const [[payload], answer] = await Promise.all([once(ws, 'pong'), collect(ws, 13)]);
    assert.deepStrictEqual([payload.toString(), answer], ['between', 'one two three']);
}

// A streaming server may answer in several messages of ws, which joins fragments by itself.
async function collect(ws, length) {
    let text = '';
    while (text.length < length)
        text += await receive(ws);
    return text;
}

async function checkPings(ws) {
    ws.ping('are you there');
    const [payload] = await once(ws, 'pong');
    assert.strictEqual(payload.toString(), 'are you there');
    ws.send('ping');
    const [[asked], answer] = await Promise.all([once(ws, 'ping'), receive(ws)]);
    assert.deepStrictEqual([asked.toString(), answer], ['?', 'pong']);
}

async function checkServer(url, path, deflate, options) {
    const ws = await open(url + path, {perMessageDeflate: deflate, ...options});
    const agreed = ws.extensions.startsWith('permessage-deflate');
    assert.strictEqual(agreed, deflate !== false && path !== '/plain', ws.extensions);
    await checkMessages(ws);
    await checkFragments(ws);
    await checkPings(ws);
    await close(ws, 4000, 'bye');
}

async function checkClosedByServer(url) {
    const ws = await open(url + '/echo');
    ws.send('close 4321 enough');
    const [code, reason] = await once(ws, 'close');
    assert.deepStrictEqual([code, reason.toString()], [4321, 'enough']);
}

async function checkRefusals(url) {
    const ws = new WebSocket(url + '/echo', {origin: 'http://evil.example'});
    const [error] = await once(ws, 'error');
    assert.match(error.message, /403/);
}

// --- server ---------------------------------------------------------------------------------------

function onConnection(ws) {
    ws.on('message', (data, isBinary) => {
        const command = !isBinary && /^close (\d+) (.*)$/.exec(data.toString());
        if (command)
            ws.close(Number(command[1]), command[2]);
        else
            ws.send(data, {binary: isBinary});
    });
}

async function run(command) {
    const child = spawn(command[0], command.slice(1), {stdio: ['ignore', 'pipe', 'inherit']});
    let said = '';
    child.stdout.on('data', (piece) => said += piece);
    const [status] = await once(child, 'close');
    assert.strictEqual(status, 0, command.join(' '));
    return said;
}

async function checkClients(scheme, server, clients, more) {
    const wss = new WebSocketServer({
        ...server, perMessageDeflate: {threshold: 0}, handleProtocols: () => 'chat',
    });
    wss.on('connection', onConnection);
    const listener = server.server || wss;
    if (listener.address() === null)
        await once(listener, 'listening');
    const url = `${scheme}://127.0.0.1:${listener.address().port}/`;
    const plain = 'open: protocol "chat", no deflate\n', deflate = 'open: protocol "chat", deflate\n';
    for (const client of clients) {
        assert.strictEqual(await run([...client, ...more, url]), plain.repeat(2));
        assert.strictEqual(await run([...client, ...more, '--deflate', url]), deflate.repeat(2));
    }
    wss.close();
}

async function checkTls() {
    const [cert, key] = [fs.readFileSync(task.cert), fs.readFileSync(task.key)];
    await checkServer(`wss://127.0.0.1:${task.tls}`, '/echo', {}, {ca: cert});
    const server = https.createServer({cert, key}).listen(0, '127.0.0.1');
    await once(server, 'listening');
    await checkClients('wss', {server}, task.clients.slice(0, 1), ['--ca', task.cert]);
    server.close();
}

async function main() {
    const first = `ws://127.0.0.1:${task.ports[0]}`;
    for (const port of task.ports) {
        const url = `ws://127.0.0.1:${port}`;
        await checkServer(url, '/echo', {threshold: 0});
        await checkServer(url, '/plain', {});
        await checkClosedByServer(url);
    }
    await checkServer(first, '/echo', false);
    await checkServer(first, '/small', {threshold: 0, clientMaxWindowBits: 10});
    await checkServer(first, '/stream', {threshold: 0});
    await checkRefusals(first);
    await checkClients('ws', {host: '127.0.0.1', port: 0}, task.clients, []);
    if (task.tls)
        await checkTls();
}

main().catch((error) => {
    console.error(error);
    process.exit(1);
});
