/* driver.c - feeds a corpus and mutations of it to LLVMFuzzerTestOneInput, for compilers without
 * -fsanitize=fuzzer; the options are those of libFuzzer.
 *
 *     fuzz_parse -runs=20000 -seed=1 -max_len=4096 -timeout=10 -artifact_prefix=out- FOLDER|FILE...
 *     fuzz_parse -max_total_time=600 FOLDER      (as many mutations as that many seconds allow)
 *
 * All files are replayed first. If the library was compiled with -fsanitize-coverage=trace-pc,
 * a mutation that reaches new code joins the corpus in memory. The input that ends the process is
 * written to <artifact_prefix>crash; give that file back as argument to replay it.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
void __sanitizer_cov_trace_pc(void);
/* Present when the sanitizer runtime is linked. */
extern void __sanitizer_set_death_callback(void (*fn)(void)) __attribute__((weak));

typedef struct input {
    uint8_t *data;
    size_t size;
} input;

enum { EDGE_COUNT = 1 << 16, INPUT_MAX = 1 << 16 };

static input corpus[INPUT_MAX];
static size_t corpus_count;
static input tokens[INPUT_MAX]; /* slices of the corpus */
static size_t token_count;
static uint8_t edges[EDGE_COUNT];
static size_t edges_seen;
static uint64_t rng;
static size_t max_len = 4096;
static unsigned timeout_s = 10;
static char artifact[1024] = "crash";
static input current;

/* Called at each basic block of the library. */
void __sanitizer_cov_trace_pc(void)
{
    const uintptr_t pc = (uintptr_t)__builtin_return_address(0);
    uint8_t *edge = &edges[(pc ^ pc >> 16) % EDGE_COUNT];
    edges_seen += !*edge;
    *edge = 1;
}

/* xorshift64*: the same run for the same seed on every machine. */
static size_t pick(size_t n)
{
    rng ^= rng >> 12;
    rng ^= rng << 25;
    rng ^= rng >> 27;
    return n ? (size_t)(rng * 0x2545f4914f6cdd1du >> 33) % n : 0;
}

static void die(const char *what)
{
    fprintf(stderr, "driver: %s\n", what);
    exit(2);
}

static void *xmalloc(size_t size)
{
    void *p = malloc(size ? size : 1);
    if (!p)
        die("out of memory");
    return p;
}

/* Runs when the process is about to end; async-signal-safe. */
static void save_current(void)
{
    const int fd = open(artifact, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (fd < 0)
        return;
    if (write(fd, current.data, current.size) == (ssize_t)current.size) {
        const char said[] = "driver: the input is in ";
        if (write(2, said, sizeof said - 1) < 0 || write(2, artifact, strlen(artifact)) < 0 ||
            write(2, "\n", 1) < 0)
            _exit(1);
    }
    close(fd);
}

static void on_signal(int number)
{
    save_current();
    signal(number, SIG_DFL);
    raise(number);
}

/* The copy has exactly the size of the input, so that a read past its end is seen. */
static void run_one(const uint8_t *data, size_t size)
{
    current.data = xmalloc(size);
    current.size = size;
    if (size)
        memcpy(current.data, data, size);
    alarm(timeout_s);
    LLVMFuzzerTestOneInput(current.data, size);
    alarm(0);
    free(current.data);
    current.data = NULL;
    current.size = 0;
}

static void corpus_add(const uint8_t *data, size_t size)
{
    if (corpus_count == INPUT_MAX)
        return;
    input *in = &corpus[corpus_count++];
    in->data = xmalloc(size);
    in->size = size;
    if (size)
        memcpy(in->data, data, size);
}

static void read_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        die(path);
    size_t size = 0;
    size_t room = 4096;
    uint8_t *data = xmalloc(room);
    for (size_t n; (n = fread(data + size, 1, room - size, f)) > 0;) {
        size += n;
        if (size == room && !(data = realloc(data, room *= 2)))
            die("out of memory");
    }
    fclose(f);
    corpus_add(data, size);
    free(data);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void read_path(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0)
        die(path);
    if (!S_ISDIR(st.st_mode)) {
        read_file(path);
        return;
    }
    struct dirent **list;
    const int n = scandir(path, &list, NULL, by_name);
    for (int i = 0; i < n; i++) {
        char file[4096];
        snprintf(file, sizeof file, "%s/%s", path, list[i]->d_name);
        if (list[i]->d_name[0] != '.')
            read_path(file);
        free(list[i]);
    }
    if (n >= 0)
        free(list);
}

static int kind_of(uint8_t c)
{
    const bool word = c == '_' || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
    return word ? 1 : c <= ' ' ? 2 : 3;
}

/* Cuts the corpus into words and runs of punctuation; they serve as the dictionary. */
static void collect_tokens(void)
{
    for (size_t i = 0; i < corpus_count; i++) {
        const input in = corpus[i];
        for (size_t at = 0, end; at < in.size && token_count < INPUT_MAX; at = end) {
            for (end = at + 1; end < in.size && kind_of(in.data[end]) == kind_of(in.data[at]);)
                end++;
            if (end - at <= 32)
                tokens[token_count++] = (input){in.data + at, end - at};
        }
    }
}

