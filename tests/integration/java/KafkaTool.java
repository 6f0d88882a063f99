// What the tests ask of Kafka's own classes. Records come out one per line: partition or file, offset, timestamp,
// key, value, then header keys and values in turn; bytes are hex after "x", null is "-".
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.StringJoiner;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.internals.BuiltInPartitioner;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.record.RecordBatch;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.Utils;

public class KafkaTool {
    public static void main(String[] args) throws Exception {
        switch (args[0]) {
            case "dump" -> dump(List.of(args).subList(1, args.length));
            case "partition" -> partition(Integer.parseInt(args[1]));
            case "consume" -> consume(args[1], args[2], Integer.parseInt(args[3]), args[4]);
            case "produce" -> produce(args[1], args[2], Integer.parseInt(args[3]));
            case "load" -> load(args[1], args[2], Integer.parseInt(args[3]), Integer.parseInt(args[4]), args.length > 5 ? args[5] : "all");
            default -> throw new IllegalArgumentException(args[0]);
        }
    }

    static void dump(List<String> files) throws Exception {
        for (int number = 0; number < files.size(); number++) {
            ByteBuffer bytes = ByteBuffer.wrap(Files.readAllBytes(Path.of(files.get(number))));
            for (RecordBatch batch : MemoryRecords.readableRecords(bytes).batches()) {
                batch.ensureValid();
                for (Record record : batch) {
                    record.ensureValid();
                    print(number, record.offset(), record.timestamp(), array(record.key()), array(record.value()), record.headers());
                }
            }
        }
    }

    // Keys come as lines of hex; out come murmur2 and the partition.
    static void partition(int partitions) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            byte[] key = HexFormat.of().parseHex(line);
            System.out.println(Utils.murmur2(key) + " " + BuiltInPartitioner.partitionForKey(key, partitions));
        }
    }

    // Values come as lines of hex; they go to the partitions in turn.
    static void produce(String server, String topic, int partitions) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(Map.of("bootstrap.servers", server,
                "key.serializer", ByteArraySerializer.class, "value.serializer", ByteArraySerializer.class))) {
            int count = 0;
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                producer.send(new ProducerRecord<>(topic, count++ % partitions, null, HexFormat.of().parseHex(line)));
            }
        }
    }

    // Produces until there is something to read. Every other key is used once, the others again and again, so that the cleaner has work.
    // Prints partition, offset, key and value of each record that is acknowledged.
    static void load(String server, String topic, int partitions, int perSecond, String acks) throws Exception {
        Map<String, Object> settings = Map.of("bootstrap.servers", server, "linger.ms", 20, "batch.size", 4000, "acks", acks,
            "enable.idempotence", acks.equals("all"), "key.serializer", StringSerializer.class, "value.serializer", StringSerializer.class);
        String filler = "x".repeat(80);
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings)) {
            long begin = System.nanoTime();
            for (int n = 0; System.in.available() == 0; n++) {
                String key = n % 2 == 0 ? "once-" + n : "often-" + n % 199;
                String value = n + "-" + filler;
                producer.send(new ProducerRecord<>(topic, n / 2 % partitions, key, value), (sent, error) -> {
                    if (error == null) System.out.println(sent.partition() + " " + sent.offset() + " " + key + " " + value);
                });
                long ahead = n * 1_000_000_000L / perSecond - (System.nanoTime() - begin);
                if (ahead > 1_000_000) Thread.sleep(ahead / 1_000_000);
            }
        }
    }

    static void consume(String server, String topic, int partitions, String isolation) {
        Map<String, Object> settings = Map.of("bootstrap.servers", server, "isolation.level", isolation,
            "key.deserializer", ByteArrayDeserializer.class, "value.deserializer", ByteArrayDeserializer.class);
        List<TopicPartition> all = IntStream.range(0, partitions).mapToObj(p -> new TopicPartition(topic, p)).collect(Collectors.toList());
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings)) {
            consumer.assign(all);
            consumer.seekToBeginning(all);
            Map<TopicPartition, Long> ends = consumer.endOffsets(all);
            while (all.stream().anyMatch(p -> consumer.position(p) < ends.get(p))) {
                for (ConsumerRecord<byte[], byte[]> r : consumer.poll(Duration.ofMillis(200))) {
                    print(r.partition(), r.offset(), r.timestamp(), r.key(), r.value(), r.headers().toArray());
                }
            }
        }
    }

    static void print(int source, long offset, long timestamp, byte[] key, byte[] value, Header[] headers) {
        StringJoiner line = new StringJoiner(" ").add("" + source).add("" + offset).add("" + timestamp).add(hex(key)).add(hex(value));
        for (Header header : headers) {
            line.add(hex(header.key().getBytes(StandardCharsets.UTF_8))).add(hex(header.value()));
        }
        System.out.println(line);
    }

    static byte[] array(ByteBuffer buffer) {
        return buffer == null ? null : Utils.toArray(buffer);
    }

    static String hex(byte[] bytes) {
        return bytes == null ? "-" : "x" + HexFormat.of().formatHex(bytes);
    }
}
