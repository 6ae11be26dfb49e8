/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the grammar of statements. Blocks render where they stand; what needs
 * other templates (extends, include, import) is refused, there are none. */
#include "config.h"

#include "text/template.h"

#include "banned.h"

static struct radi_jnode *body(struct radi_jparse *p, const char *const *end);

static void want_end(struct radi_jparse *p)
{
    if (p->k->type != JT_BLOCK_END)
        radi_jp_fail(p, "expected the end of the statement block");
    p->k++;
}

static bool is_target_name(const struct radi_jtok *k)
{
    return k->type == JT_NAME && !radi_jp_is_name(k, "true") && !radi_jp_is_name(k, "false") &&
           !radi_jp_is_name(k, "none") && !radi_jp_is_name(k, "True") &&
           !radi_jp_is_name(k, "False") && !radi_jp_is_name(k, "None");
}

static const struct radi_jstr *want_name(struct radi_jparse *p)
{
    if (p->k->type != JT_NAME)
        radi_jp_fail(p, "expected a name");
    const struct radi_jtok *k = p->k++;
    return radi_jp_intern(p, k->s, k->n);
}

static struct radi_jnode *one_target(struct radi_jparse *p, bool with_ns);

/* A name, ns.attr, or names with commas between them, nested in parentheses. */
static struct radi_jnode *target(struct radi_jparse *p, bool with_ns)
{
    struct radi_jnode *first = one_target(p, with_ns), **tail = &first->next;
    if (!radi_jp_is_op(p->k, ","))
        return first;
    struct radi_jnode *t = radi_jp_node(p, JN_TUPLE, first->line);
    t->a = first;
    while (radi_jp_skip_op(p, ",")) {
        if (!is_target_name(p->k) && !radi_jp_is_op(p->k, "("))
            break;
        if (radi_jp_is_name(p->k, "in"))
            break;
        *tail = one_target(p, with_ns);
        tail = &(*tail)->next;
    }
    return t;
}

static struct radi_jnode *one_target(struct radi_jparse *p, bool with_ns)
{
    struct radi_jnode *n;
    uint32_t line = p->k->line;
    if (radi_jp_skip_op(p, "(")) {
        radi_jp_enter(p);
        n = target(p, with_ns);
        p->depth--;
        radi_jp_want_op(p, ")");
        return n;
    }
    if (!is_target_name(p->k))
        radi_jp_fail(p, "cannot assign to this: want a name");
    bool ns = with_ns && radi_jp_is_op(p->k + 1, ".");
    n = radi_jp_node(p, ns ? JN_NSREF : JN_NAME, line);
    n->name = want_name(p);
    if (ns) {
        p->k++;
        n->v = radi_jv_str(want_name(p));
    }
    return n;
}

static struct radi_jnode *parse_for(struct radi_jparse *p, uint32_t line)
{
    static const char *const ends[] = { "endfor", "else", NULL };
    struct radi_jnode *n = radi_jp_node(p, JN_FOR, line);

    n->a = target(p, false);
    if (!radi_jp_skip_name(p, "in"))
        radi_jp_fail(p, "expected 'in'");
    n->b = radi_jp_node(p, JN_ARG, line);
    n->b->a = radi_jp_tuple(p, false, false, "recursive");
    if (radi_jp_skip_name(p, "if"))
        n->b->b = radi_jp_expr(p, true);
    n->flag = radi_jp_skip_name(p, "recursive");
    want_end(p);
    p->loops++;
    n->c = body(p, ends);
    p->loops--;
    if (radi_jp_skip_name(p, "else")) {
        want_end(p);
        n->d = body(p, ends);
    }
    if (!radi_jp_skip_name(p, "endfor"))
        radi_jp_fail(p, "expected 'endfor'");
    return n;
}

static struct radi_jnode *parse_if(struct radi_jparse *p, uint32_t line)
{
    static const char *const ends[] = { "elif", "else", "endif", NULL };
    struct radi_jnode *n = radi_jp_node(p, JN_IF, line), **tail = &n->a;

    do {
        *tail = radi_jp_node(p, JN_ARG, p->k->line);
        (*tail)->a = radi_jp_tuple(p, false, false, NULL);
        want_end(p);
        (*tail)->b = body(p, ends);
        tail = &(*tail)->next;
    } while (radi_jp_skip_name(p, "elif"));
    if (radi_jp_skip_name(p, "else")) {
        want_end(p);
        n->b = body(p, ends + 2);
    }
    if (!radi_jp_skip_name(p, "endif"))
        radi_jp_fail(p, "expected 'endif'");
    return n;
}

static struct radi_jnode *parse_set(struct radi_jparse *p, uint32_t line)
{
    static const char *const ends[] = { "endset", NULL };
    struct radi_jnode *to = target(p, true), *n;

    if (radi_jp_skip_op(p, "=")) {
        n = radi_jp_node(p, JN_SET, line);
        n->a = to;
        n->b = radi_jp_tuple(p, true, false, NULL);
        return n;
    }
    n = radi_jp_node(p, JN_SETBLOCK, line);
    n->a = to;
    n->c = radi_jp_filters(p, NULL, false);
    want_end(p);
    n->b = body(p, ends);
    p->k++;
    return n;
}

