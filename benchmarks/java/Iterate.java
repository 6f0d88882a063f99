import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.function.Consumer;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.common.utils.internals.BufferSupplier;
import org.apache.kafka.common.utils.internals.CloseableIterator;

/**
 * Reads record sets as Kafka's consumer does, and verifies checksums. argv: seconds per file, files. Prints a Digest and
 * nanoseconds. With -Dcopy=true it makes a byte[] of each key and value, as the consumer's ByteArrayDeserializer does;
 * without it, it reads no byte of them.
 */
public final class Iterate {
    private static final boolean COPY = Boolean.getBoolean("copy");
    private static long touched;
    private static byte[] kept;

    public static void main(String[] argv) throws Exception {
        for (int i = 1; i < argv.length; i++) {
            MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(Files.readAllBytes(Path.of(argv[i]))));
            Digest digest = new Digest();
            read(records, digest::add);
            long best = Best.nanoseconds(Double.parseDouble(argv[0]), () -> read(records, Iterate::touch));
            System.out.println(digest + " " + best);
        }
        if (touched == 42) System.out.println();
    }

    private static void touch(Record record) {
        touched += record.offset() + record.timestamp() + record.keySize() + record.valueSize();
        if (COPY) {
            if (record.hasKey()) kept = Utils.toArray(record.key());
            if (record.hasValue()) kept = Utils.toArray(record.value());
        }
    }

    private static void read(MemoryRecords records, Consumer<Record> each) {
        try (BufferSupplier buffers = BufferSupplier.create()) {
            for (RecordBatch batch : records.batches()) {
                batch.ensureValid();
                try (CloseableIterator<Record> iterator = batch.streamingIterator(buffers)) {
                    while (iterator.hasNext()) each.accept(iterator.next());
                }
            }
        }
    }
}
