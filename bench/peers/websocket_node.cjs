// SPDX-License-Identifier: Apache-2.0
//
// A WebSocket echo by the package `ws`: one process, its defaults, permessage-deflate for clients
// that offer it. Its argument is the file that its port is written to.
'use strict';

const fs = require('fs');
const { WebSocketServer } = require('ws');

const server = new WebSocketServer({
    host: '127.0.0.1',
    port: 0,
    backlog: 4096,
    perMessageDeflate: true,
    clientTracking: false,
});

server.on('connection', (socket) => {
    socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary }));
    socket.on('error', () => socket.terminate());
});

server.on('listening', () => {
    const { port } = server.address();

    fs.writeFileSync(process.argv[2], Buffer.from([port & 255, port >> 8]));
});