static bool reads(const struct rad_template *t, const struct radi_jstr *name)
{
    for (const struct radi_jname *r = t->reads; r; r = r->next)
        if (r->name == name)
            return true;
    return false;
}

/* Parameters and body; whether the body reads caller, varargs, kwargs decides
 * which arguments the macro takes. */
static struct radi_jnode *macro(struct radi_jparse *p, uint32_t line,
                                const struct radi_jstr *name, bool params,
                                const char *const *end, struct radi_jnode *call_expr)
{
    struct radi_jnode *n = radi_jp_node(p, JN_MACRO, line), **tail = &n->a;
    int loops = p->loops;

    n->name = name;
    if (params) {
        radi_jp_want_op(p, "(");
        while (!radi_jp_is_op(p->k, ")")) {
            if (n->a) {
                radi_jp_want_op(p, ",");
                if (radi_jp_is_op(p->k, ")"))
                    break;
            }
            *tail = radi_jp_node(p, JN_ARG, p->k->line);
            (*tail)->name = want_name(p);
            if (radi_jp_skip_op(p, "="))
                (*tail)->a = radi_jp_expr(p, true);
            tail = &(*tail)->next;
        }
        p->k++;
    }
    if (call_expr) {                /* {% call(params) expression %} */
        call_expr->a = radi_jp_expr(p, true);
        if (call_expr->a->op != JN_CALL)
            radi_jp_fail(p, "expected a call");
    }
    want_end(p);
    struct radi_jname *before = p->t->reads;
    p->t->reads = NULL;
    p->loops = 0;
    n->b = body(p, end);
    p->loops = loops;
    p->k++;
    n->flag = (uint8_t)((reads(p->t, p->t->caller) ? J_USES_CALLER : 0) |
                        (reads(p->t, p->t->varargs) ? J_USES_VARARGS : 0) |
                        (reads(p->t, p->t->kwargs) ? J_USES_KWARGS : 0));
    struct radi_jname *last = p->t->reads;
    if (last) {
        while (last->next)
            last = last->next;
        last->next = before;
    } else
        p->t->reads = before;
    return n;
}

static struct radi_jnode *parse_macro(struct radi_jparse *p, uint32_t line)
{
    static const char *const ends[] = { "endmacro", NULL };
    return macro(p, line, want_name(p), true, ends, NULL);
}

static struct radi_jnode *parse_call(struct radi_jparse *p, uint32_t line)
{
    static const char *const ends[] = { "endcall", NULL };
    struct radi_jnode *n = radi_jp_node(p, JN_CALLBLOCK, line);
    n->b = macro(p, line, p->t->caller, radi_jp_is_op(p->k, "("), ends, n);
    return n;
}

static struct radi_jnode *parse_filter(struct radi_jparse *p, uint32_t line)
{
    static const char *const ends[] = { "endfilter", NULL };
    struct radi_jnode *n = radi_jp_node(p, JN_FILTERBLOCK, line);
    n->a = radi_jp_filters(p, NULL, true);
    want_end(p);
    n->b = body(p, ends);
    p->k++;
    return n;
}

static struct radi_jnode *parse_with(struct radi_jparse *p, uint32_t line)
{
    static const char *const ends[] = { "endwith", NULL };
    struct radi_jnode *n = radi_jp_node(p, JN_WITH, line), **tail = &n->a;
    while (p->k->type != JT_BLOCK_END) {
        if (n->a)
            radi_jp_want_op(p, ",");
        *tail = radi_jp_node(p, JN_ARG, p->k->line);
        (*tail)->a = one_target(p, false);
        radi_jp_want_op(p, "=");
        (*tail)->b = radi_jp_expr(p, true);
        tail = &(*tail)->next;
    }
    want_end(p);
    n->b = body(p, ends);
    p->k++;
    return n;
}

static struct radi_jnode *scoped(struct radi_jparse *p, uint32_t line, const char *const *ends)
{
    struct radi_jnode *n = radi_jp_node(p, JN_SCOPE, line);
    want_end(p);
    n->a = body(p, ends);
    p->k++;
    return n;
}

static struct radi_jnode *parse_generation(struct radi_jparse *p, uint32_t line)
{
    static const char *const ends[] = { "endgeneration", NULL };
    int loops = p->loops;
    p->loops = 0;
    struct radi_jnode *n = scoped(p, line, ends);
    p->loops = loops;
    return n;
}

static struct radi_jnode *parse_block(struct radi_jparse *p, uint32_t line)
{
    static const char *const ends[] = { "endblock", NULL };
    int loops = p->loops;
    (void)want_name(p);
    (void)(radi_jp_skip_name(p, "scoped") || radi_jp_skip_name(p, "required"));
    p->loops = 0;
    struct radi_jnode *n = scoped(p, line, ends);
    p->loops = loops;
    if (p->k->type == JT_NAME)
        p->k++;                     /* {% endblock name %} */
    return n;
}

