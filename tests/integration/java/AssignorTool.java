// What Kafka's assignors put into a subscription after an assignment, through Kafka's own serializer.
//   subscriptions        -> a line for each assignor and version: name, version, the bytes in hex
//   assignment HEX       -> the partitions and the user data that Kafka reads from an assignment
import java.nio.ByteBuffer;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;
import java.util.TreeSet;
import java.util.Set;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.TopicPartition;

public class AssignorTool {
    public static void main(String[] args) {
        switch (args[0]) {
            case "subscriptions" -> subscriptions();
            case "assignment" -> assignment(HexFormat.of().parseHex(args[1]));
            default -> throw new IllegalArgumentException(args[0]);
        }
    }

    static void subscriptions() {
        List<TopicPartition> owned = List.of(
            new TopicPartition("orders", 0), new TopicPartition("orders", 5), new TopicPartition("заказы", 2));
        for (ConsumerPartitionAssignor assignor : List.of(new RangeAssignor(), new StickyAssignor(), new CooperativeStickyAssignor())) {
            assignor.onAssignment(new Assignment(owned), new ConsumerGroupMetadata("group", 41, "member", Optional.empty()));
            ByteBuffer data = assignor.subscriptionUserData(new TreeSet<>(Set.of("orders", "заказы")));
            for (short version = 0; version <= 3; version++) {
                Subscription subscription = new Subscription(List.of("orders", "заказы"), data, owned, 41, Optional.of("rack-1"));
                System.out.println(assignor.name() + " " + version + " " + hex(ConsumerProtocol.serializeSubscription(subscription, version)));
            }
        }
    }

    static void assignment(byte[] data) {
        Assignment found = ConsumerProtocol.deserializeAssignment(ByteBuffer.wrap(data));
        for (TopicPartition partition : found.partitions()) System.out.println(partition.topic() + " " + partition.partition());
        System.out.println(found.userData() == null ? "none" : hex(found.userData()));
    }

    static String hex(ByteBuffer data) {
        byte[] bytes = new byte[data.remaining()];
        data.duplicate().get(bytes);
        return HexFormat.of().formatHex(bytes);
    }
}
