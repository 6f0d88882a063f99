// Runs tools of Apache Kafka's console, one after another in one JVM: each line of the input is the name of a main class
// and its arguments, divided by tabs; what begins with "<" is its input, with "|" between lines. After what a tool has
// written comes a line "status N".
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.InputStreamReader;
import java.lang.reflect.InvocationTargetException;
import java.util.Arrays;
import org.apache.kafka.common.utils.internals.Exit;

public class ConsoleTool {
    static class Ended extends RuntimeException {}

    static Integer status;

    // Some tools catch what this throws, and end a second time.
    static void ends(int with) {
        if (status == null) status = with;
        throw new Ended();
    }

    public static void main(String[] args) throws Exception {
        Exit.setExitProcedure((with, message) -> ends(with));
        Exit.setHaltProcedure((with, message) -> ends(with));
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = input.readLine()) != null;) {
            String[] words = line.split("\t");
            int last = words.length - 1;
            if (words[last].startsWith("<")) {
                System.setIn(new ByteArrayInputStream(words[last].substring(1).replace('|', '\n').getBytes()));
                words = Arrays.copyOf(words, last);
            }
            status = null;
            try {
                Class.forName(words[0]).getMethod("main", String[].class).invoke(null, (Object) Arrays.copyOfRange(words, 1, words.length));
            } catch (InvocationTargetException thrown) {
                if (!(thrown.getCause() instanceof Ended)) throw thrown;
            }
            System.out.println("status " + (status == null ? 0 : status));
        }
        System.exit(0);
    }
}