static struct radi_jnode *parse_autoescape(struct radi_jparse *p, uint32_t line)
{
    static const char *const ends[] = { "endautoescape", NULL };
    struct radi_jnode *e = radi_jp_expr(p, true);
    if (e->op != JN_CONST || radi_j_truth(e->v)) {
        p->ev->line = line;
        radi_j_fail(p->ev, RAD_E_UNSUPPORTED, "autoescape is not supported");
    }
    return scoped(p, line, ends);
}

static struct radi_jnode *parse_print(struct radi_jparse *p, uint32_t line)
{
    struct radi_jnode *head = NULL, **tail = &head;
    while (p->k->type != JT_BLOCK_END) {
        if (head)
            radi_jp_want_op(p, ",");
        *tail = radi_jp_node(p, JN_PRINT, line);
        (*tail)->a = radi_jp_expr(p, true);
        tail = &(*tail)->next;
    }
    return head ? head : radi_jp_node(p, JN_SCOPE, line);
}

static struct radi_jnode *parse_jump(struct radi_jparse *p, uint32_t line)
{
    bool is_break = radi_jp_is_name(p->k - 1, "break");
    if (!p->loops)
        radi_jp_fail(p, "'%s' outside of a loop", is_break ? "break" : "continue");
    return radi_jp_node(p, is_break ? JN_BREAK : JN_CONTINUE, line);
}

static const struct {
    const char *name;
    struct radi_jnode *(*parse)(struct radi_jparse *p, uint32_t line);
} statements[] = {
    { "if", parse_if },           { "set", parse_set },     { "for", parse_for },
    { "macro", parse_macro },     { "break", parse_jump },  { "continue", parse_jump },
    { "generation", parse_generation },                     { "filter", parse_filter },
    { "call", parse_call },       { "with", parse_with },   { "block", parse_block },
    { "print", parse_print },     { "autoescape", parse_autoescape },
};

static struct radi_jnode *statement(struct radi_jparse *p)
{
    static const char *const refused[] = { "include", "import", "from", "extends" };
    const struct radi_jtok *k = p->k;
    struct radi_jnode *n = NULL;

    if (k->type != JT_NAME)
        radi_jp_fail(p, "tag name expected");
    p->k++;
    for (size_t i = 0; i < RADI_COUNT(statements); i++)
        if (radi_jp_is_name(k, statements[i].name)) {
            n = statements[i].parse(p, k->line);
            if (p->k->type != JT_BLOCK_END)
                radi_jp_fail(p, "'%s': expected the end of the statement block",
                             statements[i].name);
            p->k++;
            return n;
        }
    p->k = k;
    for (size_t i = 0; i < RADI_COUNT(refused); i++)
        if (radi_jp_is_name(k, refused[i])) {
            p->ev->line = k->line;
            radi_j_fail(p->ev, RAD_E_UNSUPPORTED, "'%s': there are no other templates",
                        refused[i]);
        }
    radi_jp_fail(p, "encountered unknown tag '%.*s'", (int)RADI_MIN(k->n, (size_t)40), k->s);
}

static bool ends_body(const struct radi_jparse *p, const char *const *end)
{
    for (; *end; end++)
        if (radi_jp_is_name(p->k, *end))
            return true;
    return false;
}

/* Statements up to {% end %}, whose name is then the current token. */
static struct radi_jnode *body(struct radi_jparse *p, const char *const *end)
{
    struct radi_jnode *head = NULL, **tail = &head;

    radi_jp_enter(p);
    for (;;) {
        const struct radi_jtok *k = p->k;
        if (k->type == JT_EOF) {
            if (end[0])
                radi_jp_fail(p, "unexpected end of template, want '%s'", end[0]);
            break;
        }
        p->k++;
        if (k->type == JT_DATA) {
            *tail = radi_jp_node(p, JN_TEXT, k->line);
            (*tail)->v = radi_jv_borrow(p->ev, k->s, k->n);
        } else if (k->type == JT_VAR_BEGIN) {
            *tail = radi_jp_node(p, JN_PRINT, k->line);
            (*tail)->a = radi_jp_tuple(p, true, false, NULL);
            if (p->k->type != JT_VAR_END)
                radi_jp_fail(p, "expected the end of the print statement");
            p->k++;
        } else {
            if (ends_body(p, end))
                break;
            *tail = statement(p);
        }
        while (*tail)
            tail = &(*tail)->next;
    }
    p->depth--;
    return head;
}

void radi_j_parse(struct radi_jev *ev, struct rad_template *t, const struct radi_jtok *k)
{
    static const char *const none[] = { NULL };
    struct radi_jparse p = { .ev = ev, .t = t, .k = k };
    t->loop = radi_jp_intern(&p, "loop", 4);
    t->caller = radi_jp_intern(&p, "caller", 6);
    t->varargs = radi_jp_intern(&p, "varargs", 7);
    t->kwargs = radi_jp_intern(&p, "kwargs", 6);
    t->body = body(&p, none);
}
