// What Kafka's assignors assign. Each line of standard input is a case:
//   ASSIGNOR TOPIC=COUNT,... MEMBER|INSTANCE|GENERATION|TOPIC,...|TOPIC-NUMBER,... ...
// with "-" for what is missing. Members claim partitions in the way of the assignor. The answer is a line with
//   MEMBER|TOPIC-NUMBER,... ...
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Scanner;
import java.util.Set;
import java.util.HashSet;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

public class AssignTool {
    public static void main(String[] args) {
        Scanner input = new Scanner(System.in, StandardCharsets.UTF_8);
        while (input.hasNextLine()) System.out.println(assign(input.nextLine().split(" ")));
    }

    static ConsumerPartitionAssignor made(String name) {
        return switch (name) {
            case "range" -> new RangeAssignor();
            case "roundrobin" -> new RoundRobinAssignor();
            case "sticky" -> new StickyAssignor();
            case "cooperative-sticky" -> new CooperativeStickyAssignor();
            default -> throw new IllegalArgumentException(name);
        };
    }

    static String assign(String[] words) {
        Node node = new Node(1, "localhost", 9092);
        Node[] nodes = {node};
        List<PartitionInfo> infos = new ArrayList<>();
        for (String topic : list(words[1])) {
            String[] parts = topic.split("=");
            for (int n = 0; n < Integer.parseInt(parts[1]); n++) infos.add(new PartitionInfo(parts[0], n, node, nodes, nodes));
        }
        Cluster cluster = new Cluster("cluster", List.of(node), infos, Set.of(), Set.of());
        Map<String, Subscription> subscriptions = new HashMap<>();
        for (int i = 2; i < words.length; i++) {
            String[] parts = words[i].split("\\|");
            subscriptions.put(parts[0], subscription(words[0], parts));
        }
        Map<String, Assignment> found = made(words[0]).assign(cluster, new GroupSubscription(subscriptions)).groupAssignment();
        StringBuilder line = new StringBuilder();
        new TreeMap<>(found).forEach((member, assignment) -> {
            line.append(line.isEmpty() ? "" : " ").append(member).append("|");
            List<String> names = assignment.partitions().stream().map(TopicPartition::toString).toList();
            line.append(names.isEmpty() ? "-" : String.join(",", names));
        });
        return line.toString();
    }

    static Subscription subscription(String name, String[] parts) {
        int generation = Integer.parseInt(parts[2]);
        List<String> topics = list(parts[3]);
        List<TopicPartition> owned = new ArrayList<>();
        for (String place : list(parts[4])) {
            int dash = place.lastIndexOf('-');
            owned.add(new TopicPartition(place.substring(0, dash), Integer.parseInt(place.substring(dash + 1))));
        }
        ConsumerPartitionAssignor assignor = made(name);
        if (generation >= 0) assignor.onAssignment(new Assignment(owned), new ConsumerGroupMetadata("group", generation, parts[0], Optional.empty()));
        boolean cooperative = name.equals("cooperative-sticky");
        Subscription made = new Subscription(topics, assignor.subscriptionUserData(new HashSet<>(topics)),
            cooperative ? owned : List.of(), cooperative ? generation : -1, Optional.empty());
        if (!parts[1].equals("-")) made.setGroupInstanceId(Optional.of(parts[1]));
        return made;
    }

    static List<String> list(String text) {
        return text.equals("-") ? List.of() : Arrays.asList(text.split(","));
    }
}
