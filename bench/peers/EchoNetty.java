// SPDX-License-Identifier: Apache-2.0
//
// An echo server on Netty's NIO transport, as Netty's own example has it: one loop for the listener
// and the connections, pooled buffers, what was read is written and flushed at read-complete.
// Its argument is the file that its port is written to.

import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.PooledByteBufAllocator;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.nio.NioEventLoopGroup;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import java.io.FileOutputStream;
import java.io.OutputStream;
import java.net.InetSocketAddress;

final class EchoNetty {
    private static final class Echo extends ChannelInboundHandlerAdapter {
        @Override
        public void channelRead(ChannelHandlerContext ctx, Object msg) {
            ctx.write(msg, ctx.voidPromise());
        }

        @Override
        public void channelReadComplete(ChannelHandlerContext ctx) {
            ctx.flush();
        }

        @Override
        public void exceptionCaught(ChannelHandlerContext ctx, Throwable cause) {
            ctx.close();
        }
    }

    private static void announce(String file, int port) throws Exception {
        try (OutputStream out = new FileOutputStream(file)) {
            out.write(new byte[] {(byte) port, (byte) (port >> 8)});
        }
    }

    public static void main(String[] args) throws Exception {
        EventLoopGroup group = new NioEventLoopGroup(1);
        ServerBootstrap bootstrap = new ServerBootstrap()
            .group(group)
            .channel(NioServerSocketChannel.class)
            .option(ChannelOption.SO_BACKLOG, 4096)
            .childOption(ChannelOption.TCP_NODELAY, true)
            .childOption(ChannelOption.ALLOCATOR, PooledByteBufAllocator.DEFAULT)
            .childHandler(new ChannelInitializer<Channel>() {
                @Override
                protected void initChannel(Channel channel) {
                    channel.pipeline().addLast(new Echo());
                }
            });
        Channel listener = bootstrap.bind("127.0.0.1", 0).sync().channel();

        announce(args[0], ((InetSocketAddress) listener.localAddress()).getPort());
        listener.closeFuture().sync();
    }
}
