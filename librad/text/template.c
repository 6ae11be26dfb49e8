/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the public calls: compiling, rendering, chats. Each call makes one
 * evaluation state, one arena and the one setjmp that failures come back to. */
#include "config.h"

#include "text/template.h"

#include "banned.h"

enum {
    DEF_DEPTH = 100,
    DEF_STEPS = 10 * 1000 * 1000,
    DEF_MEMORY = 64 << 20,
    DEF_OUTPUT = 16 << 20,
    MAX_TEMPLATE = 8 << 20,
    COMPILE_MEMORY = 256 << 20,
};

void rad_chat_text_release(struct rad_chat_text *t)
{
    radi_free(t->s);
    *t = (struct rad_chat_text){ 0 };
}

static void set_limits(struct radi_jev *ev, const struct rad_template_limits *l)
{
    ev->lim = (struct rad_template_limits){ sizeof ev->lim, DEF_DEPTH, DEF_STEPS, DEF_MEMORY,
                                            DEF_OUTPUT };
    if (!l)
        return;
    if (l->depth)
        ev->lim.depth = RADI_MIN(l->depth, 1000u);
    if (l->steps)
        ev->lim.steps = l->steps;
    if (l->memory_bytes)
        ev->lim.memory_bytes = l->memory_bytes;
    if (l->output_bytes)
        ev->lim.output_bytes = l->output_bytes;
}

void rad_template_free(struct rad_template *t)
{
    if (!t)
        return;
    radi_map_free(t->names);
    radi_arena_release(&t->arena);
    radi_free(t);
}

/* Functions with the setjmp hold no locals that change after it. */
static rad_status guarded_compile(struct radi_jev *ev, struct rad_template *t, const char *text,
                                  size_t len)
{
    if (setjmp(ev->env))
        return ev->st;
    if (len && !radi_utf8_valid(text, len))
        radi_j_fail(ev, RAD_E_FORMAT, "template is not UTF-8");
    radi_j_parse(ev, t, radi_j_lex(ev, text, len));
    return RAD_OK;
}

rad_status rad_template_compile(const char *text, size_t len, struct rad_template **out,
                                struct rad_err *err)
{
    *out = NULL;
    if (len > MAX_TEMPLATE)
        return rad_fail(err, RAD_E_FULL, "template of %zu bytes, at most %d are taken", len,
                        MAX_TEMPLATE);
    struct radi_jev *ev = radi_calloc(1, sizeof *ev);
    struct rad_template *t = radi_calloc(1, sizeof *t);
    rad_status st = RAD_E_NOMEM;
    if (t)
        t->names = radi_map_new(64);
    if (!ev || !t || !t->names) {
        st = rad_fail(err, RAD_E_NOMEM, "out of memory for a template");
        goto out;
    }
    radi_arena_init(&t->arena, COMPILE_MEMORY);
    set_limits(ev, NULL);
    ev->lim.steps *= 10;
    ev->lim.memory_bytes = COMPILE_MEMORY;
    ev->arena = &t->arena;
    ev->err = err;
    ev->line = 1;
    st = guarded_compile(ev, t, text, len);
out:
    radi_free(ev);
    if (st) {
        rad_template_free(t);
        return st;
    }
    *out = t;
    return RAD_OK;
}

bool rad_template_reads(const struct rad_template *t, const char *name)
{
    for (const struct radi_jname *r = t->reads; r; r = r->next)
        if (radi_j_streq(r->name, name))
            return true;
    return false;
}

/* ---- rendering. `chat` wins over the variables' text. */
struct vars {
    const char *text;
    size_t len;
    const struct rad_chat *chat;
};

static struct radi_jv json_of(struct radi_jev *ev, const char *text, size_t len, const char *what,
                              bool object)
{
    if (!text && !object)
        return radi_jv_none();
    struct radi_jv v = radi_j_from_json(ev, text, len, what);
    bool ok = object ? v.kind == J_DICT : v.kind == J_SEQ || v.kind == J_NONE;
    if (!ok) {
        ev->st = rad_fail(ev->err, RAD_E_FORMAT, "%s: found a value of type %s, want an %s", what,
                          radi_j_type(v), object ? "object" : "array");
        longjmp(ev->env, 1);
    }
    return v;
}

static void put(struct radi_jev *ev, struct radi_jdict *d, const char *name, struct radi_jv v)
{
    radi_j_put(ev, d, radi_jv_borrow(ev, name, strlen(name)), v);
}

