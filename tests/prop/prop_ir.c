/* prop_ir.c - properties of random graphs: copies, comparison, hashes, edits, dead code, text.
 *
 *     prop_ir [FIRST [COUNT]]      (2,000 seeds; 10,000 with CFX_FULL=1; a failure names its seed)
 */
#include "random_graph.h"

#include <cfx/embed/copy.h>
#include <cfx/embed/graph.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_finding(void *ctx, const cfx_node *n, const char *message)
{
    (void)ctx;
    (void)n;
    printf("    %s\n", message);
}

static bool verifies(cfx_graph *g)
{
    return cfx_graph_verify(g, print_finding, NULL, NULL) == CFX_OK;
}

static uint64_t hash_of(cfx_graph *g, bool shape_only)
{
    uint64_t hash = 0;
    cfx_status status = cfx_graph_hash(g, shape_only, &hash, NULL);
    return status == CFX_OK ? hash : (uint64_t)status;
}

static bool same_users(const cfx_node *a, const cfx_node *b)
{
    const cfx_use *x = cfx_node_first_use(a);
    const cfx_use *y = cfx_node_first_use(b);
    for (; x && y; x = cfx_use_next(x), y = cfx_use_next(y))
        if (strcmp(cfx_node_name(cfx_use_user(x), NULL), cfx_node_name(cfx_use_user(y), NULL)))
            return false;
    return !x && !y;
}

static const char *check_clone(cfx_graph *g, cfx_graph *copy)
{
    if (!copy)
        return "clone";
    if (!cfx_graph_equal(g, copy, false) || !cfx_graph_equal(copy, g, true))
        return "clone equals original";
    if (hash_of(g, false) != hash_of(copy, false) || hash_of(g, true) != hash_of(copy, true))
        return "clone hashes as original";
    if (!verifies(copy))
        return "verify of the clone";
    const cfx_node *m = cfx_graph_first(copy);
    for (const cfx_node *n = cfx_graph_first(g); n; n = cfx_node_next(n), m = cfx_node_next(m))
        if (!same_users(n, m))
            return "order of users in the clone";
    return NULL;
}

/* A clone is independent: edits of one leave the other alone. */
static const char *check_edits(cfx_graph *g, cfx_graph *copy, uint64_t seed)
{
    cfx_error err = {.status = CFX_OK};
    uint64_t before = hash_of(copy, false);
    if (random_graph_edit(g, seed, 40, &err) != CFX_OK) {
        printf("    %s\n", err.message);
        return "edit";
    }
    if (!verifies(g))
        return "verify after edits";
    if (hash_of(copy, false) != before || !verifies(copy))
        return "edits leave the clone alone";
    bool same = cfx_graph_equal(g, copy, false);
    if (same != (hash_of(g, false) == before))
        return "hash agrees with equal";
    return NULL;
}

static const char *check_pass(cfx_graph *g, const char *name)
{
    bool changed = false;
    const cfx_pass *pass = cfx_pass_find(name);
    size_t size = cfx_graph_size(g);
    if (cfx_pass_run(pass, g, NULL, NULL, &changed, NULL) != CFX_OK || !verifies(g))
        return "verify after a pass";
    if (!changed && cfx_graph_size(g) != size)
        return "a pass tells what it changed";
    if (pass->run(g, NULL, NULL, &changed, NULL) != CFX_OK || changed)
        return "a pass changes nothing the second time";
    return NULL;
}

/* Calls of nothing in the operator table cannot be lowered: then the graph stays as it was. */
static bool is_refused(cfx_graph *copy, cfx_graph *g, const cfx_pass *pass)
{
    return strcmp(pass->name, "lower") == 0 &&
           pass->run(copy, NULL, NULL, NULL, NULL) == CFX_E_TYPE && cfx_graph_equal(copy, g, false);
}

/* On a copy, so that each pass finds what the others would have changed. */
static const char *check_all_of(cfx_graph *g, const cfx_pass *pass)
{
    cfx_graph *copy = cfx_graph_clone(g, NULL, NULL);
    const bool needs_options = strcmp(pass->name, "unlift_params") == 0;
    const char *failed = NULL;
    if (!copy)
        failed = "clone";
    else if (!needs_options && !is_refused(copy, g, pass))
        failed = check_pass(copy, pass->name);
    if (failed)
        printf("    pass %s\n", pass->name);
    cfx_graph_release(copy);
    return failed;
}

