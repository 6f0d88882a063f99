// Uses a broker through the newest clients of Apache Kafka: `ClientTool SERVER` prints the name of each part when it has
// passed, and ends with status 1 at the first that has not. The topic "ours" has the records that `written` describes, from
// another client; "java-codecs" gets the same from here.
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.function.BooleanSupplier;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.acl.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.SecurityDisabledException;
import org.apache.kafka.common.quota.*;
import org.apache.kafka.common.resource.*;
import org.apache.kafka.common.serialization.*;

public class ClientTool {
    static final long SOON = 60_000;
    static final long FIRST_TIME = 1_700_000_000_000L;
    static final int PER_CODEC = 20;
    static final List<String> CODECS = List.of("none", "gzip", "snappy", "lz4", "zstd");
    static String server;

    interface Part { void run() throws Exception; }

    public static void main(String[] args) throws Exception {
        server = args[0];
        part("admin", ClientTool::admin);
        part("codecs", ClientTool::codecs);
        part("seek by timestamp", ClientTool::seek);
        part("large messages", ClientTool::large);
        part("group", () -> group("classic"));
        part("group of KIP-848", () -> group("consumer"));
        part("static members", ClientTool::staticMembers);
        part("transactions", ClientTool::transactions);
        part("exactly once", ClientTool::exactlyOnce);
        part("deletion", ClientTool::deletion);
        System.exit(0);
    }

    static void part(String name, Part part) {
        try {
            part.run();
        } catch (Throwable problem) {
            problem.printStackTrace();
            System.exit(1);
        }
        System.out.println(name);
    }

    static void equal(Object found, Object expected) {
        if (!found.equals(expected)) throw new AssertionError("found " + found + ", expected " + expected);
    }

    static void until(BooleanSupplier holds) {
        long end = System.currentTimeMillis() + SOON;
        while (!holds.getAsBoolean()) if (System.currentTimeMillis() > end) throw new AssertionError("that does not come about");
    }

    static List<String> written(String codec) {
        List<String> found = new ArrayList<>();
        for (int n = 0; n < PER_CODEC; n++) found.add("k" + n + " " + codec + " " + n + " codec " + codec + " " + (FIRST_TIME + n));
        return found;
    }

    static List<String> all() {
        return CODECS.stream().flatMap(codec -> written(codec).stream()).toList();
    }

