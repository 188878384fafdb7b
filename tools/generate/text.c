/* text.c - reads and writes files, and breaks lines. */
#include "generate.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- files and memory ---------------------------------------------------------------------- */

_Noreturn void fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("generate: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}

void *expect(void *memory)
{
    if (!memory)
        fail("out of memory");
    return memory;
}

FILE *begin(text *t)
{
    t->out = expect(open_memstream(&t->data, &t->size));
    return t->out;
}

char *end(text *t)
{
    if (ferror(t->out) || fclose(t->out) != 0)
        fail("out of memory");
    return t->data;
}

char *read_file(const char *path)
{
    text t;
    char piece[4096];
    FILE *file = fopen(path, "r");
    if (!file)
        return NULL;
    begin(&t);
    for (size_t n; (n = fread(piece, 1, sizeof piece, file)) > 0;)
        fwrite(piece, 1, n, t.out);
    bool good = !ferror(file);
    fclose(file);
    char *data = end(&t);
    return good ? data : NULL;
}

char *bytes_inc(const char *path)
{
    const char *data = read_file(path);
    text t;
    if (!data)
        fail("cannot read %s", path);
    FILE *out = begin(&t);
    for (size_t i = 0; data[i]; i++)
        fprintf(out, "%d,%s", data[i], i % 24 == 23 ? "\n" : " ");
    fputs("0\n", out);
    return end(&t);
}

/* Makes the folders of a path. */
static void make_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(path, 0777) != 0 && errno != EEXIST)
            fail("cannot make the folder %s: %s", path, strerror(errno));
        *slash = '/';
    }
}

/* Writes a file in one step, so that a compiler that runs now sees the old one or the new one. */
void write_file(const char *folder, const char *name, const char *data)
{
    char path[4096];
    char scratch[4128];
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        fail("the path of %s is too long", name);
    const char *old = read_file(path);
    if (old && strcmp(old, data) == 0)
        return;
    make_folders(path);
    snprintf(scratch, sizeof scratch, "%s.%ld", path, (long)getpid());
    FILE *file = fopen(scratch, "w");
    bool good = file && fputs(data, file) >= 0;
    good = file && fclose(file) == 0 && good;
    if (!good || rename(scratch, path) != 0)
        fail("cannot write %s: %s", path, strerror(errno));
}

/* ---- lines of at most 100 columns ---------------------------------------------------------- */

void wrap(FILE *out, const char *line, size_t width, const char *margin, size_t indent)
{
    for (size_t column = 0; *line;) {
        size_t blanks = strspn(line, " ");
        size_t size = blanks + strcspn(line + blanks, " ");
        if (column > 0 && column + size > width) {
            fprintf(out, "\n%s%*s", margin, (int)indent, "");
            column = indent;
            line += blanks;
            size -= blanks;
        }
        fwrite(line, 1, size, out);
        column += size;
        line += size;
    }
}

void wrap_code(FILE *out, const char *line)
{
    wrap(out, line, 99, "", 8);
    fputc('\n', out);
}

void print_macro(FILE *out, const char *head, const char *body)
{
    text t;
    text indented;
    if (strlen(head) + 1 + strlen(body) <= 100) {
        fprintf(out, "%s %s\n", head, body);
        return;
    }
    wrap_code(begin(&t), head);
    fprintf(begin(&indented), "    %s", body);
    wrap(t.out, end(&indented), 94, "", 8);
    const char *line = end(&t);
    for (const char *next; (next = strchr(line, '\n')); line = next + 1)
        fprintf(out, "%-99.*s\\\n", (int)(next - line), line);
    fprintf(out, "%s\n", line);
}
