// SPDX-License-Identifier: Apache-2.0
//
// server.cjs: a server by the package `ws`, which prints "listening on PORT". It sends text back,
// speaks the protocol "polite", and closes with 4000 when it hears "bye".
'use strict';

const { WebSocketServer } = require('ws');

const server = new WebSocketServer({
    host: '127.0.0.1',
    port: 0,
    perMessageDeflate: { threshold: 0 },
    handleProtocols: (offered) => (offered.has('polite') ? 'polite' : false),
});

server.on('connection', (socket) => {
    socket.send(`welcome ${socket.protocol || 'guest'} ${socket.extensions && 'deflate'}`.trim());
    socket.on('message', (data, isBinary) => {
        if (String(data) === 'bye')
            socket.close(4000, 'good night');
        else
            socket.send(data, { binary: isBinary });
    });
});
server.on('listening', () => console.log(`listening on ${server.address().port}`));
