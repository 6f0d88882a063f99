/* What a program under `valgrind --tool=callgrind --instr-atstart=no` says when its instructions are to be counted. */
#include <valgrind/callgrind.h>

void count_from_here(void) {
    CALLGRIND_START_INSTRUMENTATION;
    CALLGRIND_ZERO_STATS;
}

void count_up_to_here(const char *name) {
    CALLGRIND_DUMP_STATS_AT(name);
    CALLGRIND_STOP_INSTRUMENTATION;
}
