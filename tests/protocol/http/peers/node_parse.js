// SPDX-License-Identifier: Apache-2.0
//
// node --no-deprecation node_parse.js FILE: what the parser of Node's HTTP server makes of each
// stream of FILE (mutants.py), as one line of JSON: see differential.py. The stream is parsed byte
// by byte, which tells where a message ends, and whole, which must give the same messages.
'use strict';

const fs = require('fs');
const {HTTPParser, methods, allMethods} = process.binding('http_parser');

const names = allMethods || methods;
const hex = (text) => Buffer.from(text, 'latin1').toString('hex');

function parse(stream, step) {
    const parser = new HTTPParser();
    const messages = [];
    let fields = [], position = 0, message = null, target = '';

    parser.initialize(HTTPParser.REQUEST, {});
    parser[HTTPParser.kOnMessageBegin | 0] = () => {
        message = null;
        fields = [];
        target = '';
    };
    parser[HTTPParser.kOnHeaders | 0] = (more, url) => { // a flood of fields, or trailers
        fields = fields.concat(more);
        target += message ? '' : url;
    };
    parser[HTTPParser.kOnHeadersComplete | 0] =
        (major, minor, more, method, url, status, reason, upgrade, keep) => {
        message = {
            method: hex(names[method]),
            target: hex(url === undefined || url === null ? target : url),
            version: major + '.' + minor,
            fields: (more ? fields.concat(more) : fields).map(hex),
            body: '',
            trailers: [],
            end: null,
            keep: Boolean(keep),
            tunnel: Boolean(upgrade), // Node stops here and asks the application
        };
        messages.push(message);
        fields = [];
        return 0;
    };
    parser[HTTPParser.kOnBody | 0] = (bytes) => {
        message.body += bytes.toString('hex');
    };
    parser[HTTPParser.kOnMessageComplete | 0] = () => {
        message.trailers = fields.map(hex);
        message.end = position;
        fields = [];
    };

    let error = null;
    const isTunnel = () => message && message.tunnel && message.end !== null;
    while (position < stream.length && !error && !isTunnel()) {
        const from = position;
        position = Math.min(from + step, stream.length);
        const result = parser.execute(stream.subarray(from, position));
        if (result instanceof Error)
            error = result.code + ': ' + result.reason;
    }
    return {messages, error};
}

function same(one, other) {
    const plain = (result) => JSON.stringify(
        {...result, messages: result.messages.map((m) => ({...m, end: m.end !== null}))});
    return plain(one) === plain(other);
}

const file = fs.readFileSync(process.argv[2]);
const lines = [];
for (let at = 0; at < file.length;) {
    const length = file.readUInt32LE(at);
    const stream = file.subarray(at + 4, at + 4 + length);
    const result = parse(stream, 1);
    result.split = !same(result, parse(stream, stream.length));
    lines.push(JSON.stringify(result));
    at += 4 + length;
}
fs.writeSync(1, lines.join('\n') + '\n');
