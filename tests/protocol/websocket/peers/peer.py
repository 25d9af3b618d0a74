# SPDX-License-Identifier: Apache-2.0
"""peer.py TASK: Python's websockets, as a client and as a server. TASK is described in drive.py."""
import asyncio
import contextlib
import json
import re
import ssl
import sys

from websockets.exceptions import ConnectionClosedError, InvalidStatusCode
from websockets.legacy.client import connect
from websockets.legacy.server import serve

TASK = json.loads(sys.argv[1])
PROSE = "the quick brown fox jumps over the lazy dog, grüße 😀\n"
MIB = 1 << 20
FOREVER = {"ping_interval": None, "max_size": 4 * MIB}


# --- client --------------------------------------------------------------------------------------


async def echo(ws, *parts):
    """Sends a message, in fragments if it has several parts."""
    await ws.send(parts[0] if len(parts) == 1 else list(parts))
    answer, empty = await ws.recv(), parts[0][:0]
    assert answer == empty.join(parts), f"{len(answer)} of {parts[0][:20]!r}"


async def check_server(url, compression, **options):
    async with connect(url, compression=compression, subprotocols=["other", "chat"], **FOREVER,
                       **options) as ws:
        assert ws.subprotocol == "chat"
        has_deflate = any("deflate" in one.name for one in ws.extensions)
        assert has_deflate == (compression is not None and "/plain" not in url), ws.extensions
        await echo(ws, "hello")
        await echo(ws, "")
        await echo(ws, PROSE * 1000)
        await echo(ws, bytes(i * i >> 7 & 255 for i in range(4096)) * 256)
        await echo(ws, "one ", "two ", "three")
        await echo(ws, b"one ", b"", b"three" * 10000)
        await asyncio.wait_for(await ws.ping(b"are you there"), 60)
        await ws.send("ping")
        assert await ws.recv() == "pong"
        await ws.close(4000, "bye")
        assert ws.close_code == 4000, ws.close_code


async def check_closed_by_server(url):
    async with connect(url, **FOREVER) as ws:
        await ws.send("close 4321 enough")
        try:
            await ws.recv()
            raise AssertionError("a message instead of a close")
        except ConnectionClosedError as error:
            assert (error.rcvd.code, error.rcvd.reason) == (4321, "enough"), error


async def check_refusals(url):
    try:
        async with connect(url, origin="http://evil.example"):
            raise AssertionError("another origin was accepted")
    except InvalidStatusCode as error:
        assert error.status_code == 403, error


# --- server --------------------------------------------------------------------------------------


async def serve_echo(ws, path=None):
    with contextlib.suppress(ConnectionClosedError):
        async for message in ws:
            command = isinstance(message, str) and re.fullmatch(r"close (\d+) (.*)", message)
            if command:
                await ws.close(int(command[1]), command[2])
            else:
                await ws.send(message)


async def run(*command):
    child = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    said, _ = await child.communicate()
    assert child.returncode == 0, command
    return said.decode()


async def check_clients(scheme, clients, *more, **options):
    async with serve(serve_echo, "127.0.0.1", 0, subprotocols=["chat"], **FOREVER,
                     **options) as server:
        url = f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        for client in clients:
            for option, agreed in ((), "no deflate"), (("--deflate",), "deflate"):
                said = await run(*client, *more, *option, url)
                assert said == f'open: protocol "chat", {agreed}\n' * 2, said


async def check_tls():
    trust = ssl.create_default_context(cafile=TASK["cert"])
    await check_server(f"wss://127.0.0.1:{TASK['tls']}/echo", "deflate", ssl=trust)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(TASK["cert"], TASK["key"])
    await check_clients("wss", TASK["clients"][:1], "--ca", TASK["cert"], ssl=context)


async def main():
    for port in TASK["ports"]:
        url = f"ws://127.0.0.1:{port}"
        await check_server(url + "/echo", "deflate")
        await check_server(url + "/plain", "deflate")
        await check_closed_by_server(url + "/echo")
    first = f"ws://127.0.0.1:{TASK['ports'][0]}"
    await check_server(first + "/echo", None)
    await check_server(first + "/small", "deflate")
    await check_refusals(first + "/echo")
    await check_clients("ws", TASK["clients"])
    if TASK["tls"]:
        await check_tls()


asyncio.run(main())
