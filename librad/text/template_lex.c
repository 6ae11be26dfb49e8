/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the way from template text to tokens: delimiters, white space control
 * (trim_blocks and lstrip_blocks are always on), raw blocks, comments, literals.
 * The text must be UTF-8; line ends become "\n" and one at the very end is
 * dropped, as Jinja does. */
#include "config.h"

#include <stdlib.h>

#include "text/template.h"

#include "banned.h"

enum { MAX_OPEN = 256 };

struct lex {
    struct radi_jev *ev;
    const char *s;
    size_t n, i;
    uint32_t line;
    size_t counted;             /* newlines before this place are in `line` */
    bool line_start;            /* the last delimiter ate a newline */
    struct radi_jtok *tok;
    size_t count, cap;
    char open[MAX_OPEN];        /* brackets that are open inside a tag */
    int depth;
};

static void count_lines(struct lex *l, size_t to)
{
    for (; l->counted < to; l->counted++)
        l->line += l->s[l->counted] == '\n';
    l->ev->line = l->line;
}

static struct radi_jtok *push(struct lex *l, enum radi_jtok_type type)
{
    if (l->count == l->cap) {
        size_t cap = l->cap ? l->cap * 2 : 256;
        struct radi_jtok *t = radi_j_alloc(l->ev, cap, sizeof *t);
        if (l->count)
            memcpy(t, l->tok, l->count * sizeof *t);
        l->tok = t;
        l->cap = cap;
    }
    struct radi_jtok *t = &l->tok[l->count++];
    t->type = (uint8_t)type;
    t->line = l->line;
    return t;
}

static _Noreturn void fail(struct lex *l, const char *what)
{
    count_lines(l, RADI_MIN(l->i, l->n));
    radi_j_fail(l->ev, RAD_E_FORMAT, "%s", what);
}

static bool at(const struct lex *l, size_t i, const char *s)
{
    size_t n = strlen(s);
    return i <= l->n && l->n - i >= n && memcmp(l->s + i, s, n) == 0;
}

static void data(struct lex *l, size_t from, size_t to)
{
    if (to <= from)
        return;
    struct radi_jtok *t = push(l, JT_DATA);
    t->s = l->s + from;
    t->n = to - from;
}

/* The text before a tag: "-" takes all white space from its end; otherwise a
 * block or comment that stands first on its line takes the blanks before it. */
static size_t text_end(const struct lex *l, size_t from, size_t to, char sign, bool variable)
{
    if (sign == '-')
        return from + radi_j_rstrip(l->s + from, to - from);
    if (sign == '+' || variable)
        return to;
    size_t bol = to;
    while (bol > from && l->s[bol - 1] != '\n')
        bol--;
    if ((bol > from || l->line_start) && radi_j_lstrip(l->s + bol, to - bol) == to - bol)
        return bol;
    return to;
}

/* After a tag that closes with `close` at l->i: "-" takes the white space that
 * follows, a plain one a single newline (variables and raw do not). */
static bool close_tag(struct lex *l, const char *close, bool trim, bool plus)
{
    size_t i = l->i;
    char sign = i < l->n ? l->s[i] : 0;
    if (sign == '-' && at(l, i + 1, close)) {
        i += 1 + strlen(close);
        i += radi_j_lstrip(l->s + i, l->n - i);
    } else if (plus && sign == '+' && at(l, i + 1, close))
        i += 1 + strlen(close);
    else if (at(l, i, close)) {
        i += strlen(close);
        i += trim && i < l->n && l->s[i] == '\n';
    } else
        return false;
    l->i = i;
    l->line_start = l->s[i - 1] == '\n';
    return true;
}

static size_t skip_space(const struct lex *l, size_t i)
{
    return i + radi_j_lstrip(l->s + i, l->n - i);
}

static char sign_at(const struct lex *l, size_t i)
{
    return i < l->n && (l->s[i] == '-' || l->s[i] == '+') ? l->s[i] : 0;
}