    static KafkaProducer<byte[], byte[]> producer(Object... options) {
        Map<String, Object> config = config(options);
        config.put("bootstrap.servers", server);
        return new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer());
    }

    static KafkaConsumer<String, byte[]> consumer(Object... options) {
        Map<String, Object> config = config(options);
        config.putAll(Map.of("bootstrap.servers", server, "auto.offset.reset", "earliest", "enable.auto.commit", false));
        return new KafkaConsumer<>(config, new StringDeserializer(), new ByteArrayDeserializer());
    }

    static Map<String, Object> config(Object... options) {
        Map<String, Object> config = new HashMap<>();
        for (int i = 0; i < options.length; i += 2) config.put((String) options[i], options[i + 1]);
        return config;
    }

    static byte[] bytes(Object value) {
        return value.toString().getBytes(StandardCharsets.UTF_8);
    }

    static List<ConsumerRecord<String, byte[]>> read(String topic, int count, Object... options) {
        try (var consumer = consumer(options)) {
            consumer.assign(List.of(new TopicPartition(topic, 0)));
            consumer.seekToBeginning(consumer.assignment());
            List<ConsumerRecord<String, byte[]>> found = new ArrayList<>();
            until(() -> {
                consumer.poll(Duration.ofMillis(50)).forEach(found::add);
                return found.size() >= count;
            });
            return found;
        }
    }

    static List<String> values(String topic, int count, Object... options) {
        return read(topic, count, options).stream().map(record -> new String(record.value())).toList();
    }

    static void admin() throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", server))) {
            List<NewTopic> topics = new ArrayList<>();
            Map.of("codecs", 1, "large", 1, "classic", 4, "consumer", 4, "static", 3, "transactions", 1, "copies", 1)
                .forEach((name, count) -> topics.add(new NewTopic("java-" + name, count, (short) 1).configs(Map.of("max.message.bytes", "8388608"))));
            admin.createTopics(topics).all().get();
            admin.createPartitions(Map.of("java-static", NewPartitions.increaseTo(4))).all().get();
            equal(admin.describeTopics(List.of("java-static")).allTopicNames().get().get("java-static").partitions().size(), 4);
            ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, "java-large");
            admin.incrementalAlterConfigs(Map.of(topic, List.of(new AlterConfigOp(new ConfigEntry("retention.ms", "60000"), AlterConfigOp.OpType.SET)))).all().get();
            Config described = admin.describeConfigs(List.of(topic)).all().get().get(topic);
            equal(List.of(described.get("retention.ms").value(), described.get("max.message.bytes").value(), described.get("cleanup.policy").source()),
                List.of("60000", "8388608", ConfigEntry.ConfigSource.DEFAULT_CONFIG));
            equal(admin.describeCluster().nodes().get().size(), 1);
            int node = admin.describeCluster().controller().get().id();
            equal(admin.describeLogDirs(List.of(node)).allDescriptions().get().get(node).size(), 1);
            equal(admin.describeMetadataQuorum().quorumInfo().get().leaderId(), node);
            equal(admin.describeFeatures().featureMetadata().get().finalizedFeatures().containsKey("metadata.version"), true);
            admin.alterUserScramCredentials(List.of(new UserScramCredentialUpsertion("java", new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096), "secret"))).all().get();
            equal(admin.describeUserScramCredentials(List.of("java")).all().get().get("java").credentialInfos().get(0).iterations(), 4096);
            ClientQuotaEntity entity = new ClientQuotaEntity(Map.of(ClientQuotaEntity.CLIENT_ID, "java"));
            admin.alterClientQuotas(List.of(new ClientQuotaAlteration(entity, List.of(new ClientQuotaAlteration.Op("producer_byte_rate", 1e6))))).all().get();
            equal(admin.describeClientQuotas(ClientQuotaFilter.all()).entities().get(), Map.of(entity, Map.of("producer_byte_rate", 1e6)));
            AclBinding acl = new AclBinding(new ResourcePattern(ResourceType.TOPIC, "java", PatternType.LITERAL),
                new AccessControlEntry("User:a", "*", AclOperation.READ, AclPermissionType.ALLOW));
            try {
                admin.createAcls(List.of(acl)).all().get();
                throw new AssertionError("there is no authorizer");
            } catch (ExecutionException refused) {
                equal(refused.getCause().getClass(), SecurityDisabledException.class);
            }
        }
    }

    static void codecs() throws Exception {
        for (String codec : CODECS) {
            try (var producer = producer("compression.type", codec, "linger.ms", 50)) {
                for (int n = 0; n < PER_CODEC; n++) {
                    var record = new ProducerRecord<>("java-codecs", 0, FIRST_TIME + n, bytes("k" + n), bytes(codec + " " + n));
                    record.headers().add("codec", bytes(codec));
                    producer.send(record);
                }
            }
        }
        for (String topic : List.of("ours", "java-codecs")) {
            List<String> found = new ArrayList<>();
            for (var record : read(topic, all().size())) {
                equal(record.offset(), (long) found.size());
                var header = record.headers().iterator().next();
                found.add(record.key() + " " + new String(record.value()) + " " + header.key() + " " + new String(header.value()) + " " + record.timestamp());
            }
            equal(found, all());
        }
    }

    static void seek() throws Exception {
        TopicPartition partition = new TopicPartition("java-codecs", 0);
        try (var consumer = consumer(); Admin admin = Admin.create(Map.of("bootstrap.servers", server))) {
            consumer.assign(List.of(partition));
            consumer.seek(partition, consumer.offsetsForTimes(Map.of(partition, FIRST_TIME + 7)).get(partition).offset());
            List<ConsumerRecord<String, byte[]>> found = new ArrayList<>();
            until(() -> { consumer.poll(Duration.ofMillis(50)).forEach(found::add); return !found.isEmpty(); });
            equal(found.get(0).offset(), 7L);
            equal(consumer.endOffsets(List.of(partition)), Map.of(partition, (long) all().size()));
            equal(admin.listOffsets(Map.of(partition, OffsetSpec.maxTimestamp())).partitionResult(partition).get().offset(), (long) PER_CODEC - 1);
        }
    }

    static void large() throws Exception {
        List<byte[]> messages = new ArrayList<>();
        for (int n = 0; n < 3; n++) {
            byte[] message = new byte[5_000_000 + n];
            new Random(n).nextBytes(message);
            messages.add(message);
        }
        try (var producer = producer("max.request.size", 8 << 20)) {
            for (byte[] message : messages) producer.send(new ProducerRecord<>("java-large", message)).get();
        }
        var found = read("java-large", 3);
        for (int n = 0; n < 3; n++) equal(Arrays.equals(found.get(n).value(), messages.get(n)), true);
    }

    // A member of a group, which counts what it reads. It does what others of its thread let it do.
    static class Member {
        final KafkaConsumer<String, byte[]> consumer;
        int count;

        Member(String topic, Object... options) {
            consumer = consumer(options);
            consumer.subscribe(List.of(topic));
        }

        int owned() { return consumer.assignment().size(); }

        void poll() {
            count += consumer.poll(Duration.ofMillis(20)).count();
            consumer.commitAsync();
        }
    }

    static void group(String protocol) throws Exception {
        String topic = "java-" + protocol, group = "java-" + protocol;
        Object[] options = {"group.id", group, "group.protocol", protocol};
        if (protocol.equals("classic")) options = new Object[] {"group.id", group, "group.protocol", protocol, "heartbeat.interval.ms", 100};
        try (var producer = producer(); Admin admin = Admin.create(Map.of("bootstrap.servers", server))) {
            Part write = () -> {
                for (int n = 0; n < 40; n++) producer.send(new ProducerRecord<>(topic, n % 4, null, bytes(n)));
                producer.flush();
            };
            write.run();
            Member first = new Member(topic, options);
            until(() -> { first.poll(); return first.owned() == 4 && first.count == 40; });
            Member second = new Member(topic, options);
            until(() -> { first.poll(); second.poll(); return first.owned() == 2 && second.owned() == 2; });
            write.run();
            until(() -> { first.poll(); second.poll(); return first.count == 60 && second.count == 20; });
            var described = admin.describeConsumerGroups(List.of(group)).all().get().get(group);
            equal(List.of(described.groupState(), described.members().size(), described.type().toString()),
                List.of(GroupState.STABLE, 2, protocol.equals("classic") ? "Classic" : "Consumer"));
            first.consumer.commitSync();
            first.consumer.close();
            until(() -> { second.poll(); return second.owned() == 4; });
            write.run();
            until(() -> { second.poll(); return second.count == 60; });
            second.consumer.commitSync();
            second.consumer.close();
            var committed = admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get();
            for (int n = 0; n < 4; n++) equal(committed.get(new TopicPartition(topic, n)).offset(), 30L);
            equal(admin.describeConsumerGroups(List.of(group)).all().get().get(group).groupState(), GroupState.EMPTY);
        }
    }

    static void staticMembers() throws Exception {
        Object[] options = {"group.id", "java-static", "group.instance.id", "one", "heartbeat.interval.ms", 100};
        Member member = new Member("java-static", options);
        until(() -> { member.poll(); return member.owned() == 4; });
        int generation = member.consumer.groupMetadata().generationId();
        member.consumer.close();
        Member again = new Member("java-static", options);
        until(() -> { again.poll(); return again.owned() == 4; });
        equal(again.consumer.groupMetadata().generationId(), generation);
        again.consumer.close();
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", server))) {
            var options2 = new RemoveMembersFromConsumerGroupOptions(Set.of(new MemberToRemove("one")));
            admin.removeMembersFromConsumerGroup("java-static", options2).all().get();
            equal(admin.describeConsumerGroups(List.of("java-static")).all().get().get("java-static").groupState(), GroupState.EMPTY);
        }
    }

    static void transactions() throws Exception {
        try (var producer = producer("transactional.id", "java"); Admin admin = Admin.create(Map.of("bootstrap.servers", server))) {
            producer.initTransactions();
            for (int n = 0; n < 3; n++) {
                producer.beginTransaction();
                for (int i = 0; i < 3; i++) producer.send(new ProducerRecord<>("java-transactions", bytes(n))).get();
                if (n == 1) producer.abortTransaction();
                else producer.commitTransaction();
            }
            equal(admin.describeTransactions(List.of("java")).description("java").get().state(), TransactionState.COMPLETE_COMMIT);
            equal(admin.describeProducers(List.of(new TopicPartition("java-transactions", 0))).all().get().values().iterator().next().activeProducers().size(), 1);
            producer.beginTransaction();  // a client that comes with the same name ends this
            producer.send(new ProducerRecord<>("java-transactions", bytes("open"))).get();
            try (var other = producer("transactional.id", "java")) {
                other.initTransactions();
                other.beginTransaction();
                other.send(new ProducerRecord<>("java-transactions", bytes("last")));
                other.commitTransaction();
            }
            try {
                producer.commitTransaction();
                throw new AssertionError("another producer has taken its place");
            } catch (KafkaException fenced) {
                equal(fenced.getClass().getSimpleName().matches("ProducerFencedException|InvalidProducerEpochException"), true);
            }
        }
        Object[] committed = {"isolation.level", "read_committed"};
        equal(values("java-transactions", 7, committed), List.of("0", "0", "0", "2", "2", "2", "last"));
        equal(values("java-transactions", 11), List.of("0", "0", "0", "1", "1", "1", "2", "2", "2", "open", "last"));
    }

    // Copies with the offsets up to which a member of a group has read; the first try is aborted, and read again.
    static void exactlyOnce() throws Exception {
        TopicPartition source = new TopicPartition("java-codecs", 0);
        int count = all().size();
        try (var producer = producer("transactional.id", "java-copies"); var consumer = consumer("group.id", "java-copies", "isolation.level", "read_committed")) {
            consumer.subscribe(List.of("java-codecs"));
            producer.initTransactions();
            for (boolean commits : List.of(false, true)) {
                List<ConsumerRecord<String, byte[]>> found = new ArrayList<>();
                until(() -> { consumer.poll(Duration.ofMillis(50)).forEach(found::add); return found.size() == count; });
                producer.beginTransaction();
                for (var record : found) producer.send(new ProducerRecord<>("java-copies", record.value()));
                producer.sendOffsetsToTransaction(Map.of(source, new OffsetAndMetadata(count, "read")), consumer.groupMetadata());
                if (commits) producer.commitTransaction();
                else {
                    producer.abortTransaction();
                    equal(consumer.committed(Set.of(source)).get(source) == null, true);
                    consumer.seekToBeginning(Set.of(source));
                }
            }
            equal(consumer.committed(Set.of(source)).get(source), new OffsetAndMetadata(count, "read"));
        }
        equal(values("java-copies", count, "isolation.level", "read_committed"), values("java-codecs", count));
    }

    static void deletion() throws Exception {
        TopicPartition partition = new TopicPartition("java-large", 0);
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", server))) {
            equal(admin.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(2))).all().isCompletedExceptionally(), false);
            until(() -> {
                try {
                    return admin.listOffsets(Map.of(partition, OffsetSpec.earliest())).partitionResult(partition).get().offset() == 2;
                } catch (Exception problem) {
                    throw new AssertionError(problem);
                }
            });
            admin.deleteConsumerGroupOffsets("java-classic", Set.of(new TopicPartition("java-classic", 0))).all().get();
            admin.deleteConsumerGroups(List.of("java-classic", "java-consumer")).all().get();
            Collection<String> left = admin.listGroups().all().get().stream().map(GroupListing::groupId).toList();
            equal(Collections.disjoint(left, List.of("java-classic", "java-consumer")), true);
            admin.deleteTopics(List.of("java-large")).all().get();
            equal(admin.listTopics().names().get().contains("java-large"), false);
        }
    }
}
