import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;

/** Rebuilds the batches of record sets, as a producer does. argv: seconds per file, files. Prints a Digest of them and nanoseconds. */
public final class Build {
    private record Entry(long timestamp, ByteBuffer key, ByteBuffer value) {}

    private record Source(CompressionType codec, long baseOffset, List<Entry> entries) {}

    private static long written;

    public static void main(String[] argv) throws Exception {
        for (int i = 1; i < argv.length; i++) {
            List<Source> batches = load(Path.of(argv[i]));
            Digest digest = new Digest();
            build(batches, made -> made.records().forEach(digest::add));
            Runnable work = () -> build(batches, made -> written += made.sizeInBytes());
            long best = Best.nanoseconds(Double.parseDouble(argv[0]), work);
            System.out.println(digest + " " + best);
        }
        if (written == 42) System.out.println();
    }

    private static List<Source> load(Path path) throws Exception {
        List<Source> batches = new ArrayList<>();
        for (RecordBatch batch : MemoryRecords.readableRecords(ByteBuffer.wrap(Files.readAllBytes(path))).batches()) {
            List<Entry> entries = new ArrayList<>();
            for (Record record : batch) entries.add(new Entry(record.timestamp(), record.key(), record.value()));
            batches.add(new Source(batch.compressionType(), batch.baseOffset(), entries));
        }
        return batches;
    }

    private static void build(List<Source> batches, Consumer<MemoryRecords> each) {
        ByteBuffer buffer = ByteBuffer.allocate(2 << 20);
        for (Source batch : batches) {
            buffer.clear();
            Compression compression = Compression.of(batch.codec()).build();
            try (MemoryRecordsBuilder builder = MemoryRecords.builder(
                    buffer, RecordBatch.MAGIC_VALUE_V2, compression, TimestampType.CREATE_TIME, batch.baseOffset())) {
                for (Entry entry : batch.entries()) {
                    builder.append(entry.timestamp(), entry.key().duplicate(), entry.value().duplicate());
                }
                each.accept(builder.build());
            }
        }
    }
}
