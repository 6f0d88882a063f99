// Kafka's generated message classes, through pipes: batches of questions come on stdin, batches of answers go to stdout.
// A batch is its int32 size and entries without a break; texts have an int32 length in front.
//   list                                       -> for each class: short name, lowest and highest version (int16 each)
//   decode CLASS VERSION bytes                 -> what the reader made of the bytes: see `answer`
//   make CLASS VERSION seed (bytes of an int64) -> the same of a message that is filled at random along Kafka's own schema;
//                                                seed 0 stands for a message that nothing was set in
import com.fasterxml.jackson.databind.JsonNode;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.File;
import java.io.IOException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.Field;
import org.apache.kafka.common.protocol.types.RawTaggedField;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.Struct;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.protocol.types.Type;

public class MessageTool {
    record MessageClass(Class<?> type, Method toJson) {
        Message create() throws ReflectiveOperationException {
            return (Message) type.getDeclaredConstructor().newInstance();
        }
    }

    static final String CONVERTER = "JsonConverter";
    static final Map<String, MessageClass> CLASSES = new TreeMap<>();

    public static void main(String[] args) throws Exception {
        findClasses();
        DataInputStream in = new DataInputStream(System.in);
        DataOutputStream out = new DataOutputStream(System.out);
        for (int first = in.read(); first >= 0; first = in.read()) {
            byte[] batch = new byte[first << 24 | in.readUnsignedByte() << 16 | in.readUnsignedShort()];
            in.readFully(batch);
            ByteArrayOutputStream answers = new ByteArrayOutputStream();
            ask(new DataInputStream(new ByteArrayInputStream(batch)), new DataOutputStream(answers));
            out.writeInt(answers.size());
            answers.writeTo(out);
            out.flush();
        }
    }

    // Every class that has a converter to JSON is one that was generated from a definition.
    static void findClasses() throws Exception {
        for (String path : System.getProperty("java.class.path").split(File.pathSeparator)) {
            if (!path.endsWith(".jar")) continue;
            try (JarFile jar = new JarFile(path)) {
                for (JarEntry entry : Collections.list(jar.entries())) {
                    String name = entry.getName().replace('/', '.').replace(".class", "");
                    if (!name.startsWith("org.apache.kafka.") || !name.endsWith(CONVERTER) || name.contains("$")) continue;
                    Class<?> type = Class.forName(name.substring(0, name.length() - CONVERTER.length()));
                    Method toJson = Class.forName(name).getMethod("write", type, short.class, boolean.class);
                    CLASSES.put(type.getSimpleName(), new MessageClass(type, toJson));
                }
            }
        }
    }

    static void ask(DataInputStream in, DataOutputStream out) throws Exception {
        while (in.available() > 0) {
            String command = in.readUTF();
            if (command.equals("list")) {
                list(out);
                continue;
            }
            MessageClass of = CLASSES.get(in.readUTF());
            short version = in.readShort();
            byte[] bytes = new byte[in.readInt()];
            in.readFully(bytes);
            Message message;
            ByteBuffer left = ByteBuffer.wrap(bytes);
            try {
                message = command.equals("make") ? make(of, version, left.getLong()) : read(of, version, left);
            } catch (Throwable refusal) {
                out.writeBoolean(false);
                write(out, refusal.toString().getBytes(StandardCharsets.UTF_8));
                continue;
            }
            answer(out, of, message, version, left.remaining());
        }
    }

    // True, the bytes that were left unread, the message encoded again (nothing where its writer refuses what its reader
    // let pass), and as JSON; or false and the exception.
    static void answer(DataOutputStream out, MessageClass of, Message message, short version, int remaining) throws Exception {
        byte[] encoded;
        try {
            encoded = encode(message, version);
        } catch (RuntimeException refusal) {
            encoded = new byte[0];
        }
        JsonNode json = (JsonNode) of.toJson.invoke(null, message, version, true);
        out.writeBoolean(true);
        out.writeInt(remaining);
        write(out, encoded);
        write(out, json.toString().getBytes(StandardCharsets.UTF_8));
    }

    static void list(DataOutputStream out) throws Exception {
        out.writeInt(CLASSES.size());
        for (Map.Entry<String, MessageClass> entry : CLASSES.entrySet()) {
            Message message = entry.getValue().create();
            write(out, entry.getKey().getBytes(StandardCharsets.UTF_8));
            out.writeShort(message.lowestSupportedVersion());
            out.writeShort(message.highestSupportedVersion());
        }
    }

    static Message read(MessageClass of, short version, ByteBuffer bytes) throws ReflectiveOperationException {
        Message message = of.create();
        message.read(new ByteBufferAccessor(bytes), version);
        return message;
    }

