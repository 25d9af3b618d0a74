// SPDX-License-Identifier: Apache-2.0
//
// A chain of Netty's handlers in an EmbeddedChannel: handlers of one class that pass every event on,
// between two that keep the message. It answers the lines of pipeline/cases.h; before the first
// round of a case it runs for a second, so that its code is compiled by then.

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelDuplexHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelPromise;
import io.netty.channel.embedded.EmbeddedChannel;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

final class PipelineNetty {
    private static final long WARM_UP_NS = 1_000_000_000L;
    private static final Set<String> warm = new HashSet<>();

    private static final class Pass extends ChannelDuplexHandler {
        @Override
        public void channelRead(ChannelHandlerContext ctx, Object msg) {
            ctx.fireChannelRead(msg);
        }

        @Override
        public void write(ChannelHandlerContext ctx, Object msg, ChannelPromise promise) {
            ctx.write(msg, promise);
        }
    }

    private static final class Keep extends ChannelDuplexHandler {
        ChannelHandlerContext context;
        Object kept;

        @Override
        public void handlerAdded(ChannelHandlerContext ctx) {
            context = ctx;
        }

        @Override
        public void channelRead(ChannelHandlerContext ctx, Object msg) {
            kept = msg;
        }

        @Override
        public void write(ChannelHandlerContext ctx, Object msg, ChannelPromise promise) {
            kept = msg;
        }
    }

    private static void pass(boolean reads, Keep first, Keep last, ByteBuf message, int count) {
        ChannelPromise promise = first.context.voidPromise();

        for (int i = 0; i < count; i++) {
            if (reads) {
                first.context.fireChannelRead(message);
            } else {
                last.context.write(message, promise);
            }
        }
    }

    private static double eventNs(String line, boolean reads, int handlers, int count) {
        Keep first = new Keep();
        Keep last = new Keep();
        ByteBuf message = Unpooled.buffer(64);
        EmbeddedChannel channel = new EmbeddedChannel(first);
        long began = System.nanoTime();

        for (int i = 0; i < handlers; i++) {
            channel.pipeline().addLast(new Pass());
        }
        channel.pipeline().addLast(last);
        do {
            pass(reads, first, last, message, count);
        } while (!warm.contains(line) && System.nanoTime() - began < WARM_UP_NS);
        began = System.nanoTime();
        pass(reads, first, last, message, count);
        double ns = (double) (System.nanoTime() - began) / count;
        if ((reads ? last : first).kept != message) {
            throw new IllegalStateException("the message did not arrive");
        }
        channel.finishAndReleaseAll();
        return ns;
    }

    private static String run(String line, Map<String, String> settings) {
        boolean reads = line.startsWith("read");
        int handlers = Integer.parseInt(settings.getOrDefault("handlers", "10"));
        int count = Integer.parseInt(settings.getOrDefault("count", "20000"));
        double one = eventNs(line, reads, 1, count);
        double all = eventNs(line, reads, handlers, count);

        warm.add(line);
        return handlers > 1
            ? String.format("{\"ns\": %.3f, \"each_ns\": %.3f}", all, (all - one) / (handlers - 1))
            : String.format("{\"ns\": %.3f}", all);
    }

    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));

        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            Map<String, String> settings = new HashMap<>();
            for (String word : line.split(" ")) {
                int at = word.indexOf('=');
                if (at > 0) {
                    settings.put(word.substring(0, at), word.substring(at + 1));
                }
            }
            System.out.println(run(line, settings));
        }
    }
}
