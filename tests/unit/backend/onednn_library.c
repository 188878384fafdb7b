/* onednn_library.c - loading oneDNN: libraries that are missing, broken or others are refused, with
 * the reason. One kernel is run by several threads at once, where CFX_ONEDNN names libdnnl.so. */
#include "backend/onednn.h"

#include "test_alloc.h"

#include <math.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/cfx_onednn_XXXXXX";

static const char *in_folder(const char *name)
{
    static char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

/* Compiles C to a shared library and returns its path. */
static const char *library_of(const char *name, const char *source)
{
    static char c_path[200];
    char command[700];
    const char *cc = getenv("CC");
    snprintf(c_path, sizeof c_path, "%s", in_folder("source.c"));
    write_text(c_path, source);
    const char *path = in_folder(name);
    snprintf(command, sizeof command, "%s -shared -fPIC -w -o %s %s", cc && *cc ? cc : "cc", path,
             c_path);
    CHECK_INT_EQ(0, system(command));
    return path;
}

/* Whether it is refused, with words in the message. */
static void check_refused(const char *path, const char *words)
{
    static char open_path[200];
    cfx_error err = {0};
    snprintf(open_path, sizeof open_path, "%s", path);
    cfxi_onednn *d = cfxi_backend_onednn_open(open_path, cfxi_base_allocator(NULL), &err);
    CHECK(d == NULL);
    CHECK_INT_EQ(CFX_E_UNSUPPORTED, err.status);
    if (!CHECK(strstr(err.message, words) && strstr(err.message, "oneDNN is not available")))
        printf("    %s\n", err.message);
    CHECK(cfxi_backend_onednn_open(open_path, cfxi_base_allocator(NULL), NULL) == NULL);
    cfxi_backend_onednn_release(d);
}

#define VERSION(major, threads)                                                                    \
    "struct version { int a, b, c; const char *hash; unsigned cpu, gpu; };\n"                      \
    "const struct version *dnnl_version(void)\n"                                                   \
    "{ static const struct version v = {" #major ", 1, 0, \"\", " #threads ", 0}; return &v; }\n"

TEST(refused)
{
    REQUIRE(mkdtemp(folder) != NULL);
    check_refused(in_folder("nothing.so"), "cannot be loaded");
    write_text(in_folder("empty.so"), "");
    check_refused(in_folder("empty.so"), "cannot be loaded");
    write_text(in_folder("text.so"), "this is not a library\n");
    check_refused(in_folder("text.so"), "cannot be loaded");
    check_refused(library_of("other.so", "int other;\n"), "no function dnnl_version");
    check_refused(library_of("two.so", VERSION(2, 2)), "needs version 3, not 2.1.0");
    check_refused(library_of("four.so", VERSION(4, 2)), "needs version 3, not 4.1.0");
    check_refused(library_of("tbb.so", VERSION(3, 4)), "built for OpenMP");
    check_refused(library_of("half.so", VERSION(3, 2)), "no function dnnl_engine_create");
    char command[100];
    snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK_INT_EQ(0, system(command));
}

/* ---- with the library ---------------------------------------------------------------------- */

enum { M = 37, N = 70, K = 50, THREADS = 12, TIMES = 60 };

typedef struct client {
    const cfxi_kernel *kernel;
    cfx_runtime *rt;
    float x[M * K];
    float out[M * N];
    float other[M * N];
    bool good;
} client;

static float w[K * N];

static bool is_right(const client *c)
{
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            double sum = 0;
            for (int k = 0; k < K; k++)
                sum += (double)c->x[i * K + k] * w[k * N + j];
            sum += c->other[i * N + j];
            if (fabs(fmax(sum, 0) - c->out[i * N + j]) > 1e-4)
                return false;
        }
    return true;
}

