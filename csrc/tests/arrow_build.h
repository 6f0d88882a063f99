/* Columns as another library would export them through the Arrow C data interface, over memory of the test. */
#ifndef ARROW_BUILD_H
#define ARROW_BUILD_H

#include <string.h>

#include "arrow/kc_arrow_abi.h"

typedef struct foreign {
    struct ArrowSchema schema;
    struct ArrowArray array;
    const void *buffers[6];
    struct ArrowSchema *child_schemas[6];
    struct ArrowArray *child_arrays[6];
} foreign;

/* A column of up to three buffers; validity NULL says that nothing is null. */
static inline void foreign_column(foreign *f, const char *format, const char *name, int64_t length, int64_t n_buffers,
                                  const void *validity, const void *second, const void *third) {
    memset(f, 0, sizeof *f);
    f->schema.format = format;
    f->schema.name = name;
    f->schema.children = f->child_schemas;
    f->array.length = length;
    f->array.null_count = validity ? -1 : 0;
    f->array.n_buffers = n_buffers;
    f->array.buffers = f->buffers;
    f->array.children = f->child_arrays;
    f->buffers[0] = validity;
    f->buffers[1] = second;
    f->buffers[2] = third;
}

static inline void add_child(foreign *f, foreign *child) {
    f->child_schemas[f->schema.n_children++] = &child->schema;
    f->child_arrays[f->array.n_children++] = &child->array;
}

static inline void set_dictionary(foreign *f, foreign *words) {
    f->schema.dictionary = &words->schema;
    f->array.dictionary = &words->array;
}

#endif
