import java.nio.ByteBuffer;
import java.util.zip.CRC32;
import org.apache.kafka.common.record.internal.Record;

/** What benchmarks/compared.py compares: the number of records, sums of offsets and timestamps, a CRC of keys and values. */
final class Digest {
    private final CRC32 contents = new CRC32();
    private long records;
    private long offsets;
    private long timestamps;

    void add(Record record) {
        records++;
        offsets += record.offset();
        timestamps += record.timestamp();
        add(record.key());
        add(record.value());
    }

    private void add(ByteBuffer part) {
        if (part != null) contents.update(part);
    }

    @Override
    public String toString() {
        return records + " " + Long.toUnsignedString(offsets) + " " + Long.toUnsignedString(timestamps) + " " + contents.getValue();
    }
}