/* "{%" sign "word" at i; *end is behind the word. */
static bool tag_word(const struct lex *l, size_t i, const char *word, size_t *end)
{
    if (!at(l, i, "{%"))
        return false;
    i += 2;
    i = skip_space(l, i + (sign_at(l, i) != 0));
    if (!at(l, i, word))
        return false;
    *end = skip_space(l, i + strlen(word));
    return true;
}

/* True when {% raw %} stands at l->i; then the text in it is a token too. */
static bool raw(struct lex *l, size_t from)
{
    size_t body, end, i = l->i;
    if (!tag_word(l, i, "raw", &end) || !(at(l, end, "%}") || at(l, end, "-%}")))
        return false;
    data(l, from, text_end(l, from, i, sign_at(l, i + 2), false));
    l->i = end;
    (void)close_tag(l, "%}", false, false);
    count_lines(l, l->i);
    body = l->i;
    for (i = body; i < l->n; i++) {
        if (l->s[i] != '{' || !tag_word(l, i, "endraw", &end))
            continue;
        l->i = end;
        if (!at(l, end, "%}") && !at(l, end, "-%}") && !at(l, end, "+%}"))
            continue;
        data(l, body, text_end(l, body, i, sign_at(l, i + 2), false));
        (void)close_tag(l, "%}", true, true);
        count_lines(l, l->i);
        return true;
    }
    l->i = l->n;
    fail(l, "missing end of raw directive");
}

/* ---- literals */
static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
                                                                              : -1;
}

static size_t escape(struct lex *l, size_t i, size_t end, struct radi_jsb *b)
{
    static const char from[] = "abfnrtv\\'\"", to[] = "\a\b\f\n\r\t\v\\'\"";
    char c = l->s[i];
    const char *p = memchr(from, c, sizeof from - 1);
    int digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    uint32_t cp = 0;

    if (p) {
        radi_jsb_addc(b, to[p - from]);
        return i + 1;
    }
    if (c == '\n')
        return i + 1;
    if (c >= '0' && c <= '7') {
        size_t stop = RADI_MIN(end, i + 3);
        for (; i < stop && l->s[i] >= '0' && l->s[i] <= '7'; i++)
            cp = cp * 8 + (uint32_t)(l->s[i] - '0');
        radi_jsb_cp(b, cp);
        return i;
    }
    if (c == 'N' && i + 1 < end && l->s[i + 1] == '{') {
        count_lines(l, i);
        radi_j_fail(l->ev, RAD_E_UNSUPPORTED, "character names in strings are not supported");
    }
    if (!digits) {
        radi_jsb_addc(b, '\\');     /* unknown ones stay as they are */
        return i;
    }
    l->i = i;
    for (i++; digits; digits--, i++) {
        int h = i < end ? hex_digit(l->s[i]) : -1;
        if (h < 0)
            fail(l, "truncated escape in a string");
        cp = cp << 4 | (uint32_t)h;
    }
    if (cp > 0x10ffff)
        fail(l, "illegal Unicode character in a string");
    radi_jsb_cp(b, cp);
    return i;
}

static void string(struct lex *l)
{
    size_t end = l->i + 1;
    char q = l->s[l->i];
    bool plain = true;
    while (end < l->n && l->s[end] != q) {
        plain &= l->s[end] != '\\';
        end += l->s[end] == '\\' ? 2 : 1;
    }
    if (end >= l->n)
        fail(l, "unexpected end of a string");
    struct radi_jtok *t = push(l, JT_STR);
    if (plain)
        t->v = radi_jv_borrow(l->ev, l->s + l->i + 1, end - l->i - 1);
    else {
        struct radi_jsb b = { .ev = l->ev };
        for (size_t i = l->i + 1; i < end;) {
            if (l->s[i] == '\\')
                i = escape(l, i + 1, end, &b);
            else
                radi_jsb_addc(&b, l->s[i++]);
        }
        t->v = radi_jsb_done(&b);
    }
    l->i = end + 1;
    count_lines(l, l->i);
}

