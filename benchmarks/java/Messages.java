import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

/**
 * Decodes and encodes message bodies with Kafka's generated classes. argv: seconds per file and direction, files named
 * key-kind-version. Prints "bytes nanoseconds" for decoding, then for encoding into an existing buffer.
 */
public final class Messages {
    private static Object kept;

    public static void main(String[] argv) throws Exception {
        for (int i = 1; i < argv.length; i++) {
            Path path = Path.of(argv[i]);
            byte[] data = Files.readAllBytes(path);
            String[] name = path.getFileName().toString().split("-");
            ApiMessageType type = ApiMessageType.fromApiKey(Short.parseShort(name[0]));
            boolean request = name[1].equals("request");
            short version = Short.parseShort(name[2]);
            ApiMessage message = decode(type, request, version, data);
            ByteBuffer buffer = ByteBuffer.allocate(data.length);
            encode(message, version, buffer);
            if (!ByteBuffer.wrap(data).equals(buffer.flip())) throw new IllegalStateException("other bytes: " + path);
            double seconds = Double.parseDouble(argv[0]);
            System.out.println(data.length + " " + best(seconds, () -> kept = decode(type, request, version, data)));
            System.out.println(data.length + " " + best(seconds, () -> encode(message, version, buffer)));
        }
    }

    private static long best(double seconds, Runnable work) {
        Runnable ten = () -> {
            for (int i = 0; i < 10; i++) work.run();
        };
        return Best.nanoseconds(seconds, ten) / 10;
    }

    private static ApiMessage decode(ApiMessageType type, boolean request, short version, byte[] data) {
        ApiMessage message = request ? type.newRequest() : type.newResponse();
        message.read(new ByteBufferAccessor(ByteBuffer.wrap(data)), version);
        return message;
    }

    private static void encode(ApiMessage message, short version, ByteBuffer buffer) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        buffer.clear();
        if (message.size(cache, version) != buffer.capacity()) throw new IllegalStateException("another size");
        message.write(new ByteBufferAccessor(buffer), cache, version);
    }
}
