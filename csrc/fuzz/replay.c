/* Runs a target on files without libFuzzer, so that any C compiler can build it.
 *
 *   fuzz_NAME [-seconds N] PATH...
 *
 * PATH is a file or a directory of files. With -seconds, mutations of the files follow for that time. Inputs are in
 * blocks of exactly their size, so that a sanitizer detects every read beyond them. */
#include <dirent.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "fuzz.h"

typedef struct input {
    uint8_t *data;
    size_t size;
} input;

bool fuzz_replaying = true;

static input *inputs;
static size_t count;

static void run(const uint8_t *data, size_t size) {
    uint8_t *exact = malloc(size ? size : 1);
    MUST(exact != NULL);
    if (size) memcpy(exact, data, size);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
}

static void add_file(const char *path) {
    FILE *file = fopen(path, "rb");
    MUST(file != NULL && fseek(file, 0, SEEK_END) == 0);
    long size = ftell(file);
    MUST(size >= 0 && fseek(file, 0, SEEK_SET) == 0);
    input in = {malloc((size_t)size + 1), (size_t)size};
    MUST(in.data != NULL && fread(in.data, 1, in.size, file) == in.size);
    fclose(file);
    inputs = realloc(inputs, (count + 1) * sizeof *inputs);
    MUST(inputs != NULL);
    inputs[count++] = in;
}

static void add(const char *path) {
    struct stat status = {0}; /* MemorySanitizer does not know stat64 */
    MUST(stat(path, &status) == 0);
    if (!S_ISDIR(status.st_mode)) {
        add_file(path);
        return;
    }
    struct dirent **names;
    int n = scandir(path, &names, NULL, alphasort);
    MUST(n >= 0);
    for (int i = 0; i < n; i++) {
        char inner[4096];
        snprintf(inner, sizeof inner, "%s/%s", path, names[i]->d_name);
        if (names[i]->d_name[0] != '.') add(inner);
        free(names[i]);
    }
    free(names);
}

static uint64_t random_state = 88172645463325252u;

static size_t below(size_t n) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return n ? (size_t)(random_state % n) : 0;
}

/* One change: a bit, a byte, an interesting number, a truncation, or a piece copied over another. */
static size_t mutate(uint8_t *data, size_t size) {
    static const uint8_t EDGES[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
    if (!size) return 0;
    size_t at = below(size), length = below(size - at) + 1;
    switch (below(6)) {
        case 0:
            data[at] ^= (uint8_t)(1u << below(8));
            return size;
        case 1:
            data[at] = (uint8_t)below(256);
            return size;
        case 2:
            memset(data + at, EDGES[below(sizeof EDGES)], length < 8 ? length : 8);
            return size;
        case 3:
            return at;
        case 4:
            memmove(data + below(size - length + 1), data + at, length);
            return size;
        default:
            memmove(data + at, data + at + length, size - at - length);
            return size - length;
    }
}

static size_t mutations(double seconds) {
    size_t runs = 0;
    time_t start = time(NULL);
    while (difftime(time(NULL), start) < seconds) {
        const input *in = &inputs[below(count)];
        uint8_t *copy = malloc(in->size + 1);
        MUST(copy != NULL);
        memcpy(copy, in->data, in->size);
        size_t size = in->size;
        for (size_t changes = below(4) + 1; changes; changes--) size = mutate(copy, size);
        run(copy, size);
        free(copy);
        runs++;
    }
    return runs;
}

int main(int argc, char **argv) {
    double seconds = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-seconds") == 0 && i + 1 < argc)
            seconds = atof(argv[++i]);
        else
            add(argv[i]);
    }
    MUST(count > 0);
    for (size_t i = 0; i < count; i++) run(inputs[i].data, inputs[i].size);
    printf("%s: %zu files", argv[0], count);
    fuzz_replaying = false;
    if (seconds > 0) printf(", %zu mutations", mutations(seconds));
    puts(" passed");
    for (size_t i = 0; i < count; i++) free(inputs[i].data);
    free(inputs);
    return 0;
}