/* Replaces `cut` bytes at `at` with `n` bytes, as far as max_len allows. */
static size_t splice(uint8_t *buf, size_t size, size_t at, size_t cut, const uint8_t *with,
                     size_t n)
{
    if (size - cut + n > max_len)
        return size;
    memmove(buf + at + n, buf + at + cut, size - at - cut);
    if (n)
        memmove(buf + at, with, n);
    return size - cut + n;
}

static size_t mutate(uint8_t *buf, size_t size)
{
    static const char *const edge_texts[] = {
        "-1", "0", "9223372036854775808", "1e999", "nan", "\"", "\\", "(", "[", "{", "((((((((",
        "%", "#", "\n", "\xff\xff\xff\xff", "\x80", "\xc3", "\xed\xa0\x80"};
    const size_t at = pick(size + 1);
    const size_t left = size - at;
    switch (pick(8)) {
    case 0: /* flip a bit */
        if (left)
            buf[at] ^= (uint8_t)(1u << pick(8));
        return size;
    case 1: /* any byte, also NUL */
        if (left)
            buf[at] = (uint8_t)pick(256);
        return size;
    case 2: /* truncate */
        return at;
    case 3: /* remove */
        return splice(buf, size, at, pick(left < 16 ? left + 1 : 16), NULL, 0);
    case 4: { /* splice in a piece of another input */
        const input in = corpus[pick(corpus_count)];
        const size_t from = pick(in.size);
        const size_t room = in.size - from < 64 ? in.size - from : 64;
        return splice(buf, size, at, pick(left < 64 ? left + 1 : 64), in.data + from,
                      pick(room + 1));
    }
    case 5: { /* a token, inserted or over what is there */
        if (!token_count)
            return size;
        const input t = tokens[pick(token_count)];
        return splice(buf, size, at, pick(2) && t.size <= left ? t.size : 0, t.data, t.size);
    }
    case 6: { /* a text at the edge of what is valid */
        const char *text = edge_texts[pick(sizeof edge_texts / sizeof *edge_texts)];
        return splice(buf, size, at, 0, (const uint8_t *)text, strlen(text));
    }
    default: { /* repeat a piece */
        uint8_t piece[64];
        const size_t n = pick((left < sizeof piece ? left : sizeof piece) + 1);
        memcpy(piece, buf + at, n);
        return splice(buf, size, at, 0, piece, n);
    }
    }
}

static bool option(const char *arg, const char *name, unsigned long long *value)
{
    const size_t n = strlen(name);
    if (strncmp(arg, name, n) != 0)
        return false;
    *value = strtoull(arg + n, NULL, 10);
    return true;
}

/* Returns how many mutations were run: `runs` of them, or until `seconds` are over. */
static unsigned long long fuzz(unsigned long long runs, unsigned long long seconds)
{
    const time_t end = time(NULL) + (time_t)seconds;
    unsigned long long i = 0;
    uint8_t *buf = xmalloc(max_len);
    if (!corpus_count)
        corpus_add((const uint8_t *)"", 0);
    for (; seconds ? time(NULL) < end : i < runs; i++) {
        const input in = corpus[pick(corpus_count)];
        size_t size = in.size < max_len ? in.size : max_len;
        if (size)
            memcpy(buf, in.data, size);
        for (size_t n = 1 + pick(6); n > 0; n--)
            size = mutate(buf, size);
        const size_t before = edges_seen;
        run_one(buf, size);
        if (edges_seen > before)
            corpus_add(buf, size);
    }
    free(buf);
    return i;
}

int main(int argc, char **argv)
{
    unsigned long long runs = 0;
    unsigned long long seed = 1;
    unsigned long long seconds = 0;
    unsigned long long number;
    const char *slash = strrchr(argv[0], '/');
    for (int i = 1; i < argc; i++) {
        if (option(argv[i], "-runs=", &runs) || option(argv[i], "-seed=", &seed) ||
            option(argv[i], "-max_total_time=", &seconds))
            continue;
        if (option(argv[i], "-max_len=", &number))
            max_len = (size_t)number;
        else if (option(argv[i], "-timeout=", &number))
            timeout_s = (unsigned)number;
        else if (strncmp(argv[i], "-artifact_prefix=", 17) == 0)
            snprintf(artifact, sizeof artifact, "%scrash", argv[i] + 17);
        else
            read_path(argv[i]);
    }
    if (__sanitizer_set_death_callback)
        __sanitizer_set_death_callback(save_current);
    signal(SIGABRT, on_signal);
    signal(SIGALRM, on_signal);
    rng = seed * 0x9e3779b97f4a7c15u + 1;

    const size_t files = corpus_count;
    collect_tokens();
    for (size_t i = 0; i < files; i++)
        run_one(corpus[i].data, corpus[i].size);
    runs = fuzz(runs, seconds);
    printf("%s: seed %llu, %zu files, %llu mutations, %zu new inputs, %zu blocks reached\n",
           slash ? slash + 1 : argv[0], seed, files, runs, corpus_count - files, edges_seen);
    for (size_t i = 0; i < corpus_count; i++)
        free(corpus[i].data);
    return 0;
}
