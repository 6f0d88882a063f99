// Reads record sets from a pipe as Kafka's consumer does, and tells every field of every record, until standard input
// ends. A question is a length and so many bytes; the answer is the records, each after a 1, then a 0 and the error.
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.MutableRecordBatch;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.CloseableIterator;
import org.apache.kafka.common.utils.Utils;

public class RecordTool {
    public static void main(String[] args) throws IOException {
        DataInputStream in = new DataInputStream(new BufferedInputStream(System.in, 1 << 16));
        DataOutputStream out = new DataOutputStream(new BufferedOutputStream(System.out, 1 << 16));
        while (true) {
            byte[] data;
            try {
                data = new byte[in.readInt()];
            } catch (EOFException end) {
                return;
            }
            in.readFully(data);
            String error = "";
            try {
                read(data, out);
            } catch (Throwable caught) {
                error = caught.toString();
            }
            out.writeByte(0);
            out.writeUTF(error.substring(0, Math.min(200, error.length())));
            if (in.available() == 0) out.flush();
        }
    }

    static void read(byte[] data, DataOutputStream out) throws IOException {
        for (MutableRecordBatch batch : MemoryRecords.readableRecords(ByteBuffer.wrap(data)).batches()) {
            batch.ensureValid();
            try (CloseableIterator<Record> records = batch.streamingIterator(BufferSupplier.NO_CACHING)) {
                while (records.hasNext()) {
                    Record record = records.next();
                    record.ensureValid();
                    ByteArrayOutputStream written = new ByteArrayOutputStream(); // a field may fail: then nothing is written
                    write(batch, record, new DataOutputStream(written));
                    written.writeTo(out);
                }
            }
        }
    }

    static void write(MutableRecordBatch batch, Record record, DataOutputStream out) throws IOException {
        out.writeByte(1);
        out.writeLong(record.offset());
        out.writeLong(record.timestamp());
        out.writeByte(batch.timestampType().id);
        bytes(record.key(), out);
        bytes(record.value(), out);
        out.writeInt(record.headers().length);
        for (Header header : record.headers()) {
            bytes(ByteBuffer.wrap(Utils.utf8(header.key())), out);
            bytes(header.value() == null ? null : ByteBuffer.wrap(header.value()), out);
        }
    }

    static void bytes(ByteBuffer from, DataOutputStream out) throws IOException {
        out.writeInt(from == null ? -1 : from.remaining());
        if (from != null) out.write(Utils.toArray(from));
    }
}
