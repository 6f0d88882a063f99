// An administrator of a cluster: `change SERVER STEP` does one of two rounds of changes, `describe SERVER` prints what the
// cluster then says of itself, as JSON, and `names` the numbers and names in access control.
import com.fasterxml.jackson.core.json.JsonWriteFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.AlterConfigOp.OpType;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ConfigEntry.ConfigSource;
import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.clients.admin.FinalizedVersionRange;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.admin.UpdateFeaturesOptions;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;

public class AdminTool {
    static final AclBinding READ = acl(ResourceType.TOPIC, "orders", PatternType.LITERAL, "User:álice", AclOperation.READ, AclPermissionType.ALLOW);
    static final AclBinding ALL = acl(ResourceType.GROUP, "team-", PatternType.PREFIXED, "User:bob", AclOperation.ALL, AclPermissionType.ALLOW);
    static final AclBinding DENY = acl(ResourceType.CLUSTER, "kafka-cluster", PatternType.LITERAL, "User:*", AclOperation.ALTER_CONFIGS, AclPermissionType.DENY);
    static final AclBinding WRITE = acl(ResourceType.TRANSACTIONAL_ID, "t", PatternType.LITERAL, "User:bob", AclOperation.WRITE, AclPermissionType.ALLOW);

    public static void main(String[] args) throws Exception {
        if (args[0].equals("names")) {
            for (AclPermissionType type : AclPermissionType.values()) System.out.println("PERMISSIONS " + type.code() + " " + type);
            for (AclOperation type : AclOperation.values()) System.out.println("OPERATIONS " + type.code() + " " + type);
            for (ResourceType type : ResourceType.values()) System.out.println("RESOURCES " + type.code() + " " + type);
            for (PatternType type : PatternType.values()) System.out.println("PATTERNS " + type.code() + " " + type);
            return;
        }
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", args[1]))) {
            switch (args[0]) {
                case "change" -> {
                    if (args[2].equals("1")) changeFirst(admin);
                    else changeSecond(admin);
                }
                case "describe" -> System.out.println(new ObjectMapper().enable(JsonWriteFeature.ESCAPE_NON_ASCII.mappedFeature()).writeValueAsString(describe(admin)));
                default -> throw new IllegalArgumentException(args[0]);
            }
        }
    }

    static void changeFirst(Admin admin) throws Exception {
        create(admin, "orders", 3, Map.of("retention.ms", "1234", "cleanup.policy", "compact"));
        create(admin, "gone", 1, Map.of("retention.ms", "99"));
        create(admin, "again.and-again_1", 1, Map.of("retention.ms", "77"));
        create(admin, "plain", 1, Map.of());
        alter(admin, ConfigResource.Type.TOPIC, "orders", "max.message.bytes", "50000");
        alter(admin, ConfigResource.Type.TOPIC, "plain", "segment.bytes", "2000000");
        alter(admin, ConfigResource.Type.BROKER, "1", "log.cleaner.threads", "2");
        alter(admin, ConfigResource.Type.BROKER, "", "message.max.bytes", "900000");
        alter(admin, ConfigResource.Type.CLIENT_METRICS, "all", "interval.ms", "5000");
        admin.createAcls(List.of(READ, ALL, DENY)).all().get();
    }

    static void changeSecond(Admin admin) throws Exception {
        admin.createPartitions(Map.of("orders", NewPartitions.increaseTo(5))).all().get();
        alter(admin, ConfigResource.Type.TOPIC, "orders", "retention.ms", null);
        alter(admin, ConfigResource.Type.TOPIC, "orders", "max.message.bytes", "60000");
        alter(admin, ConfigResource.Type.TOPIC, "plain", "segment.bytes", null);
        admin.deleteTopics(List.of("gone", "again.and-again_1")).all().get();
        create(admin, "again.and-again_1", 2, Map.of("cleanup.policy", "compact,delete"));
        admin.deleteAcls(List.of(ALL.toFilter())).all().get();
        admin.createAcls(List.of(WRITE)).all().get();
        lowerFeature(admin);
    }

    // Releases from 4.0 on refuse older versions of the metadata itself, but not of transactions.
    static void lowerFeature(Admin admin) throws Exception {
        Map<String, FinalizedVersionRange> levels = admin.describeFeatures().featureMetadata().get().finalizedFeatures();
        String feature = levels.containsKey("transaction.version") ? "transaction.version" : "metadata.version";
        short level = (short) (levels.get(feature).maxVersionLevel() - 1);
        FeatureUpdate lower = new FeatureUpdate(level, FeatureUpdate.UpgradeType.SAFE_DOWNGRADE);
        admin.updateFeatures(Map.of(feature, lower), new UpdateFeaturesOptions()).all().get();
    }

    static void create(Admin admin, String topic, int partitions, Map<String, String> configs) throws Exception {
        for (int attempt = 0; ; attempt++) {
            try {
                admin.createTopics(List.of(new NewTopic(topic, partitions, (short) 1).configs(configs))).all().get();
                return;
            } catch (Exception deletionNotDone) {
                if (attempt == 50) throw deletionNotDone;
                Thread.sleep(200);
            }
        }
    }

    static void alter(Admin admin, ConfigResource.Type type, String name, String config, String value) throws Exception {
        AlterConfigOp change = new AlterConfigOp(new ConfigEntry(config, value), value == null ? OpType.DELETE : OpType.SET);
        admin.incrementalAlterConfigs(Map.of(new ConfigResource(type, name), List.of(change))).all().get();
    }

    static AclBinding acl(ResourceType type, String name, PatternType pattern, String who, AclOperation operation, AclPermissionType permission) {
        return new AclBinding(new ResourcePattern(type, name, pattern), new AccessControlEntry(who, "10.0.0.1", operation, permission));
    }

    static Map<String, Object> describe(Admin admin) throws Exception {
        Set<String> names = admin.listTopics(new ListTopicsOptions().listInternal(true)).names().get();
        Map<String, Object> topics = new TreeMap<>();
        List<ConfigResource> resources = new ArrayList<>();
        for (TopicDescription topic : admin.describeTopics(names).allTopicNames().get().values()) {
            Map<Integer, Object> partitions = new TreeMap<>();
            for (TopicPartitionInfo partition : topic.partitions()) {
                partitions.put(partition.partition(), Map.of("leader", partition.leader() == null ? -1 : partition.leader().id(),
                    "replicas", ids(partition.replicas()), "isr", ids(partition.isr())));
            }
            topics.put(topic.name(), Map.of("topic_id", topic.topicId().toString(), "partitions", partitions));
            resources.add(new ConfigResource(ConfigResource.Type.TOPIC, topic.name()));
        }
        Map<Integer, Object> brokers = new TreeMap<>();
        for (Node node : admin.describeCluster().nodes().get()) {
            brokers.put(node.id(), List.of("PLAINTEXT://" + node.host() + ":" + node.port()));
            resources.add(new ConfigResource(ConfigResource.Type.BROKER, node.idString()));
        }
        resources.add(new ConfigResource(ConfigResource.Type.BROKER, ""));
        resources.add(new ConfigResource(ConfigResource.Type.CLIENT_METRICS, "all"));
        Map<String, Object> features = new TreeMap<>();
        admin.describeFeatures().featureMetadata().get().finalizedFeatures().forEach((name, level) -> features.put(name, level.maxVersionLevel()));
        return Map.of("topics", topics, "configs", configs(admin, resources), "brokers", brokers, "features", features, "acls", acls(admin));
    }

    // The configs that somebody has set, by resource.
    static Map<String, Object> configs(Admin admin, List<ConfigResource> resources) throws Exception {
        Map<ConfigResource.Type, ConfigSource> own = Map.of(ConfigResource.Type.TOPIC, ConfigSource.DYNAMIC_TOPIC_CONFIG,
            ConfigResource.Type.BROKER, ConfigSource.DYNAMIC_BROKER_CONFIG,
            ConfigResource.Type.CLIENT_METRICS, ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG);
        Map<String, Object> found = new TreeMap<>();
        admin.describeConfigs(resources).all().get().forEach((resource, config) -> {
            ConfigSource source = resource.type() == ConfigResource.Type.BROKER && resource.name().isEmpty()
                ? ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG : own.get(resource.type());
            Map<String, String> set = new TreeMap<>();
            for (ConfigEntry entry : config.entries()) {
                if (entry.source() == source) set.put(entry.name(), entry.value());
            }
            String kind = resource.type().toString().toLowerCase().replace('_', '-');
            if (!set.isEmpty()) found.put(kind + ":" + resource.name(), set);
        });
        return found;
    }

    static List<Object> acls(Admin admin) throws Exception {
        List<Object> found = new ArrayList<>();
        for (AclBinding acl : admin.describeAcls(AclBindingFilter.ANY).values().get()) {
            Map<String, Object> entry = new HashMap<>();
            entry.put("resource_type", acl.pattern().resourceType().code());
            entry.put("resource_name", acl.pattern().name());
            entry.put("pattern_type", acl.pattern().patternType().code());
            entry.put("principal", acl.entry().principal());
            entry.put("host", acl.entry().host());
            entry.put("operation", acl.entry().operation().code());
            entry.put("permission_type", acl.entry().permissionType().code());
            found.add(entry);
        }
        return found;
    }

    static List<Integer> ids(Collection<Node> nodes) {
        return nodes.stream().map(Node::id).toList();
    }
}
