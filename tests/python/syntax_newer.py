"""What Python 3.13 makes of sources that older versions refuse, or place otherwise: f-strings, type
parameters. [(source, dump)]; the dump is that of ast.dump(ast.parse(source),
include_attributes=True), with L, C, EL and EC for lineno, col_offset, end_lineno, end_col_offset.
"""

NEWER = [
    ('type X = int',
     "Module(body=[TypeAlias(name=Name(id='X', ctx=Store(), L=1, C=5, EL=1, EC=6), value=Name(id"
     "='int', ctx=Load(), L=1, C=9, EL=1, EC=12), L=1, C=0, EL=1, EC=12)])"),
    ('type X[T: int, *Ts, **P] = dict[T, *Ts]',
     "Module(body=[TypeAlias(name=Name(id='X', ctx=Store(), L=1, C=5, EL=1, EC=6), type_params=["
     "TypeVar(name='T', bound=Name(id='int', ctx=Load(), L=1, C=10, EL=1, EC=13), L=1, C=7, EL=1"
     ", EC=13), TypeVarTuple(name='Ts', L=1, C=15, EL=1, EC=18), ParamSpec(name='P', L=1, C=20, "
     "EL=1, EC=23)], value=Subscript(value=Name(id='dict', ctx=Load(), L=1, C=27, EL=1, EC=31), "
     "slice=Tuple(elts=[Name(id='T', ctx=Load(), L=1, C=32, EL=1, EC=33), Starred(value=Name(id="
     "'Ts', ctx=Load(), L=1, C=36, EL=1, EC=38), ctx=Load(), L=1, C=35, EL=1, EC=38)], ctx=Load("
     '), L=1, C=32, EL=1, EC=38), ctx=Load(), L=1, C=27, EL=1, EC=39), L=1, C=0, EL=1, EC=39)])'),
    ('type = type(type)',
     "Module(body=[Assign(targets=[Name(id='type', ctx=Store(), L=1, C=0, EL=1, EC=4)], value=Ca"
     "ll(func=Name(id='type', ctx=Load(), L=1, C=7, EL=1, EC=11), args=[Name(id='type', ctx=Load"
     '(), L=1, C=12, EL=1, EC=16)], L=1, C=7, EL=1, EC=17), L=1, C=0, EL=1, EC=17)])'),
    ('type X[T = int, *U = *V, **W = [A]] = T',
     "Module(body=[TypeAlias(name=Name(id='X', ctx=Store(), L=1, C=5, EL=1, EC=6), type_params=["
     "TypeVar(name='T', default_value=Name(id='int', ctx=Load(), L=1, C=11, EL=1, EC=14), L=1, C"
     "=7, EL=1, EC=14), TypeVarTuple(name='U', default_value=Starred(value=Name(id='V', ctx=Load"
     '(), L=1, C=22, EL=1, EC=23), ctx=Load(), L=1, C=21, EL=1, EC=23), L=1, C=16, EL=1, EC=23),'
     " ParamSpec(name='W', default_value=List(elts=[Name(id='A', ctx=Load(), L=1, C=32, EL=1, EC"
     "=33)], ctx=Load(), L=1, C=31, EL=1, EC=34), L=1, C=25, EL=1, EC=34)], value=Name(id='T', c"
     'tx=Load(), L=1, C=38, EL=1, EC=39), L=1, C=0, EL=1, EC=39)])'),
    ('class A[T](B[T], k=1): pass',
     "Module(body=[ClassDef(name='A', bases=[Subscript(value=Name(id='B', ctx=Load(), L=1, C=11,"
     " EL=1, EC=12), slice=Name(id='T', ctx=Load(), L=1, C=13, EL=1, EC=14), ctx=Load(), L=1, C="
     "11, EL=1, EC=15)], keywords=[keyword(arg='k', value=Constant(value=1, L=1, C=19, EL=1, EC="
     '20), L=1, C=17, EL=1, EC=20)], body=[Pass(L=1, C=23, EL=1, EC=27)], type_params=[TypeVar(n'
     "ame='T', L=1, C=8, EL=1, EC=9)], L=1, C=0, EL=1, EC=27)])"),
    ('def f[T: (int, str)](x: T) -> T: return x',
     "Module(body=[FunctionDef(name='f', args=arguments(args=[arg(arg='x', annotation=Name(id='T"
     "', ctx=Load(), L=1, C=24, EL=1, EC=25), L=1, C=21, EL=1, EC=25)]), body=[Return(value=Name"
     "(id='x', ctx=Load(), L=1, C=40, EL=1, EC=41), L=1, C=33, EL=1, EC=41)], returns=Name(id='T"
     "', ctx=Load(), L=1, C=30, EL=1, EC=31), type_params=[TypeVar(name='T', bound=Tuple(elts=[N"
     "ame(id='int', ctx=Load(), L=1, C=10, EL=1, EC=13), Name(id='str', ctx=Load(), L=1, C=15, E"
     'L=1, EC=18)], ctx=Load(), L=1, C=9, EL=1, EC=19), L=1, C=6, EL=1, EC=19)], L=1, C=0, EL=1,'
     ' EC=41)])'),
    ('async def f[*Ts](*a: *Ts): pass',
     "Module(body=[AsyncFunctionDef(name='f', args=arguments(vararg=arg(arg='a', annotation=Star"
     "red(value=Name(id='Ts', ctx=Load(), L=1, C=22, EL=1, EC=24), ctx=Load(), L=1, C=21, EL=1, "
     'EC=24), L=1, C=18, EL=1, EC=24)), body=[Pass(L=1, C=27, EL=1, EC=31)], type_params=[TypeVa'
     "rTuple(name='Ts', L=1, C=12, EL=1, EC=15)], L=1, C=0, EL=1, EC=31)])"),
    ("f'a{b}c{{d}}'",
     "Module(body=[Expr(value=JoinedStr(values=[Constant(value='a', L=1, C=2, EL=1, EC=3), Forma"
     "ttedValue(value=Name(id='b', ctx=Load(), L=1, C=4, EL=1, EC=5), conversion=-1, L=1, C=3, E"
     "L=1, EC=6), Constant(value='c{d}', L=1, C=6, EL=1, EC=12)], L=1, C=0, EL=1, EC=13), L=1, C"
     '=0, EL=1, EC=13)])'),
    ("'x' f'a{b}' 'c' 'd'",
     "Module(body=[Expr(value=JoinedStr(values=[Constant(value='xa', L=1, C=0, EL=1, EC=7), Form"
     "attedValue(value=Name(id='b', ctx=Load(), L=1, C=8, EL=1, EC=9), conversion=-1, L=1, C=7, "
     "EL=1, EC=10), Constant(value='cd', L=1, C=12, EL=1, EC=19)], L=1, C=0, EL=1, EC=19), L=1, "
     'C=0, EL=1, EC=19)])'),
    ("f'a{x = !r:>{w}}b'",
     "Module(body=[Expr(value=JoinedStr(values=[Constant(value='ax = ', L=1, C=2, EL=1, EC=8), F"
     "ormattedValue(value=Name(id='x', ctx=Load(), L=1, C=4, EL=1, EC=5), conversion=114, format"
     "_spec=JoinedStr(values=[Constant(value='>', L=1, C=11, EL=1, EC=12), FormattedValue(value="
     "Name(id='w', ctx=Load(), L=1, C=13, EL=1, EC=14), conversion=-1, L=1, C=12, EL=1, EC=15)],"
     " L=1, C=10, EL=1, EC=15), L=1, C=3, EL=1, EC=16), Constant(value='b', L=1, C=16, EL=1, EC="
     '17)], L=1, C=0, EL=1, EC=18), L=1, C=0, EL=1, EC=18)])'),
    ("f'{x=}'",
     "Module(body=[Expr(value=JoinedStr(values=[Constant(value='x=', L=1, C=3, EL=1, EC=5), Form"
     "attedValue(value=Name(id='x', ctx=Load(), L=1, C=3, EL=1, EC=4), conversion=114, L=1, C=2,"
     ' EL=1, EC=6)], L=1, C=0, EL=1, EC=7), L=1, C=0, EL=1, EC=7)])'),
    ("f'{x:}'",
     "Module(body=[Expr(value=JoinedStr(values=[FormattedValue(value=Name(id='x', ctx=Load(), L="
     '1, C=3, EL=1, EC=4), conversion=-1, format_spec=JoinedStr(L=1, C=4, EL=1, EC=5), L=1, C=2,'
     ' EL=1, EC=6)], L=1, C=0, EL=1, EC=7), L=1, C=0, EL=1, EC=7)])'),
    ("f''",
     'Module(body=[Expr(value=JoinedStr(L=1, C=0, EL=1, EC=3), L=1, C=0, EL=1, EC=3)])'),
    ("f'' 'a'",
     "Module(body=[Expr(value=JoinedStr(values=[Constant(value='a', L=1, C=4, EL=1, EC=7)], L=1,"
     ' C=0, EL=1, EC=7), L=1, C=0, EL=1, EC=7)])'),
    ("'a' f'' 'b'",
     "Module(body=[Expr(value=JoinedStr(values=[Constant(value='ab', L=1, C=0, EL=1, EC=11)], L="
     '1, C=0, EL=1, EC=11), L=1, C=0, EL=1, EC=11)])'),
    ("u'a' f'b{c}' u'd'",
     "Module(body=[Expr(value=JoinedStr(values=[Constant(value='ab', kind='u', L=1, C=0, EL=1, E"
     "C=8), FormattedValue(value=Name(id='c', ctx=Load(), L=1, C=9, EL=1, EC=10), conversion=-1,"
     " L=1, C=8, EL=1, EC=11), Constant(value='d', kind='u', L=1, C=13, EL=1, EC=17)], L=1, C=0,"
     ' EL=1, EC=17), L=1, C=0, EL=1, EC=17)])'),
    ("f'{a['b']}'",
     "Module(body=[Expr(value=JoinedStr(values=[FormattedValue(value=Subscript(value=Name(id='a'"
     ", ctx=Load(), L=1, C=3, EL=1, EC=4), slice=Constant(value='b', L=1, C=5, EL=1, EC=8), ctx="
     'Load(), L=1, C=3, EL=1, EC=9), conversion=-1, L=1, C=2, EL=1, EC=10)], L=1, C=0, EL=1, EC='
     '11), L=1, C=0, EL=1, EC=11)])'),
    ('f"{f"{f"{1}"}"}"',
     'Module(body=[Expr(value=JoinedStr(values=[FormattedValue(value=JoinedStr(values=[Formatted'
     'Value(value=JoinedStr(values=[FormattedValue(value=Constant(value=1, L=1, C=9, EL=1, EC=10'
     '), conversion=-1, L=1, C=8, EL=1, EC=11)], L=1, C=6, EL=1, EC=12), conversion=-1, L=1, C=5'
     ', EL=1, EC=13)], L=1, C=3, EL=1, EC=14), conversion=-1, L=1, C=2, EL=1, EC=15)], L=1, C=0,'
     ' EL=1, EC=16), L=1, C=0, EL=1, EC=16)])'),
    ('f\'{"\\n".join(a)}\'',
     'Module(body=[Expr(value=JoinedStr(values=[FormattedValue(value=Call(func=Attribute(value=C'
     "onstant(value='\\n', L=1, C=3, EL=1, EC=7), attr='join', ctx=Load(), L=1, C=3, EL=1, EC=12"
     "), args=[Name(id='a', ctx=Load(), L=1, C=13, EL=1, EC=14)], L=1, C=3, EL=1, EC=15), conver"
     'sion=-1, L=1, C=2, EL=1, EC=16)], L=1, C=0, EL=1, EC=17), L=1, C=0, EL=1, EC=17)])'),
    ("f'''{\na # comment\n=\n}'''",
     "Module(body=[Expr(value=JoinedStr(values=[Constant(value='\\na \\n=\\n', L=1, C=5, EL=4, E"
     "C=0), FormattedValue(value=Name(id='a', ctx=Load(), L=2, C=0, EL=2, EC=1), conversion=114,"
     ' L=1, C=4, EL=4, EC=1)], L=1, C=0, EL=4, EC=4), L=1, C=0, EL=4, EC=4)])'),
    ("f'{a:{b:{c}}}'",
     "Module(body=[Expr(value=JoinedStr(values=[FormattedValue(value=Name(id='a', ctx=Load(), L="
     '1, C=3, EL=1, EC=4), conversion=-1, format_spec=JoinedStr(values=[FormattedValue(value=Nam'
     "e(id='b', ctx=Load(), L=1, C=6, EL=1, EC=7), conversion=-1, format_spec=JoinedStr(values=["
     "FormattedValue(value=Name(id='c', ctx=Load(), L=1, C=9, EL=1, EC=10), conversion=-1, L=1, "
     'C=8, EL=1, EC=11)], L=1, C=7, EL=1, EC=11), L=1, C=5, EL=1, EC=12)], L=1, C=4, EL=1, EC=12'
     '), L=1, C=2, EL=1, EC=13)], L=1, C=0, EL=1, EC=14), L=1, C=0, EL=1, EC=14)])'),
    ("f'{*a, b}'",
     'Module(body=[Expr(value=JoinedStr(values=[FormattedValue(value=Tuple(elts=[Starred(value=N'
     "ame(id='a', ctx=Load(), L=1, C=4, EL=1, EC=5), ctx=Load(), L=1, C=3, EL=1, EC=5), Name(id="
     "'b', ctx=Load(), L=1, C=7, EL=1, EC=8)], ctx=Load(), L=1, C=3, EL=1, EC=8), conversion=-1,"
     ' L=1, C=2, EL=1, EC=9)], L=1, C=0, EL=1, EC=10), L=1, C=0, EL=1, EC=10)])'),
    ("f'{a!r:{b}}' rf'\\d{c}'",
     "Module(body=[Expr(value=JoinedStr(values=[FormattedValue(value=Name(id='a', ctx=Load(), L="
     '1, C=3, EL=1, EC=4), conversion=114, format_spec=JoinedStr(values=[FormattedValue(value=Na'
     "me(id='b', ctx=Load(), L=1, C=8, EL=1, EC=9), conversion=-1, L=1, C=7, EL=1, EC=10)], L=1,"
     " C=6, EL=1, EC=10), L=1, C=2, EL=1, EC=11), Constant(value='\\\\d', L=1, C=16, EL=1, EC=18"
     "), FormattedValue(value=Name(id='c', ctx=Load(), L=1, C=19, EL=1, EC=20), conversion=-1, L"
     '=1, C=18, EL=1, EC=21)], L=1, C=0, EL=1, EC=22), L=1, C=0, EL=1, EC=22)])'),
    ("f'{(lambda x: 1)}{yield}'",
     'Module(body=[Expr(value=JoinedStr(values=[FormattedValue(value=Lambda(args=arguments(args='
     "[arg(arg='x', L=1, C=11, EL=1, EC=12)]), body=Constant(value=1, L=1, C=14, EL=1, EC=15), L"
     '=1, C=4, EL=1, EC=15), conversion=-1, L=1, C=2, EL=1, EC=17), FormattedValue(value=Yield(L'
     '=1, C=18, EL=1, EC=23), conversion=-1, L=1, C=17, EL=1, EC=24)], L=1, C=0, EL=1, EC=25), L'
     '=1, C=0, EL=1, EC=25)])'),
    ("x = (f'a'\n     f'{b}'\n     'c')",
     "Module(body=[Assign(targets=[Name(id='x', ctx=Store(), L=1, C=0, EL=1, EC=1)], value=Joine"
     "dStr(values=[Constant(value='a', L=1, C=7, EL=1, EC=8), FormattedValue(value=Name(id='b', "
     "ctx=Load(), L=2, C=8, EL=2, EC=9), conversion=-1, L=2, C=7, EL=2, EC=10), Constant(value='"
     "c', L=3, C=5, EL=3, EC=8)], L=1, C=5, EL=3, EC=8), L=1, C=0, EL=3, EC=9)])"),
    ("f'{a:x{{y}}z}'",
     "Module(body=[Expr(value=JoinedStr(values=[FormattedValue(value=Name(id='a', ctx=Load(), L="
     "1, C=3, EL=1, EC=4), conversion=-1, format_spec=JoinedStr(values=[Constant(value='x', L=1,"
     " C=5, EL=1, EC=6), FormattedValue(value=Set(elts=[Name(id='y', ctx=Load(), L=1, C=8, EL=1,"
     " EC=9)], L=1, C=7, EL=1, EC=10), conversion=-1, L=1, C=6, EL=1, EC=11), Constant(value='z'"
     ', L=1, C=11, EL=1, EC=12)], L=1, C=4, EL=1, EC=12), L=1, C=2, EL=1, EC=13)], L=1, C=0, EL='
     '1, EC=14), L=1, C=0, EL=1, EC=14)])'),
    ("f'{a!r }{ b }'",
     "Module(body=[Expr(value=JoinedStr(values=[FormattedValue(value=Name(id='a', ctx=Load(), L="
     "1, C=3, EL=1, EC=4), conversion=114, L=1, C=2, EL=1, EC=8), FormattedValue(value=Name(id='"
     "b', ctx=Load(), L=1, C=10, EL=1, EC=11), conversion=-1, L=1, C=8, EL=1, EC=13)], L=1, C=0,"
     ' EL=1, EC=14), L=1, C=0, EL=1, EC=14)])'),
    ("f'é{ü}'",
     "Module(body=[Expr(value=JoinedStr(values=[Constant(value='é', L=1, C=2, EL=1, EC=4), Forma"
     "ttedValue(value=Name(id='ü', ctx=Load(), L=1, C=5, EL=1, EC=7), conversion=-1, L=1, C=4, E"
     'L=1, EC=8)], L=1, C=0, EL=1, EC=9), L=1, C=0, EL=1, EC=9)])'),
    ("f'{x:%H:%M}'",
     "Module(body=[Expr(value=JoinedStr(values=[FormattedValue(value=Name(id='x', ctx=Load(), L="
     "1, C=3, EL=1, EC=4), conversion=-1, format_spec=JoinedStr(values=[Constant(value='%H:%M', "
     'L=1, C=5, EL=1, EC=10)], L=1, C=4, EL=1, EC=10), L=1, C=2, EL=1, EC=11)], L=1, C=0, EL=1, '
     'EC=12), L=1, C=0, EL=1, EC=12)])'),
    ("f'{a:=5}{(b:=6)}'",
     "Module(body=[Expr(value=JoinedStr(values=[FormattedValue(value=Name(id='a', ctx=Load(), L="
     "1, C=3, EL=1, EC=4), conversion=-1, format_spec=JoinedStr(values=[Constant(value='=5', L=1"
     ', C=5, EL=1, EC=7)], L=1, C=4, EL=1, EC=7), L=1, C=2, EL=1, EC=8), FormattedValue(value=Na'
     "medExpr(target=Name(id='b', ctx=Store(), L=1, C=10, EL=1, EC=11), value=Constant(value=6, "
     'L=1, C=13, EL=1, EC=14), L=1, C=10, EL=1, EC=14), conversion=-1, L=1, C=8, EL=1, EC=16)], '
     'L=1, C=0, EL=1, EC=17), L=1, C=0, EL=1, EC=17)])'),
]