/* Copies digits that may have single underscores between them. */
static size_t digits(const struct lex *l, size_t i, struct radi_jsb *b)
{
    for (; i < l->n; i++) {
        char c = l->s[i];
        if (c >= '0' && c <= '9')
            radi_jsb_addc(b, c);
        else if (c != '_' || b->len == 0 || i + 1 >= l->n || l->s[i + 1] < '0' ||
                 l->s[i + 1] > '9' || l->s[i - 1] == '_')
            break;
    }
    return i;
}

static bool based(struct lex *l, struct radi_jv *v)
{
    int64_t x = 0;
    size_t i = l->i + 2, start = i;
    char c = l->i + 1 < l->n ? (char)(l->s[l->i + 1] | 32) : 0;
    int base = c == 'x' ? 16 : c == 'o' ? 8 : c == 'b' ? 2 : 0;
    if (l->s[l->i] != '0' || !base)
        return false;
    for (; i < l->n; i++) {
        int h = hex_digit(l->s[i]);
        if (l->s[i] == '_')
            continue;
        if (h < 0 || h >= base)
            break;
        if (__builtin_mul_overflow(x, base, &x) || __builtin_add_overflow(x, h, &x))
            fail(l, "integer of more than 64 bits");
    }
    if (i == start)
        return false;
    *v = radi_jv_int(x);
    l->i = i;
    return true;
}

static void number(struct lex *l)
{
    struct radi_jsb b = { .ev = l->ev };
    struct radi_jv v = { 0 };
    bool real = false;

    if (!based(l, &v)) {
        bool after_dot = l->i && l->s[l->i - 1] == '.';
        size_t i = digits(l, l->i, &b), k;
        size_t whole = i, whole_len = b.len;
        if (!after_dot && i + 1 < l->n && l->s[i] == '.' && l->s[i + 1] >= '0' &&
            l->s[i + 1] <= '9') {
            radi_jsb_addc(&b, '.');
            i = digits(l, i + 1, &b);
            real = true;
        }
        if (!after_dot && i < l->n && (l->s[i] | 32) == 'e') {
            k = i + 1 + (sign_at(l, i + 1) != 0);
            if (k < l->n && l->s[k] >= '0' && l->s[k] <= '9') {
                radi_jsb_add(&b, l->s + i, k - i);
                i = digits(l, k, &b);
                real = true;
            }
        }
        if (!real) {
            b.len = whole_len;
            i = whole;
        }
        radi_jsb_addc(&b, 0);
        if (real) {
            double f;
            if (!radi_parse_f64(b.p, &f))
                fail(l, "number is out of range");
            v = radi_jv_float(f);
        } else {
            int64_t x;
            if (b.p[0] == '0' && strspn(b.p, "0") != whole_len)
                fail(l, "integer with a leading zero");
            v = radi_parse_i64(b.p, &x) ? radi_jv_int(x)
                                        : radi_jv_text(l->ev, b.p, whole_len);
            if (v.kind == J_STR)
                v.kind = J_BIG;
        }
        l->i = i;
    }
    push(l, JT_NUM)->v = v;
}

static void bracket(struct lex *l, char c)
{
    if (c == '(' || c == '[' || c == '{') {
        if (l->depth == MAX_OPEN)
            fail(l, "too many open brackets");
        l->open[l->depth++] = c == '(' ? ')' : c == '[' ? ']' : '}';
    } else if (c == ')' || c == ']' || c == '}') {
        char text[] = "unexpected ' '";
        text[12] = c;
        if (l->depth == 0 || l->open[--l->depth] != c)
            fail(l, text);
    }
}