static const char *check_copy_into(cfx_graph *g)
{
    cfx_graph *empty = cfx_graph_new(NULL, cfx_graph_host(g), NULL);
    cfx_node_map *map = cfx_node_map_new(NULL, NULL);
    cfx_value result = cfx_value_invalid();
    cfx_node *output = NULL;
    const char *failed = NULL;
    if (cfx_graph_copy_from(empty, g, map, &result, &output, NULL) != CFX_OK)
        failed = "copy_into";
    else if (!output || !cfx_graph_output(empty, result, NULL) || !verifies(empty))
        failed = "verify after copy_into";
    else if (cfx_graph_size(empty) != cfx_graph_size(g))
        failed = "copy_into copies every node";
    cfx_node_map_free(map);
    cfx_graph_release(empty);
    return failed;
}

/* The IR text is lossless: parsing it gives the same graph, which has the same text. */
static const char *check_text(cfx_graph *g)
{
    cfx_error err = {.status = CFX_OK};
    cfx_buffer text;
    cfx_buffer again;
    const char *failed = NULL;
    cfx_graph *parsed = NULL;
    cfx_buffer_init(&text, NULL);
    cfx_buffer_init(&again, NULL);
    if (cfx_graph_text(g, cfx_buffer_sink(&text), &err) != CFX_OK)
        failed = "text";
    else if (!(parsed = cfx_graph_parse(text.data, text.size, NULL, cfx_graph_host(g), &err)))
        failed = "parse(text(g))";
    else if (!verifies(parsed))
        failed = "verify of parse(text(g))";
    else if (!cfx_graph_equal(g, parsed, false) || hash_of(g, false) != hash_of(parsed, false))
        failed = "parse(text(g)) equals g";
    else if (cfx_graph_text(parsed, cfx_buffer_sink(&again), &err) != CFX_OK ||
             text.size != again.size || memcmp(text.data, again.data, text.size) != 0)
        failed = "text(parse(text(g))) equals text(g)";
    if (failed)
        printf("    %s\n%s", err.message, text.data);
    cfx_graph_release(parsed);
    cfx_buffer_free(&text);
    cfx_buffer_free(&again);
    return failed;
}

static const char *check_graph(cfx_graph *g, uint64_t seed)
{
    if (!verifies(g))
        return "verify of a new graph";
    cfx_graph *copy = cfx_graph_clone(g, NULL, NULL);
    const char *failed = check_clone(g, copy);
    failed = failed ? failed : check_text(g);
    failed = failed ? failed : check_edits(g, copy, seed);
    cfx_graph_release(copy);
    copy = cfx_graph_clone(g, NULL, NULL);
    failed = failed ? failed : check_clone(g, copy);
    failed = failed ? failed : check_text(g);
    failed = failed ? failed : check_copy_into(g);
    for (size_t i = 0; !failed && cfx_pass_get(i); i++)
        failed = check_all_of(g, cfx_pass_get(i));
    cfx_graph_release(copy);
    return failed;
}

static bool check_seed(uint64_t seed, random_stats *stats)
{
    cfx_error err = {.status = CFX_OK};
    cfx_graph *g = random_graph_new(seed, 4 + seed % 29, NULL, &err);
    if (!g) {
        printf("seed %llu: failed: build: %s\n", (unsigned long long)seed, err.message);
        return false;
    }
    random_stats_add(stats, g);
    const char *failed = check_graph(g, seed);
    if (failed)
        printf("seed %llu: failed: %s\n", (unsigned long long)seed, failed);
    cfx_graph_release(g);
    return !failed;
}

int main(int argc, char **argv)
{
    const char *full = getenv("CFX_FULL");
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    uint64_t count = full && strcmp(full, "1") == 0 ? 10000 : 2000;
    if (argc > 2)
        count = strtoull(argv[2], NULL, 10);
    else if (argc > 1)
        count = 1;
    size_t passed = 0;
    size_t failed = 0;
    random_stats stats = {0};
    setvbuf(stdout, NULL, _IOLBF, 0);  /* what was printed survives a crash */
    for (uint64_t seed = first; seed < first + count; seed++)
        ++*(check_seed(seed, &stats) ? &passed : &failed);
    random_stats_print(&stats);
    if (count >= 1000 && !random_stats_balanced(&stats)) {
        printf("something above is rarer than 1 %%\n");
        failed++;
    }
    printf("prop_ir: %zu passed, %zu failed\n", passed, failed);
    return failed != 0;
}
