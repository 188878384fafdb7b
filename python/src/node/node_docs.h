/* node_docs.h - what help(cfx.Node) says. */
#ifndef NODE_DOCS_H
#define NODE_DOCS_H

#define NODE_DOC                                                                                   \
    "One instruction of a Graph.\n"                                                                \
    "\n"                                                                                           \
    "`op` is one of six words and says what `target` is and what the arguments mean:\n"            \
    "\n"                                                                                           \
    "    placeholder    an input; target is its name, args its default or ()\n"                    \
    "    get_attr       a parameter or other attribute; target is its path, 'fc.weight'\n"         \
    "    call_function  target(*args, **kwargs); target is a function, torch.relu\n"               \
    "    call_method    args[0].target(*args[1:], **kwargs); target is a name, 'relu'\n"           \
    "    call_module    a submodule is called; target is its path, 'layers.0'\n"                   \
    "    output         what the graph returns; it is args[0]\n"                                   \
    "\n"                                                                                           \
    "The nodes among args and kwargs, at any depth, are where the values come from;\n"             \
    "`users` is the other direction. Assign to args, kwargs and target to change a node;\n"        \
    "users follow. Create nodes with the methods of a graph,\n"                                    \
    "graph.call_function(torch.relu, (x,)), and remove them with graph.erase_node(node)\n"         \
    "when they have no users. After a change call gm.recompile().\n"                               \
    "\n"                                                                                           \
    "    >>> for node in gm.graph.nodes:\n"                                                        \
    "    ...     if node.op == 'call_function' and node.target is torch.relu:\n"                   \
    "    ...         node.target = torch.tanh\n"                                                   \
    "    >>> gm.recompile()"

#define NODE_DOC_OP                                                                                \
    "What the node does: 'placeholder', 'get_attr', 'call_function', 'call_method',\n"             \
    "'call_module' or 'output'."

#define NODE_DOC_TARGET                                                                            \
    "What is called or fetched: a function if op is 'call_function', else a string. May\n"         \
    "be assigned."

#define NODE_DOC_GRAPH                                                                             \
    "The Graph that the node belongs to."

#define NODE_DOC_NAME                                                                              \
    "The node's name, which is unique in its graph, and the variable in the generated\n"           \
    "code. A name that is taken or is not an identifier is changed: read it again after\n"         \
    "you assign it."

#define NODE_DOC_ARGS                                                                              \
    "The positional arguments: a tuple of nodes, numbers, strings, None, dtypes, slices,\n"        \
    "and lists, tuples and dicts of them. Immutable: assign a new tuple, or use\n"                 \
    "update_arg and insert_arg."

#define NODE_DOC_KWARGS                                                                            \
    "The keyword arguments: a dict from names to what args may hold. Immutable: assign a\n"        \
    "new dict, or use update_kwarg."

#define NODE_DOC_TYPE                                                                              \
    "The annotation of the value in the generated code (x : torch.Tensor), or None.\n"             \
    "Nothing checks it."

#define NODE_DOC_USERS                                                                             \
    "The nodes that use the value of this one, as the keys of a dict, in the order in\n"           \
    "which they began to: len(node.users), `in` and iteration work. Empty: the node can\n"         \
    "be erased."

#define NODE_DOC_INPUTS                                                                            \
    "The nodes among args and kwargs, at any depth, each once, in the order of their\n"            \
    "first use."

#define NODE_DOC_META                                                                              \
    "A dict for whatever tools want to say about the node. cfx and torch.fx use the keys\n"        \
    "'tensor_meta' and 'val' (shapes and dtypes), 'stack_trace', and 'nn_module_stack'\n"          \
    "(the modules that the call was made in). Copies of the node have a copy of it."

#define NODE_DOC_STACK_TRACE                                                                       \
    "Where the node was recorded, as in a traceback: meta['stack_trace'], or None."

#define NODE_DOC_NEXT                                                                              \
    "The next node in the order of execution; after the last one the graph's root, whose\n"        \
    "op is 'root'."

#define NODE_DOC_PREV                                                                              \
    "The previous node; before the first one the graph's root, whose op is 'root'."

#endif