static void *run_often(void *ctx)
{
    client *c = ctx;
    const cfxi_run r = {.rt = c->rt, .x = c->x, .out = c->out, .operands = {c->other}};
    c->good = true;
    for (int i = 0; i < TIMES; i++) {
        memset(c->out, 0, sizeof c->out);
        c->good = cfxi_backend_onednn.run(c->kernel, &r, NULL) == CFX_OK && is_right(c) && c->good;
    }
    return NULL;
}

static cfxi_problem small_problem(const cfx_runtime *rt, cfxi_onednn *d)
{
    return (cfxi_problem){
        .kind = CFXI_PRODUCT, .isa = rt->isa, .threads = 2, .onednn = d, .m = M, .n = N, .k = K,
        .x_row = K, .out_row = N, .w_k = N, .w_n = 1, .num_posts = 2,
        .posts = {{.kind = CFXI_POST_ADD, .rows = {N}},
                  {.kind = CFXI_POST_CLAMP, .low = 0, .high = INFINITY}}};
}

/* More clients than calls that a kernel keeps; each with data of its own. */
static void check_clients(const cfxi_kernel *kernel, cfx_runtime *rt)
{
    static client clients[THREADS];
    pthread_t threads[THREADS];
    for (int t = 0; t < THREADS; t++) {
        clients[t] = (client){.kernel = kernel, .rt = rt};
        for (int i = 0; i < M * K; i++)
            clients[t].x[i] = (float)((i * 7 + t) % 13 - 6) / 4;
        for (int i = 0; i < M * N; i++)
            clients[t].other[i] = (float)((i * 5 + t) % 11 - 5) / 4;
        CHECK_INT_EQ(0, pthread_create(&threads[t], NULL, run_often, &clients[t]));
    }
    for (int t = 0; t < THREADS; t++) {
        pthread_join(threads[t], NULL);
        CHECK(clients[t].good);
    }
}

/* In a child a kernel fails, and the back end takes no problems. */
static void check_child(const cfxi_kernel *kernel, cfx_runtime *rt)
{
    static float x[M * K], out[M * N];
    int status = -1;
    const pid_t child = fork();
    if (child == 0) {
        double cost;
        cfx_error err = {0};
        const cfxi_run r = {.rt = rt, .x = x, .out = out, .operands = {out}};
        alarm(20);
        const bool right = cfxi_backend_onednn.run(kernel, &r, &err) == CFX_E_UNSUPPORTED &&
                           strstr(err.message, "fork") &&
                           !cfxi_backend_onednn.query(&kernel->problem, &cost);
        _exit(right ? 0 : 1);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

TEST(many_clients)
{
    cfx_error err = {0};
    const char *path = getenv("CFX_ONEDNN");
    if (!path) {
        printf("many_clients: 1 skipped, because CFX_ONEDNN does not name libdnnl.so\n");
        return;
    }
    cfxi_onednn *d = cfxi_backend_onednn_open(path, cfxi_base_allocator(NULL), &err);
    REQUIRE(d != NULL);
    cfx_runtime *rt = cfx_runtime_new(NULL, NULL);
    for (int i = 0; i < K * N; i++)
        w[i] = (float)(i % 17 - 8) / 8;
    const cfxi_problem p = small_problem(rt, d);
    const cfxi_constants c = {.w = w};
    cfxi_kernel *kernel = cfxi_backend_onednn.prepare(&p, &c, cfxi_base_allocator(NULL), &err);
    REQUIRE(kernel != NULL);
    cfxi_backend_onednn_release(d);  /* the kernel keeps it */
    check_clients(kernel, rt);
    check_child(kernel, rt);
    cfx_buffer text;
    cfxi_out out;
    cfx_buffer_init(&text, NULL);
    cfxi_base_out_begin(&out, cfx_buffer_sink(&text));
    cfxi_backend_onednn.print(kernel, &out);
    CHECK_INT_EQ(CFX_OK, cfxi_base_out_end(&out, NULL));
    CHECK(text.size > 8 && strncmp(text.data, "oneDNN: ", 8) == 0);
    cfx_buffer_free(&text);
    cfxi_backend_onednn.release(kernel);
    cfx_runtime_free(rt);
}
