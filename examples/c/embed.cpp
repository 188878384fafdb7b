// embed.cpp - cfx in a program in C++: the headers as they are, and owners that let go by
// themselves.
//
//     c++ -std=c++11 embed.cpp $(pkg-config --cflags --libs cfx) -o embed
//
// From C++20 on, options have names as in C; before, they are set in a struct.
#include <cfx/cfx.h>

#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>

// ---- owners: what is made is freed when it goes out of scope

struct free_scope {
    void operator()(cfx_scope *s) const { cfx_scope_free(s); }
};
using scope_ptr = std::unique_ptr<cfx_scope, free_scope>;

static scope_ptr make_scope(uint64_t seed)
{
    cfx_error err = cfx_error();
    cfx_scope_options options = cfx_scope_options();
    options.seed = seed;
    scope_ptr s(cfx_scope_new(&options, &err));
    if (!s)
        throw std::runtime_error(err.message);
    return s;
}

// Errors stay in the scope: one look at the end is enough.
static void check(const scope_ptr &s)
{
    if (!cfx_scope_ok(s.get()))
        throw std::runtime_error(cfx_scope_error(s.get())->message);
}

// ---- text goes where one wants it

static cfx_status append(void *text, const char *data, size_t size)
{
    try {
        static_cast<std::string *>(text)->append(data, size);
    } catch (const std::bad_alloc &) {
        return CFX_E_NOMEM;  // an exception must not pass through C
    }
    return CFX_OK;
}

static std::string show(const scope_ptr &s, cfx_var v)
{
    std::string text;
    cfx_sink out = {append, &text};
    cfx_var_print(s.get(), v, out);
    return text;
}

// ---- a model

static cfx_var forward(cfx_scope *s, cfx_module *self, cfx_var x)
{
    x = cfx_call_child(s, self, "fc", x);
#if __cplusplus >= 202002L
    return cfx_clamp(s, x, .min = cfx_v(0), .max = cfx_v(1));
#else
    cfx_clamp_args limits = cfx_clamp_args();
    limits.min = cfx_v(0);
    limits.max = cfx_v(1);
    return cfx_clamp_at(CFX_HERE(s), x, limits);
#endif
}

static cfx_class net_class()
{
    cfx_class c = cfx_class();
    c.name = "Net";
    c.forward = forward;
    return c;
}

int main()
{
    try {
        static const cfx_class net = net_class();
        scope_ptr s = make_scope(1);
        cfx_module *m = cfx_module_new(s.get(), &net);
        cfx_module_add(s.get(), m, "fc", cfx_nn_linear(s.get(), 3, 2));
        cfx_var x = cfx_ones(s.get(), cfx_ints(s.get(), 1, 3));
        std::string computed = show(s, cfx_call(s.get(), m, x));

        cfx_module *captured = cfx_trace(s.get(), m);
        check(s);
        std::string text;
        cfx_sink out = {append, &text};
        cfx_graph_text(cfx_module_graph(captured), out, nullptr);
        std::string again = show(s, cfx_call(s.get(), captured, x));
        check(s);
        std::cout << text << "captured and computed agree: " << std::boolalpha
                  << (computed == again) << "\n";

        cfx_call(s.get(), m, cfx_ones(s.get(), cfx_ints(s.get(), 1, 4)));  // does not fit
        check(s);
    } catch (const std::exception &e) {
        std::cout << "caught: " << e.what() << "\n";
        return 0;
    }
    return 1;
}
