// SPDX-License-Identifier: Apache-2.0
//
// Netty's decoders in an EmbeddedChannel, with a handler behind them that releases what they have
// found. A read is a pooled direct buffer, as a channel's is; they are made before, and used again.
// It answers the lines of codec/cases.h; before the first round of a case it decodes for a second,
// so that its code is fast by then.

import io.netty.buffer.ByteBuf;
import io.netty.buffer.PooledByteBufAllocator;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.embedded.EmbeddedChannel;
import io.netty.handler.codec.DelimiterBasedFrameDecoder;
import io.netty.handler.codec.FixedLengthFrameDecoder;
import io.netty.handler.codec.LengthFieldBasedFrameDecoder;
import io.netty.handler.codec.LineBasedFrameDecoder;
import io.netty.handler.codec.base64.Base64Decoder;
import io.netty.handler.codec.json.JsonObjectDecoder;
import io.netty.handler.codec.protobuf.ProtobufVarint32FrameDecoder;
import io.netty.util.ReferenceCountUtil;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

final class CodecNetty {
    private static final int READ_SIZE = 65536;
    private static final int STREAM_SIZE = 16 * READ_SIZE;
    private static final long WARM_UP_NS = 1_000_000_000L;
    private static final Set<String> warm = new HashSet<>();

    private static final class Counter extends ChannelInboundHandlerAdapter {
        long frames;

        @Override
        public void channelRead(ChannelHandlerContext ctx, Object msg) {
            frames++;
            ReferenceCountUtil.release(msg);
        }
    }

    private static ChannelHandler decoder(String kind, int size) {
        switch (kind) {
            case "fixed":
                return new FixedLengthFrameDecoder(size);
            case "lines":
                return new LineBasedFrameDecoder(1 << 16);
            case "delimited":
                return new DelimiterBasedFrameDecoder(1 << 16, bytes(";"), bytes("\n"));
            case "length-field":
                return new LengthFieldBasedFrameDecoder(1 << 20, 0, 4, 0, 4);
            case "varint":
                return new ProtobufVarint32FrameDecoder();
            case "json":
                return new JsonObjectDecoder(1 << 20);
            case "base64":
                return new Base64Decoder();
            default:
                throw new IllegalArgumentException(kind);
        }
    }

    private static ByteBuf bytes(String text) {
        return Unpooled.copiedBuffer(text, StandardCharsets.US_ASCII);
    }

    private static void putFront(ByteBuf to, String kind, int size) {
        if (kind.equals("length-field")) {
            to.writeInt(size);
        } else if (kind.equals("varint")) {
            int rest = size;
            for (; rest >= 0x80; rest >>>= 7) {
                to.writeByte(rest | 0x80);
            }
            to.writeByte(rest);
        } else if (kind.equals("json")) {
            to.writeCharSequence("{\"a\":\"", StandardCharsets.US_ASCII);
        }
    }

    private static String back(String kind, int n) {
        switch (kind) {
            case "lines":
                return "\r\n";
            case "delimited":
                return n % 2 == 0 ? ";" : "\n";
            case "json":
                return "\"}";
            default:
                return "";
        }
    }

    private static ByteBuf frame(String kind, int size, int n) {
        ByteBuf frame = Unpooled.buffer();
        putFront(frame, kind, size);
        for (int i = 0; i < size; i++) {
            frame.writeByte('a' + i % 26);
        }
        frame.writeCharSequence(back(kind, n), StandardCharsets.US_ASCII);
        return frame;
    }

    private static List<ByteBuf> cut(ByteBuf stream, int readSize) {
        List<ByteBuf> reads = new ArrayList<>();
        while (stream.isReadable()) {
            int length = Math.min(readSize, stream.readableBytes());
            ByteBuf read = PooledByteBufAllocator.DEFAULT.directBuffer(length, length);
            reads.add(read.writeBytes(stream, length));
        }
        return reads;
    }

    private static void decode(EmbeddedChannel channel, List<ByteBuf> reads) {
        for (ByteBuf read : reads) {
            channel.pipeline().fireChannelRead(read.setIndex(0, read.capacity()).retain());
            channel.pipeline().fireChannelReadComplete();
        }
    }

    private static String run(String line, Map<String, String> settings) {
        String kind = settings.get("kind");
        int size = Integer.parseInt(settings.getOrDefault("size", "32"));
        int count = Integer.parseInt(settings.getOrDefault("count", "4"));
        int length = frame(kind, size, 0).readableBytes();
        ByteBuf stream = Unpooled.buffer(STREAM_SIZE + length);
        int frames = 0;
        for (; stream.writerIndex() < STREAM_SIZE; frames++) {
            stream.writeBytes(frame(kind, size, frames));
        }
        int streamLength = stream.readableBytes();
        List<ByteBuf> reads = cut(stream, kind.equals("base64") ? length : READ_SIZE);
        Counter counter = new Counter();
        EmbeddedChannel channel = new EmbeddedChannel(decoder(kind, size), counter);
        long began = System.nanoTime();

        do {
            decode(channel, reads);
        } while (!warm.contains(line) && System.nanoTime() - began < WARM_UP_NS);
        warm.add(line);
        counter.frames = 0;
        began = System.nanoTime();
        for (int i = 0; i < count; i++) {
            decode(channel, reads);
        }
        double ns = System.nanoTime() - began;
        if (counter.frames != (long) frames * count) {
            throw new IllegalStateException("not every frame was found");
        }
        channel.finishAndReleaseAll();
        reads.forEach(ByteBuf::release);
        return String.format("{\"ns\": %.3f, \"kib_ns\": %.3f}", ns / ((double) frames * count),
            1024 * ns / ((double) streamLength * count));
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