    static byte[] encode(Message message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBufferAccessor bytes = new ByteBufferAccessor(ByteBuffer.allocate(message.size(cache, version)));
        message.write(bytes, cache, version);
        return bytes.buffer().array();
    }

    static Message make(MessageClass of, short version, long seed) throws ReflectiveOperationException {
        Schema[] schemas = (Schema[]) of.type.getField("SCHEMAS").get(null);
        if (seed == 0) return of.create();
        Struct struct = struct(schemas[version], new Random(seed));
        ByteBuffer bytes = ByteBuffer.allocate(struct.sizeOf());
        struct.writeTo(bytes);
        bytes.flip();
        Message message = read(of, version, bytes);
        if (bytes.hasRemaining()) throw new IllegalStateException("the schema and the reader of this release differ");
        return message;
    }

    static Struct struct(Schema schema, Random random) throws ReflectiveOperationException {
        Struct made = new Struct(schema);
        for (BoundField field : schema.fields()) made.set(field, value(field.def.type, random));
        return made;
    }

    static Object value(Type type, Random random) throws ReflectiveOperationException {
        String name = type.toString();
        // Schemas say of all records that they may be null, also where the reader refuses it.
        if (!name.endsWith("RECORDS") && type.isNullable() && random.nextInt(4) == 0) return null;
        if (type instanceof Schema schema) return struct(schema, random);
        if (type instanceof TaggedFields fields) return tagged(fields, random);
        if (type.isArray()) {
            Object[] items = new Object[random.nextInt(4)];
            for (int i = 0; i < items.length; i++) items[i] = value(type.arrayElementType().get(), random);
            return items;
        }
        if (name.endsWith("STRING")) return text(random);
        if (name.endsWith("BYTES")) return ByteBuffer.wrap(bytes(random));
        if (name.endsWith("RECORDS")) return records(bytes(random));
        long bits = random.nextInt(4) == 0 ? random.nextInt(3) - 1 : random.nextLong();
        return switch (name) {
            case "BOOLEAN" -> random.nextBoolean();
            case "INT8" -> (byte) bits;
            case "INT16" -> (short) bits;
            case "UINT16" -> (int) bits & 0xffff;
            case "INT32" -> (int) bits;
            case "UINT32" -> bits & 0xffffffffL;
            case "INT64" -> bits;
            case "FLOAT64" -> Double.longBitsToDouble(bits);
            case "UUID" -> new Uuid(bits, random.nextInt(3) - 1);
            default -> throw new IllegalArgumentException(name);
        };
    }

    // The class has moved between releases.
    static Object records(byte[] bytes) throws ReflectiveOperationException {
        Class<?> type;
        try {
            type = Class.forName("org.apache.kafka.common.record.internal.MemoryRecords");
        } catch (ClassNotFoundException older) {
            type = Class.forName("org.apache.kafka.common.record.MemoryRecords");
        }
        return type.getMethod("readableRecords", ByteBuffer.class).invoke(null, ByteBuffer.wrap(bytes));
    }

    // Tagged fields that the version has, and some that it lacks.
    @SuppressWarnings("unchecked")
    static TreeMap<Integer, Object> tagged(TaggedFields type, Random random) throws ReflectiveOperationException {
        java.lang.reflect.Field known = TaggedFields.class.getDeclaredField("fields");
        known.setAccessible(true);
        TreeMap<Integer, Object> made = new TreeMap<>();
        for (Map.Entry<Integer, Field> field : ((Map<Integer, Field>) known.get(type)).entrySet()) {
            if (random.nextInt(3) > 0) made.put(field.getKey(), value(field.getValue().type, random));
        }
        for (int i = random.nextInt(12); i < 2; i++) {
            int tag = 1000 + random.nextInt(1 << 20);
            made.put(tag, new RawTaggedField(tag, bytes(random)));
        }
        return made;
    }

    static String text(Random random) {
        String letters = "aZ09-._ \0\u007fé߿Ж日\ud83d\ude00";
        int[] points = letters.codePoints().toArray();
        StringBuilder made = new StringBuilder();
        for (int i = random.nextInt(random.nextInt(8) == 0 ? 150 : 8); i > 0; i--) made.appendCodePoint(points[random.nextInt(points.length)]);
        return made.toString();
    }

    static byte[] bytes(Random random) {
        byte[] made = new byte[random.nextInt(random.nextInt(8) == 0 ? 300 : 12)];
        random.nextBytes(made);
        return made;
    }

    static void write(DataOutputStream out, byte[] bytes) throws IOException {
        out.writeInt(bytes.length);
        out.write(bytes);
    }
}
