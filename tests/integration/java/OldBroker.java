import kafka.Kafka;
import org.apache.zookeeper.server.ZooKeeperServerMain;

/** A broker and its ZooKeeper in one process, as releases before KRaft need it. */
public final class OldBroker {
    private OldBroker() {
    }

    /** Arguments: the port and the directory of ZooKeeper, and the broker's properties. */
    public static void main(String[] arguments) {
        String[] quorum = {arguments[0], arguments[1]};
        Thread keeper = new Thread(() -> ZooKeeperServerMain.main(quorum), "zookeeper");
        keeper.setDaemon(true);
        keeper.start();
        Kafka.main(new String[] {arguments[2]});
    }
}
