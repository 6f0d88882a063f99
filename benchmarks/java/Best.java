import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;

/** The fastest call of five turns of 20 ms, as in benchmarks/contest.py, after some seconds for the just-in-time compiler. */
final class Best {
    private static final ThreadMXBean THREAD = ManagementFactory.getThreadMXBean();
    private static final int TURNS = 5;
    private static final long TURN_NANOSECONDS = 20_000_000;

    private Best() {}

    static long nanoseconds(double warmUpSeconds, Runnable work) {
        long end = THREAD.getCurrentThreadCpuTime() + (long) (warmUpSeconds * 1e9);
        do work.run(); while (THREAD.getCurrentThreadCpuTime() < end);
        long best = Long.MAX_VALUE;
        for (int turn = 0; turn < TURNS; turn++) {
            long begin = THREAD.getCurrentThreadCpuTime();
            for (long start = begin; start - begin < TURN_NANOSECONDS; ) {
                work.run();
                long now = THREAD.getCurrentThreadCpuTime();
                best = Math.min(best, now - start);
                start = now;
            }
        }
        return best;
    }
}
