#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "check.h"

static test_case *first, **last = &first;
static bool failed;

void register_test(test_case *test) {
    *last = test;
    last = &test->next;
}

bool check(bool ok, const char *file, int line, const char *text, int64_t got, int64_t want) {
    if (ok) return true;
    failed = true;
    if (got == want)
        fprintf(stderr, "%s:%d: not so: %s\n", file, line, text);
    else
        fprintf(stderr, "%s:%d: not so: %s (got %" PRId64 ", want %" PRId64 ")\n", file, line, text, got, want);
    return false;
}

/* Runs the tests whose names contain the argument, or those that do not contain what follows a "-", or all of them. */
int main(int argc, char **argv) {
    unsigned passes = 0, failures = 0;
    for (test_case *test = first; test; test = test->next) {
        if (argc > 1 && (argv[1][0] == '-' ? strstr(test->name, argv[1] + 1) != NULL : !strstr(test->name, argv[1])))
            continue;
        failed = false;
        test->run();
        if (failed) fprintf(stderr, "%s: FAILED %s\n", test->file, test->name);
        if (failed)
            failures++;
        else
            passes++;
    }
    printf("%u passed, %u failed\n", passes, failures);
    return failures || !passes;
}