static void operator_(struct lex *l)
{
    static const char *const ops[] = { "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*",
                                       "%", "~", "[", "]", "(", ")", "{", "}", ">", "<", "=",
                                       ".", ":", "|", ",", ";" };
    for (size_t k = 0; k < RADI_COUNT(ops); k++) {
        if (!at(l, l->i, ops[k]))
            continue;
        bracket(l, ops[k][0]);
        struct radi_jtok *t = push(l, JT_OP);
        t->op[0] = ops[k][0];
        t->op[1] = ops[k][1];
        l->i += strlen(ops[k]);
        return;
    }
    char text[64];
    uint32_t cp;
    size_t n = radi_utf8_next(l->s + l->i, l->n - l->i, &cp);
    struct radi_jsb b = { .ev = l->ev };
    radi_jsb_adds(&b, "unexpected char '");
    radi_jsb_add(&b, l->s + l->i, n);
    radi_jsb_adds(&b, "'");
    memcpy(text, b.p, b.len);
    text[b.len] = 0;
    fail(l, text);
}

/* The inside of {{ }} or {% %}, to the end of the tag. */
static void tag(struct lex *l, bool variable)
{
    size_t start = l->i;
    for (;;) {
        l->i = skip_space(l, l->i);
        count_lines(l, RADI_MIN(l->i, l->n));
        if (l->i >= l->n) {
            l->i = start;
            fail(l, "unexpected end of template inside a tag");
        }
        if (l->depth == 0 && close_tag(l, variable ? "}}" : "%}", !variable, !variable)) {
            push(l, variable ? JT_VAR_END : JT_BLOCK_END);
            count_lines(l, l->i);
            return;
        }
        uint32_t cp;
        size_t k = radi_utf8_next(l->s + l->i, l->n - l->i, &cp), from = l->i;
        if (cp - '0' < 10u)
            number(l);
        else if (cp == '\'' || cp == '"')
            string(l);
        else if (radi_j_ident(cp, true)) {
            do
                l->i += k;
            while (l->i < l->n && (k = radi_utf8_next(l->s + l->i, l->n - l->i, &cp)) &&
                   radi_j_ident(cp, false));
            struct radi_jtok *t = push(l, JT_NAME);
            t->s = l->s + from;
            t->n = l->i - from;
        } else
            operator_(l);
    }
}

static void comment(struct lex *l, size_t from)
{
    data(l, from, text_end(l, from, l->i, sign_at(l, l->i + 2), false));
    for (l->i += sign_at(l, l->i + 2) ? 3 : 2; l->i < l->n; l->i++)
        if (close_tag(l, "#}", true, true)) {
            count_lines(l, l->i);
            return;
        }
    fail(l, "missing end of comment tag");
}

struct radi_jtok *radi_j_lex(struct radi_jev *ev, const char *text, size_t n)
{
    struct lex l = { .ev = ev, .line = 1, .line_start = true };
    char *s = radi_j_alloc(ev, n, 1);
    size_t from = 0;

    for (size_t i = 0; i < n; i++) {
        bool cr = text[i] == '\r';
        s[l.n++] = cr ? '\n' : text[i];
        i += cr && i + 1 < n && text[i + 1] == '\n';
    }
    l.n -= l.n && s[l.n - 1] == '\n';
    l.s = s;
    while (l.i < l.n) {
        char c = l.i + 1 < l.n && s[l.i] == '{' ? s[l.i + 1] : 0;
        if (c == '#')
            comment(&l, from);
        else if (c == '{' || (c == '%' && !raw(&l, from))) {
            bool variable = c == '{';
            char sign = sign_at(&l, l.i + 2);
            data(&l, from, text_end(&l, from, l.i, sign, variable));
            count_lines(&l, l.i);
            push(&l, variable ? JT_VAR_BEGIN : JT_BLOCK_BEGIN);
            l.i += sign ? 3 : 2;
            tag(&l, variable);
        } else if (c != '%') {
            l.i++;
            continue;
        }
        from = l.i;
    }
    data(&l, from, l.n);
    count_lines(&l, l.n);
    push(&l, JT_EOF);
    return l.tok;
}
