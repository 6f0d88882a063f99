// Counts words with Kafka Streams, exactly once: `StreamsTool SERVER DIRECTORY COUNT PROTOCOL` reads lines from the topic
// "lines", writes each word's count to "counts", and ends when COUNT records were written there, in transactions that are
// committed. PROTOCOL is that of its group: classic or streams.
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.Stores;

public class StreamsTool {
    public static void main(String[] args) throws Exception {
        Properties config = new Properties();
        config.putAll(Map.of("application.id", "words", "bootstrap.servers", args[0], "state.dir", args[1], "group.protocol", args[3],
            "processing.guarantee", StreamsConfig.EXACTLY_ONCE_V2, "statestore.cache.max.bytes", 0, "commit.interval.ms", 100,
            "default.key.serde", Serdes.StringSerde.class, "default.value.serde", Serdes.StringSerde.class));
        config.put("consumer.auto.offset.reset", "earliest");
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream("lines")
            .flatMapValues(line -> Arrays.asList(line.toLowerCase(Locale.ROOT).split(" ")))
            .groupBy((key, word) -> word, Grouped.with(Serdes.String(), Serdes.String()))
            .count(Materialized.as(Stores.inMemoryKeyValueStore("counts")))
            .toStream()
            .mapValues(String::valueOf)
            .to("counts", Produced.with(Serdes.String(), Serdes.String()));
        try (KafkaStreams streams = new KafkaStreams(builder.build(), config)) {
            streams.setUncaughtExceptionHandler(problem -> {
                problem.printStackTrace();
                Runtime.getRuntime().halt(1);
                return null;
            });
            streams.start();
            committed(args[0], Integer.parseInt(args[2]));
        }
        System.exit(0);
    }

    static void committed(String server, int count) {
        Map<String, Object> config = Map.of("bootstrap.servers", server, "isolation.level", "read_committed");
        try (var consumer = new KafkaConsumer<>(config, new StringDeserializer(), new StringDeserializer())) {
            TopicPartition partition = new TopicPartition("counts", 0);
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            int found = 0;
            while (found < count) found += consumer.poll(Duration.ofMillis(50)).count();
        }
    }
}
