// SPDX-License-Identifier: Apache-2.0
//
// node browser.js TASK: Chromium as a client. TASK is described in drive.py.
'use strict';

const assert = require('assert');
const {chromium} = require('playwright-core');

const task = JSON.parse(process.argv[2]);

// Runs in the page. Returns what it saw, as JSON.
async function talk([url, kibibytes]) {
    const ws = new WebSocket(url, ['other', 'chat']);
    const inbox = [];
    let wake = () => {};
    ws.binaryType = 'arraybuffer';
    ws.onmessage = ({data}) => {
        inbox.push(data);
        wake();
    };
    const receive = async () => {
        while (inbox.length === 0)
            await new Promise((resolve) => wake = resolve);
        return inbox.shift();
    };
    const closed = new Promise((resolve) => ws.onclose =
        ({code, reason, wasClean}) => resolve([code, reason, wasClean]));
    await new Promise((resolve, reject) => {
        ws.onopen = resolve;
        ws.onerror = () => reject(new Error(`cannot open ${url}`));
    });
    const seen = {protocol: ws.protocol, extensions: ws.extensions, echoes: []};
    const prose = 'grüße 😀, the quick brown fox\n';
    for (const text of ['hello', '', prose, prose.repeat(30 * kibibytes)]) {
        ws.send(text);
        seen.echoes.push(await receive() === text);
    }
    const bytes = new Uint8Array(kibibytes * 1024).map((_, i) => (i * i) >> 7);
    ws.send(bytes);
    const answer = new Uint8Array(await receive());
    seen.echoes.push(answer.length === bytes.length && answer.every((b, i) => b === bytes[i]));
    ws.send('ping'); // the browser answers the ping by itself
    seen.echoes.push(await receive() === 'pong');
    ws.send('close 4321 enough');
    seen.closed = await closed;
    return seen;
}

async function closeFromPage(url) {
    const ws = new WebSocket(url);
    const closed = new Promise((resolve) => ws.onclose = ({code, wasClean}) =>
        resolve([code, wasClean]));
    await new Promise((resolve) => ws.onopen = resolve);
    ws.close(4000, 'bye');
    return closed;
}

async function check(page, url, hasDeflate) {
    const seen = await page.evaluate(talk, [url, 1024]);
    assert.deepStrictEqual(seen.echoes, [true, true, true, true, true, true], url);
    assert.strictEqual(seen.protocol, 'chat');
    assert.strictEqual(seen.extensions.startsWith('permessage-deflate'), hasDeflate);
    assert.deepStrictEqual(seen.closed, [4321, 'enough', true]);
    assert.deepStrictEqual(await page.evaluate(closeFromPage, url), [4000, true]);
}

async function main() {
    const browser = await chromium.launch({
        executablePath: '/usr/bin/chromium',
        args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
    });
    const context = await browser.newContext({ignoreHTTPSErrors: true});
    const page = await context.newPage();
    const origin = `127.0.0.1:${task.ports[0]}`;
    await page.goto(`http://${origin}/`);
    for (const [path, hasDeflate] of [['/echo', true], ['/plain', false], ['/stream', true]])
        await check(page, `ws://${origin}${path}`, hasDeflate);
    if (task.tls) {
        await page.goto(`https://127.0.0.1:${task.tls}/`);
        await check(page, `wss://127.0.0.1:${task.tls}/echo`, true);
        const refused = await page.evaluate(talk, [`ws://${origin}/echo`, 1]).catch(String);
        assert.match(String(refused), /cannot open|SecurityError/); // another origin
    }
    await browser.close();
}

main().catch((error) => {
    console.error(error);
    process.exit(1);
});
