// SPDX-License-Identifier: Apache-2.0
// node.js FOLDER: a server that closes idle connections at once. Prints its port. Files of the
// folder, and /chunked, with trailers.
const fs = require('fs');
const http = require('http');

const server = http.createServer((request, response) => {
    if (request.url === '/chunked') {
        response.writeHead(200, {Trailer: 'X-Sum'});
        response.write('chunked ');
        response.write('by Node\n');
        response.addTrailers({'X-Sum': '2'});
        response.end();
        return;
    }
    fs.createReadStream(process.argv[2] + request.url).pipe(response);
});
server.keepAliveTimeout = 1;
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
