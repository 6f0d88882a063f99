// Consumer groups of a running broker. `read SERVER GROUP CLIENT TOPIC COUNT PROTOCOL` reads as a member of a group,
// commits after COUNT records, prints how many it read, and stays a member until its input ends. `describe SERVER`
// asks what kafka-consumer-groups --describe asks: group, topic, partition, committed offset, end, member, client, host.
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.ConsumerGroupListing;
import org.apache.kafka.clients.admin.MemberDescription;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

public class GroupTool {
    public static void main(String[] args) throws Exception {
        switch (args[0]) {
            case "read" -> read(args[1], args[2], args[3], args[4], Integer.parseInt(args[5]), args[6]);
            case "describe" -> describe(args[1]);
            default -> throw new IllegalArgumentException(args[0]);
        }
    }

    static void read(String server, String group, String client, String topic, int count, String protocol) throws Exception {
        Map<String, Object> settings = new HashMap<>(Map.of("bootstrap.servers", server, "group.id", group, "client.id", client,
            "auto.offset.reset", "earliest", "enable.auto.commit", false, "max.poll.records", 10, "group.protocol", protocol,
            "key.deserializer", ByteArrayDeserializer.class, "value.deserializer", ByteArrayDeserializer.class));
        KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings);
        consumer.subscribe(List.of(topic));
        int found = 0;
        while (found < count) found += consumer.poll(Duration.ofMillis(200)).count();
        consumer.commitSync();
        System.out.println(found);
        System.out.flush();
        while (System.in.available() == 0) {  // a killed process does not leave the group
            consumer.pause(consumer.assignment());
            consumer.poll(Duration.ofMillis(100));
        }
        consumer.close();
    }

    static void describe(String server) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", server))) {
            List<String> groups = admin.listConsumerGroups().all().get().stream().map(ConsumerGroupListing::groupId).sorted().collect(Collectors.toList());
            Map<String, ConsumerGroupDescription> described = admin.describeConsumerGroups(groups).all().get();
            for (String group : groups) {
                Map<TopicPartition, OffsetAndMetadata> committed = admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get();
                Map<TopicPartition, MemberDescription> owners = new HashMap<>();
                for (MemberDescription member : described.get(group).members())
                    for (TopicPartition owned : member.assignment().topicPartitions()) owners.put(owned, member);
                List<TopicPartition> all = new ArrayList<>(committed.keySet());
                for (TopicPartition owned : owners.keySet()) if (!committed.containsKey(owned)) all.add(owned);
                var ends = admin.listOffsets(all.stream().collect(Collectors.toMap(p -> p, p -> OffsetSpec.latest()))).all().get();
                for (String name : new TreeSet<>(all.stream().map(p -> p.topic() + " " + p.partition()).toList())) {
                    TopicPartition p = new TopicPartition(name.split(" ")[0], Integer.parseInt(name.split(" ")[1]));
                    MemberDescription member = owners.get(p);
                    String owner = member == null ? "- - -" : member.consumerId() + " " + member.clientId() + " " + member.host();
                    String offset = committed.get(p) == null ? "-" : "" + committed.get(p).offset();
                    System.out.println(group + " " + name + " " + offset + " " + ends.get(p).offset() + " " + owner);
                }
            }
        }
    }
}
