/* normalisation.c - normalisation and softmax against the plain reference: odd sizes, every layout,
 * NaN and infinity, on each instruction set. */
#include "row_agreement.h"

static const int last[] = {0, 2, 3, 1};

static cfx_datum vector(int64_t n) { return random_floats(&n, 1, (lie){0}); }

static cfx_datum spoiled(cfx_datum d)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    if (draw(5) == 0)
        spoil(d, bad[draw(3)]);
    return d;
}

TEST(groups_of_channels)
{
    for (int i = 0; i < 40; i++) {
        const int64_t groups = 1 + draw(6);
        const int64_t channels = groups * (1 + draw(12));
        const int64_t sizes[] = {1 + draw(3), channels, 1 + draw(i % 5 ? 9 : 60), 1 + draw(40)};
        cfx_datum args[] = {spoiled(random_floats(sizes, 4, (lie){draw(4) ? last : NULL, 0})),
                            cfx_datum_int(groups), draw(3) ? vector(channels) : cfx_datum_none(),
                            draw(3) ? vector(channels) : cfx_datum_none()};
        check_row(CFX_OPID_group_norm, args, 4, 2e-5);
        drop_all(args, 4);
    }
}

TEST(batches)
{
    for (int i = 0; i < 30; i++) {
        const int64_t sizes[] = {1 + draw(3), 1 + draw(70), 1 + draw(9), 1 + draw(9)};
        cfx_datum args[] = {spoiled(random_floats(sizes, 4, (lie){draw(3) ? last : NULL, 0})),
                            draw(3) ? vector(sizes[1]) : cfx_datum_none(),
                            draw(3) ? vector(sizes[1]) : cfx_datum_none(), vector(sizes[1]),
                            vector(sizes[1]), cfx_datum_bool(false), cfx_datum_float(0.1),
                            cfx_datum_float(1e-5), cfx_datum_bool(false)};
        float *var = (float *)args[4].as.tensor->data;
        for (int64_t k = 0; k < sizes[1]; k++)
            var[k] = fabsf(var[k]) + 0.1f;
        check_row(CFX_OPID_batch_norm, args, 9, 1e-5);
        drop_all(args, 5);
    }
}

TEST(layers)
{
    for (int i = 0; i < 40; i++) {
        const int64_t sizes[] = {1 + draw(5), 1 + draw(9), 1 + draw(i % 4 ? 70 : 3000)};
        static const int turned[] = {2, 0, 1};
        cfx_datum x = spoiled(random_floats(sizes, 3, (lie){draw(3) ? NULL : turned, 0}));
        cfx_datum args[] = {x, int_list(&sizes[2], 1), draw(3) ? vector(sizes[2])
                                                               : cfx_datum_none(),
                            i % 2 ? cfx_datum_none() : vector(sizes[2])};
        check_row(i % 2 ? CFX_OPID_rms_norm : CFX_OPID_layer_norm, args, i % 2 ? 3 : 4, 2e-5);
        drop_all(args, 4);
    }
}

TEST(softmax)
{
    for (int i = 0; i < 60; i++) {
        const int64_t sizes[] = {1 + draw(5), 1 + draw(i % 3 ? 30 : 300),
                                 1 + draw(i % 4 ? 40 : 2100)};
        static const int turned[] = {0, 2, 1};
        cfx_datum args[] = {spoiled(random_floats(sizes, 3, (lie){draw(3) ? NULL : turned, 0})),
                            cfx_datum_int(draw(3))};
        check_row(i % 2 ? CFX_OPID_log_softmax : CFX_OPID_softmax, args, 2, 3e-6);
        drop_all(args, 2);
    }
}
