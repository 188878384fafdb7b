/* script_lex.c - the lexer for Python source: src/script/syntax/{lex*,name_set,source_text}.c. */
#include "script/syntax/lex.h"
#include "test_alloc.h"

/* The tokens of a source, each as its message has it, a '|' between lines. */
typedef struct lexed {
    char text[2000];
    cfx_error error;
} lexed;

static cfx_status lex_all(const cfx_allocator *allocator, const char *source, lexed *out)
{
    cfxi_arena arena;
    cfxi_names names = {.arena = &arena};
    static cfxi_pylex lex;
    const char *text;
    size_t size;
    char word[CFXI_TOKEN_TEXT];
    cfx_status status = CFX_E_NOMEM;
    out->text[0] = '\0';
    out->error.status = CFX_OK;
    cfxi_base_arena_init(&arena, cfxi_base_allocator(allocator));
    if (!cfxi_syntax_names_init(&names, &arena))
        goto done;
    status =
        cfxi_syntax_source_copy(&arena, source, strlen(source), false, &text, &size, &out->error);
    if (status != CFX_OK)
        goto done;
    cfxi_syntax_lex_init(&lex, text, size, &names, cfxi_base_allocator(allocator));
    for (bool more = true; more;) {
        if (!cfxi_syntax_lex_line(&lex)) {
            status = CFX_E_NOMEM;
            break;
        }
        for (size_t i = 0; i < lex.count; i++) {
            const cfxi_token *t = &lex.tokens[i];
            const bool shown = t->kind == CFXI_TOK_NAME || t->kind == CFXI_TOK_NUMBER ||
                               t->kind == CFXI_TOK_STRING || t->kind == CFXI_TOK_FTEXT;
            if (shown)
                snprintf(word, sizeof word, "%.*s", (int)t->size, text + t->start);
            else
                cfxi_syntax_token_text((cfxi_token_kind)t->kind, word);
            snprintf(out->text + strlen(out->text), sizeof out->text - strlen(out->text), "%s%s",
                     word, t->kind == CFXI_TOK_NEWLINE ? "|" : " ");
            more = t->kind != CFXI_TOK_END && t->kind != CFXI_TOK_ERROR;
        }
    }
    if (lex.error.status != CFX_OK)
        out->error = lex.error;
    cfxi_syntax_lex_free(&lex);
done:
    cfxi_syntax_names_free(&names);
    cfxi_base_arena_release(&arena);
    return status;
}

static const char *tokens(const char *source)
{
    static lexed out;
    CHECK_INT_EQ(CFX_OK, lex_all(NULL, source, &out));
    return out.text;
}

#define EOL "the end of the line|"
#define IN "an indented line "
#define OUT "the end of the indented block "
#define END "the end of the file "

TEST(words_and_signs)
{
    CHECK_STR_EQ("a '**=' 'not' nota '->' '...' '.' '//=' '>>' '>=' ':=' '!=' " EOL END,
                 tokens("a **= not nota -> ... . //= >> >= := !="));
    CHECK_STR_EQ("1_0 0xff 1e5 .5 1j 1.e-3 '.' a " EOL END,
                 tokens("1_0 0xff 1e5 .5 1j 1.e-3 .a"));
    CHECK_STR_EQ("'' \"\" rb'a' " EOL END, tokens("'' \"\" rb'a'"));
}

TEST(lines)
{
    CHECK_STR_EQ(END, tokens(""));
    CHECK_STR_EQ(END, tokens("  # nothing\n\n\t"));
    CHECK_STR_EQ("a " EOL IN "b " EOL OUT "c " EOL END, tokens("a\n  b\n# d\nc"));
    CHECK_STR_EQ("a " EOL IN "b " EOL IN "c " EOL OUT OUT END, tokens("a\n\tb\n\t c\n"));
    CHECK_STR_EQ("'(' a ')' b " EOL END, tokens("(\n  a\n # c\n) \\\nb"));
    CHECK_STR_EQ("a " EOL "b " EOL "c " EOL END, tokens("a\r\nb\rc"));
}

