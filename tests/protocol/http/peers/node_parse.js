// SPDX-License-Identifier: Apache-2.0
//
// node --no-deprecation node_parse.js requests|responses FILE: what Node's parser makes of each
// stream of FILE (mutants.py), as one line of JSON: see differential.py. The stream is parsed byte
// by byte, which tells where a message ends. The connection ends behind it.
'use strict';

const fs = require('fs');
const {HTTPParser, methods, allMethods} = process.binding('http_parser');

// Some versions have no names for the methods of RTSP, which llhttp numbers before QUERY.
const QUERY = 46;
const nameOf = (method) => allMethods ? allMethods[method]
    : method === QUERY ? 'QUERY' : methods[method] || `RTSP ${method}`;
const isResponse = process.argv[2] === 'responses';
const hex = (text) => Buffer.from(text, 'latin1').toString('hex');

function parse(stream) {
    const parser = new HTTPParser();
    const messages = [];
    let fields = [], position = 0, message = null, target = '';

    parser.initialize(isResponse ? HTTPParser.RESPONSE : HTTPParser.REQUEST, {});
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
            method: hex(isResponse ? String(status) : nameOf(method)),
            target: hex(isResponse ? '' : url === undefined || url === null ? target : url),
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
        // 1: no content, whatever the fields say (RFC 9112 6.3). llhttp 6 of Node 18 leaves that to
        // its caller, as for responses to HEAD; later ones know it.
        return isResponse && (status === 204 || status === 304) ? 1 : 0;
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
        const result = parser.execute(stream.subarray(position, ++position));
        if (result instanceof Error)
            error = result.code + ': ' + result.reason;
    }
    if (!error && !isTunnel() && isResponse) {
        const result = parser.finish();
        if (result instanceof Error)
            error = result.code + ': ' + result.reason;
    }
    return {messages, error};
}

const file = fs.readFileSync(process.argv[3]);
const lines = [];
for (let at = 0; at < file.length;) {
    const length = file.readUInt32LE(at);
    lines.push(JSON.stringify(parse(file.subarray(at + 4, at + 4 + length))));
    at += 4 + length;
}
fs.writeSync(1, lines.join('\n') + '\n');
