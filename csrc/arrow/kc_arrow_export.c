#include "arrow/kc_arrow_export.h"

#include <errno.h>
#include <string.h>

static const char *const formats[] = {
    [KC_BOOL] = "b",
    [KC_INT8] = "c",
    [KC_INT16] = "s",
    [KC_INT32] = "i",
    [KC_INT64] = "l",
    [KC_UINT32] = "I",
    [KC_TIMESTAMP_MS] = "tsm:UTC",
    [KC_BINARY] = "z",
    [KC_BINARY_VIEW] = "vz",
    [KC_STRING] = "u",
    [KC_LIST] = "+l",
    [KC_STRUCT] = "+s",
};

static int no_memory(kc_error *error) { return kc_fail(error, KC_NO_MEMORY, "no memory to export to Arrow", 0, 0, 0); }

static void release_schema(struct ArrowSchema *s) {
    for (int64_t i = 0; i < s->n_children; i++) {
        struct ArrowSchema *child = s->children[i];
        /* n_children counts only existing children. NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
        if (child->release) child->release(child);
        kc_free(child);
    }
    kc_free(s->children);
    s->release = NULL;
}

/* `*s` with room for n children; each one is counted when it is added, so that an incomplete schema can be released. */
static int open_schema(struct ArrowSchema *s, const char *name, const char *format, int n, kc_error *error) {
    memset(s, 0, sizeof *s);
    s->format = format;
    s->name = name;
    s->flags = ARROW_FLAG_NULLABLE;
    s->release = release_schema;
    if (n) {
        s->children = kc_alloc_zeroed((size_t)n * sizeof *s->children);
        if (!s->children) return no_memory(error);
    }
    return KC_OK;
}

static int export_field(const kc_field *f, struct ArrowSchema *s, kc_error *error) {
    int code = open_schema(s, f->name, formats[f->type], f->num_children, error);
    for (int i = 0; !code && i < f->num_children; i++) {
        struct ArrowSchema *child = kc_alloc_zeroed(sizeof *child);
        if (!child) return no_memory(error);
        s->children[s->n_children++] = child;
        code = export_field(&f->children[i], child, error);
    }
    return code;
}

int kc_arrow_export_schema(const kc_table *t, struct ArrowSchema *out, kc_error *error) {
    int code = open_schema(out, "", "+s", t->num_columns, error);
    for (int i = 0; !code && i < t->num_columns; i++) {
        if (!t->columns[i].wanted) continue;
        struct ArrowSchema *child = kc_alloc_zeroed(sizeof *child);
        if (!child) {
            code = no_memory(error);
            break;
        }
        out->children[out->n_children++] = child;
        code = export_field(t->columns[i].field, child, error);
    }
    if (code && out->release) out->release(out);
    return code;
}

/* Owned by each exported array: a reference to the table and the list of its buffers. For a column of views, the last
 * buffer has the sizes of the data buffers. */
typedef struct keeper {
    kc_table *table;
    int64_t *sizes;
    const void *buffers[];
} keeper;

static void release_array(struct ArrowArray *a) {
    for (int64_t i = 0; i < a->n_children; i++) {
        struct ArrowArray *child = a->children[i];
        if (child->release) child->release(child);
        kc_free(child);
    }
    kc_free(a->children);
    keeper *k = a->private_data;
    if (k) {
        kc_table_release(k->table);
        kc_free(k->sizes);
    }
    kc_free(k);
    a->release = NULL;
}

static int open_array(struct ArrowArray *a, kc_table *t, int64_t length, int64_t buffers, int n, kc_error *error) {
    memset(a, 0, sizeof *a);
    a->length = length;
    a->n_buffers = buffers;
    a->release = release_array;
    keeper *k = kc_alloc_zeroed(sizeof *k + (size_t)buffers * sizeof *k->buffers);
    if (!k) return no_memory(error);
    kc_table_retain(t);
    k->table = t;
    a->private_data = k;
    a->buffers = k->buffers;
    if (n) {
        a->children = kc_alloc_zeroed((size_t)n * sizeof *a->children);
        if (!a->children) return no_memory(error);
    }
    return KC_OK;
}

static int64_t buffers_of(const kc_column *c) {
    const kc_type type = c->field->type;
    if (type == KC_STRUCT) return 1;
    if (type == KC_BINARY_VIEW) return 3 + kc_views_count(c->views);
    return type == KC_BINARY || type == KC_STRING ? 3 : 2;
}

static int export_views(const kc_views *v, keeper *k, kc_error *error) {
    const int32_t count = kc_views_count(v);
    k->sizes = kc_alloc_zeroed(((size_t)count + 1) * sizeof *k->sizes);
    if (!k->sizes) return no_memory(error);
    for (int32_t i = 0; i < count; i++) {
        k->buffers[2 + i] = kc_views_at(v, i)->data;
        k->sizes[i] = (int64_t)kc_views_at(v, i)->size;
    }
    k->buffers[2 + count] = k->sizes;
    return KC_OK;
}

static int export_column(kc_table *t, const kc_column *c, struct ArrowArray *a, kc_error *error) {
    static const uint8_t nothing[8] = {0};
    const int n = c->field->num_children;
    const int64_t buffers = buffers_of(c);
    int code = open_array(a, t, c->length, buffers, n, error);
    if (code) return code;
    keeper *k = a->private_data;
    kc_type type = c->field->type;
    a->null_count = c->null_count;
    k->buffers[0] = c->null_count ? c->validity.data : NULL;
    if (buffers > 1) k->buffers[1] = c->values.data;
    if (type == KC_BINARY || type == KC_STRING) k->buffers[2] = c->data.data ? c->data.data : nothing;
    if (type == KC_BINARY_VIEW) code = export_views(c->views, k, error);
    if (code) return code;
    for (int i = 0; i < n; i++) {
        struct ArrowArray *child = kc_alloc_zeroed(sizeof *child);
        if (!child) return no_memory(error);
        a->children[a->n_children++] = child;
        code = export_column(t, &c->children[i], child, error);
        if (code) return code;
    }
    return KC_OK;
}

int kc_arrow_export_array(kc_table *t, struct ArrowArray *out, kc_error *error) {
    int code = open_array(out, t, t->length, 1, t->num_columns, error);
    for (int i = 0; !code && i < t->num_columns; i++) {
        if (!t->columns[i].wanted) continue;
        struct ArrowArray *child = kc_alloc_zeroed(sizeof *child);
        if (!child) {
            code = no_memory(error);
            break;
        }
        out->children[out->n_children++] = child;
        code = export_column(t, &t->columns[i], child, error);
    }
    if (code && out->release) out->release(out);
    return code;
}

/* Owned by a stream: the table, until it is returned. */
typedef struct streamed {
    kc_table *table;
    bool given;
    const char *failure;
} streamed;

static int stream_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out) {
    streamed *s = stream->private_data;
    kc_error error = {0};
    if (kc_arrow_export_schema(s->table, out, &error) == KC_OK) return 0;
    s->failure = error.what;
    return ENOMEM;
}

static int stream_next(struct ArrowArrayStream *stream, struct ArrowArray *out) {
    streamed *s = stream->private_data;
    kc_error error = {0};
    memset(out, 0, sizeof *out);
    if (s->given) return 0;
    if (kc_arrow_export_array(s->table, out, &error) == KC_OK) {
        s->given = true;
        return 0;
    }
    s->failure = error.what;
    return ENOMEM;
}

static const char *stream_failure(struct ArrowArrayStream *stream) {
    return ((streamed *)stream->private_data)->failure;
}

static void release_stream(struct ArrowArrayStream *stream) {
    streamed *s = stream->private_data;
    kc_table_release(s->table);
    kc_free(s);
    stream->release = NULL;
}

int kc_arrow_export_stream(kc_table *t, struct ArrowArrayStream *out, kc_error *error) {
    memset(out, 0, sizeof *out);
    streamed *s = kc_alloc_zeroed(sizeof *s);
    if (!s) return no_memory(error);
    kc_table_retain(t);
    s->table = t;
    out->get_schema = stream_schema;
    out->get_next = stream_next;
    out->get_last_error = stream_failure;
    out->release = release_stream;
    out->private_data = s;
    return KC_OK;
}