TEST(f_strings)
{
    CHECK_STR_EQ("an f-string a '{' b '!' r ':' > '{' c '}' '}' the end of the f-string " EOL END,
                 tokens("f'a{b!r:>{c}}'"));
    CHECK_STR_EQ("an f-string {{}} '{' an f-string '{' 'x' '}' the end of the f-string '}' the "
                 "end of the f-string " EOL END, tokens("f'{{}}{f'{'x'}'}'"));
}

static void check_error(const char *source, unsigned line, unsigned column, const char *what)
{
    lexed out;
    lex_all(NULL, source, &out);
    CHECK_INT_EQ(line, out.error.line);
    CHECK_INT_EQ(column, out.error.column);
    if (!CHECK(strstr(out.error.message, what) != NULL))
        printf("    got %s\n", out.error.message);
}

TEST(errors)
{
    check_error("a\n  b\n c", 3, 2, "unindent does not match");
    check_error("if a:\n\tb\n        c", 3, 9, "inconsistent use of tabs");
    check_error("x = (a]", 1, 7, "closing ']' does not match opening '('");
    check_error("x = [\n(a)", 1, 5, "'[' was never closed");
    check_error("'abc", 1, 1, "unterminated string literal");
    check_error("a\n'''b\n", 2, 1, "unterminated triple-quoted");
    check_error("f'{a", 1, 1, "'{' was never closed");
    check_error("f'}'", 1, 3, "single '}' is not allowed");
    check_error("1__0", 1, 3, "invalid decimal literal");
    check_error("0o8", 1, 3, "invalid octal literal");
    check_error("012", 1, 1, "leading zeros");
    check_error("a $ b", 1, 3, "invalid character '$'");
    check_error("a\xc2\xa0= 1", 1, 2, "(U+00A0)");
    check_error("a = 'x\xff'", 1, 7, "not UTF-8");
    check_error("a \\ b", 1, 4, "unexpected character");
}

TEST(encodings)
{
    lexed out;
    CHECK_STR_EQ("a " EOL END, tokens("\xef\xbb\xbf" "a"));
    CHECK_STR_EQ("'\xc3\xa9' " EOL END, tokens("# coding: latin-1\n'\xe9'"));
    CHECK_INT_EQ(CFX_E_UNSUPPORTED, lex_all(NULL, "#\n# -*- coding: koi8-r -*-\n", &out));
    CHECK(strstr(out.error.message, "'koi8-r'") != NULL);
    CHECK_STR_EQ("a " EOL END, tokens("a\n# coding: koi8-r"));
}

TEST(names_are_one)
{
    cfxi_arena arena;
    cfxi_names names;
    char name[24];
    cfxi_base_arena_init(&arena, cfxi_base_allocator(NULL));
    REQUIRE(cfxi_syntax_names_init(&names, &arena));
    CHECK_INT_EQ(CFXI_TOK_yield - CFXI_FIRST_KEYWORD, cfxi_syntax_names_add(&names, "yield", 5));
    CHECK_INT_EQ(CFXI_SOFT_match, cfxi_syntax_names_add(&names, "match", 5));
    const uint32_t first = cfxi_syntax_names_add(&names, "relu", 4);
    for (int i = 0; i < 5000; i++) {
        snprintf(name, sizeof name, "name_%d", i);
        CHECK_INT_EQ(first + 1 + i, cfxi_syntax_names_add(&names, name, strlen(name)));
    }
    CHECK_INT_EQ(first, cfxi_syntax_names_add(&names, "relu(x)", 4));
    CHECK_STR_EQ("relu", names.entries[first].text);
    CHECK_INT_EQ(CFXI_TOK_if - CFXI_FIRST_KEYWORD, cfxi_syntax_names_add(&names, "if", 2));
    cfxi_syntax_names_free(&names);
    cfxi_base_arena_release(&arena);
}

static cfx_status lex_short(const cfx_allocator *a, void *arg)
{
    (void)arg;
    lexed out;
    return lex_all(a, "# coding: latin-1\nx = f'{a}' 'b\xe9'\n", &out);
}

TEST(memory) { CHECK(test_oom_sweep(lex_short, NULL) > 3); }
