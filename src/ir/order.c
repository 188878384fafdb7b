/* order.c - labels that grow along the list, so that "is a before b" is one comparison.
 *
 * New labels are taken from the gap between the neighbours. Where the gap is used up, the smallest
 * aligned range of labels around it that is sparse enough is spread evenly (Bender, Cole, Demaine,
 * Farach-Colton and Zito, "Two simplified algorithms for maintaining order in a list", 2002):
 * amortised O(log n) for an insertion, wherever the insertions are.
 */
#include "graph_impl.h"

static const uint64_t GAP = (uint64_t)1 << 32;     /* between nodes appended in a row */
static const uint64_t MIDDLE = (uint64_t)1 << 62;  /* room for appending and for prepending */
static const uint64_t LIMIT = (uint64_t)1 << 63;

static void spread(cfx_node *first, const cfx_node *end, uint64_t low, uint64_t step)
{
    for (cfx_node *n = first; n != end; n = n->next) {
        low += step;
        n->order = low;
    }
}

/* Makes room around `n`, which has no label yet, and labels it. */
static void relabel(cfx_node *n)
{
    cfx_node *root = &n->graph->root;
    uint64_t at = n->prev != root ? n->prev->order : n->next->order;
    cfx_node *left = n;
    cfx_node *right = n;
    size_t count = 1;
    double allowed = 1.0;
    for (unsigned bits = 1; bits < 63; bits++) {
        uint64_t size = (uint64_t)1 << bits;
        uint64_t low = at & ~(size - 1);
        while (left->prev != root && left->prev->order >= low) {
            left = left->prev;
            count++;
        }
        while (right->next != root && right->next->order - low < size) {
            right = right->next;
            count++;
        }
        allowed *= 1.4;  /* between 1 and 2: density must fall as ranges grow */
        if ((double)count < allowed && size / (count + 1) > 1) {
            spread(left, right->next, low, size / (count + 1));
            return;
        }
    }
    /* Every range is dense only with more nodes than memory can hold. */
    spread(root->next, root, 0, LIMIT / (n->graph->size + 2));
}

void cfxi_ir_order_assign(cfx_node *n)
{
    const cfx_node *root = &n->graph->root;
    bool first = n->prev == root;
    bool last = n->next == root;
    if (first && last) {
        n->order = MIDDLE;
    } else if (last && n->prev->order < LIMIT - GAP) {
        n->order = n->prev->order + GAP;
    } else if (first && n->next->order > GAP) {
        n->order = n->next->order - GAP;
    } else {
        uint64_t low = first ? 0 : n->prev->order;
        uint64_t high = last ? LIMIT : n->next->order;
        if (high - low >= 2)
            n->order = low + (high - low) / 2;
        else
            relabel(n);
    }
}
