// SPDX-License-Identifier: Apache-2.0
//
// node node_client.js PORT: Node's HTTP client against http-test-server.
'use strict';

const assert = require('assert');
const http = require('http');
const port = Number(process.argv[2]);

function fetch(options, body, agent) {
    return new Promise((resolve, reject) => {
        const request = http.request({host: '127.0.0.1', port, agent, ...options}, (response) => {
            const pieces = [];
            response.on('data', (piece) => pieces.push(piece));
            response.on('error', reject);
            response.on('end', () => resolve({
                status: response.statusCode,
                headers: response.headers,
                trailers: response.trailers,
                body: Buffer.concat(pieces),
                reused: request.reusedSocket,
            }));
        });
        request.on('error', reject);
        if (typeof body === 'function')
            body(request);
        else
            request.end(body);
    });
}

async function checkKeepAlive(agent) {
    for (let i = 0; i < 10; i++) {
        const {status, body, reused} = await fetch({path: '/hello'}, undefined, agent);
        assert.deepStrictEqual([status, body.toString(), reused], [200, 'Hello, World!\n', i > 0]);
    }
}

async function checkMany(agent) {
    const all = Array.from({length: 100}, (_, i) =>
        fetch({path: i % 2 ? '/slow?ms=5' : '/big/50000?chunked=1'}, undefined, agent));
    for (const [i, {status, body}] of (await Promise.all(all)).entries()) {
        assert.strictEqual(status, 200);
        assert.strictEqual(body.length, i % 2 ? 5 : 50000);
    }
}

async function checkUpload(agent) {
    const data = Buffer.alloc(3000000, 'abcdefghij');
    const piecewise = (request) => {
        let at = 0;
        const more = () => {
            while (at < data.length) {
                const piece = data.subarray(at, at += 50000);
                if (!request.write(piece))
                    return request.once('drain', more);
            }
            request.end();
        };
        more();
    };
    for (const headers of [{}, {'Content-Length': data.length}]) {
        const {body} = await fetch({method: 'POST', path: '/echo', headers}, piecewise, agent);
        assert(body.equals(data));
    }
}

async function checkContinue(agent) {
    const headers = {Expect: '100-continue', 'Content-Length': 5};
    const {body} = await fetch({method: 'POST', path: '/whole', headers}, (request) => {
        request.on('continue', () => request.end('hello'));
        request.flushHeaders();
    }, agent);
    assert.strictEqual(body.toString(), '5 3610a686\n');
}

async function checkTrailersAndHead(agent) {
    const {trailers} = await fetch({path: '/trailers'}, undefined, agent);
    assert.deepStrictEqual({...trailers}, {'x-checksum': 'abc'});
    const chunked = {method: 'POST', path: '/echo', headers: {'Transfer-Encoding': 'chunked'}};
    const echoed = await fetch(chunked, (request) => {
        request.write('content');
        request.addTrailers({'X-Sum': '42'});
        request.end();
    }, agent);
    assert.strictEqual(echoed.body.toString(), 'content');
    assert.deepStrictEqual({...echoed.trailers}, {'x-sum': '42'});
    const {headers, body} = await fetch({method: 'HEAD', path: '/text'}, undefined, agent);
    assert.deepStrictEqual([headers['content-length'], body.length], ['102400', 0]);
}

// Clients that leave in the middle do not disturb others.
async function checkAborts(agent) {
    for (let i = 0; i < 10; i++)
        await new Promise((resolve) => {
            const options = {host: '127.0.0.1', port, path: '/big/50000000'};
            const request = http.get(options, (response) => {
                response.once('data', () => {
                    request.destroy();
                    resolve();
                });
                response.on('error', () => {});
            });
            request.on('error', () => {});
        });
    await checkKeepAlive(agent);
}

async function main() {
    for (const check of [checkKeepAlive, checkMany, checkUpload, checkContinue,
                         checkTrailersAndHead, checkAborts]) {
        const agent = new http.Agent({keepAlive: true, maxSockets: 20});
        await check(agent);
        agent.destroy();
    }
}

main().catch((error) => {
    console.error(error);
    process.exit(1);
});
