/* Starts and stops counting in a program under `valgrind --tool=callgrind --instr-atstart=no`. */
#include <valgrind/callgrind.h>

void count_from_here(void) {
    CALLGRIND_START_INSTRUMENTATION;
    CALLGRIND_ZERO_STATS;
}

void count_up_to_here(const char *name) {
    CALLGRIND_DUMP_STATS_AT(name);
}

void count_no_more(void) {
    CALLGRIND_STOP_INSTRUMENTATION;
}
