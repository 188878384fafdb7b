a = f'a{b!r:>{c}}d{{e}}' "f" f"{x = }" rf'\d{y:=5}'
b = f"{f'{f"{1}"}'}" f'''{
a # c
:
}'''
c = f'{a["b"]:{d:{e}}}' F"\N{DIGIT ONE}" f'{lambda: 1}'
