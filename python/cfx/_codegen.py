class CodeGen:
    _body_transformer=None
PythonCode=_BoxedCodeGen=_CustomBuiltin=_PyTreeCodeGen=_PyTreeInfo=_register_custom_builtin=None
_custom_builtins=dtype_abbrs=inplace_methods=magic_methods=reflectable_magic_methods={}