static struct radi_jdict *chat_vars(struct radi_jev *ev, const struct rad_chat *c)
{
    struct radi_jdict *d = radi_j_dict(ev, 16);
    const struct { const char *name, *text; } tokens[] = {
        { "bos_token", c->bos_token }, { "eos_token", c->eos_token },
        { "pad_token", c->pad_token }, { "unk_token", c->unk_token },
    };
    const struct { const char *name, *text; } lists[] = {
        { "messages", c->messages }, { "tools", c->tools }, { "documents", c->documents },
    };
    for (size_t i = 0; i < RADI_COUNT(lists); i++)
        put(ev, d, lists[i].name,
            json_of(ev, lists[i].text, lists[i].text ? strlen(lists[i].text) : 0, lists[i].name,
                    false));
    put(ev, d, "add_generation_prompt", radi_jv_bool(c->add_generation_prompt));
    for (size_t i = 0; i < RADI_COUNT(tokens); i++)
        if (tokens[i].text) {
            size_t n = strlen(tokens[i].text);
            if (!radi_utf8_valid(tokens[i].text, n)) {
                ev->st = rad_fail(ev->err, RAD_E_FORMAT, "%s: not UTF-8", tokens[i].name);
                longjmp(ev->env, 1);
            }
            put(ev, d, tokens[i].name, radi_jv_borrow(ev, tokens[i].text, n));
        }
    if (c->kwargs) {
        struct radi_jv v = json_of(ev, c->kwargs, strlen(c->kwargs), "kwargs", true);
        for (size_t i = 0; i < v.d->n; i++)
            radi_j_put(ev, d, v.d->e[i].key, v.d->e[i].v);
    }
    return d;
}

static rad_status guarded_render(struct radi_jev *ev, const struct vars *in)
{
    if (setjmp(ev->env))
        return ev->st;
    ev->vars = in->chat ? chat_vars(ev, in->chat)
                        : json_of(ev, in->text, in->len, "variables", true).d;
    size_t limit;
    if (!radi_add_size(ev->arena->used, (size_t)ev->lim.memory_bytes, &limit))
        limit = 0;
    ev->arena->limit = limit;       /* what the variables took is on top */
    radi_j_exec_root(ev, ev->t->body);
    return RAD_OK;
}

static rad_status render(const struct rad_template *t, const struct vars *in,
                         const struct rad_template_limits *limits,
                         const struct rad_template_clock *clock, struct rad_chat_text *out,
                         struct rad_err *err)
{
    struct radi_arena arena;
    struct radi_jev *ev = radi_calloc(1, sizeof *ev);

    *out = (struct rad_chat_text){ 0 };
    if (!ev)
        return rad_fail(err, RAD_E_NOMEM, "out of memory for a rendering");
    radi_arena_init(&arena, 0);
    set_limits(ev, limits);
    ev->t = t;
    ev->arena = &arena;
    ev->err = err;
    ev->clock = clock;
    rad_status st = guarded_render(ev, in);
    if (!st) {
        out->len = ev->out.len;
        radi_str_add(&ev->out, "", 0);      /* an empty text is not NULL */
        out->s = ev->out.s ? radi_str_take(&ev->out) : radi_strdup("");
        if (!out->s) {
            out->len = 0;
            st = rad_fail(err, RAD_E_NOMEM, "out of memory for a rendering");
        }
    }
    radi_str_release(&ev->out);
    radi_arena_release(&arena);
    radi_free(ev);
    return st;
}

rad_status rad_template_render(const struct rad_template *t, const char *vars, size_t vars_len,
                               const struct rad_template_limits *limits,
                               const struct rad_template_clock *clock, struct rad_chat_text *out,
                               struct rad_err *err)
{
    struct vars in = { vars, vars_len, NULL };
    return render(t, &in, limits, clock, out, err);
}

rad_status rad_chat_render(const struct rad_template *t, const struct rad_chat *c,
                           struct rad_chat_text *out, struct rad_err *err)
{
    struct vars in = { NULL, 0, c };
    if (c->size != sizeof *c || !c->messages) {
        *out = (struct rad_chat_text){ 0 };
        return rad_fail(err, RAD_E_ARG, c->messages ? "struct rad_chat has another size"
                                                    : "no messages");
    }
    return render(t, &in, c->limits, c->clock, out, err);
}
