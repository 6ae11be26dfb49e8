/* SPDX-License-Identifier: Apache-2.0 */
/* The Jinja interpreter's own words: values, syntax tree, evaluation state.
 * Private to librad/text/template*.c.
 *
 * Memory: everything a compilation makes lives in the template's arena,
 * everything a rendering makes in the rendering's; nothing is freed one by
 * one. Because of that a failure may jump: radi_j_fail() records the error and
 * goes back to the one setjmp of the compile or render call, so the dozens of
 * small functions in between return values instead of statuses. Nothing that
 * holds a resource of its own (file, lock, heap block) may stand between.
 *
 * Values are immutable, namespaces, generators and loop state excepted, so
 * strings and lists share memory freely. */
#ifndef RADI_TEMPLATE_H
#define RADI_TEMPLATE_H

#include <setjmp.h>

#include <rad/chat.h>

#include "base/base.h"

/* ---- values */
enum radi_jkind {
    J_MISSING,              /* an argument that was not given */
    J_UNDEF,
    J_NONE,
    J_BOOL,
    J_INT,
    J_BIG,                  /* an integer beyond 64 bits, as its text */
    J_FLOAT,
    J_STR,
    J_SEQ,
    J_DICT,
    J_NS,                   /* namespace(): a dict that can change */
    J_FUNC,                 /* macro, global, bound method */
    J_LOOP
};

struct radi_jbuf {          /* bytes that strings share; may grow at its end */
    char *p;
    size_t used, cap;
};
struct radi_jstr {
    const char *p;          /* UTF-8, not terminated */
    size_t len, chars;
    struct radi_jbuf *buf;  /* NULL: never appended in place */
};

struct radi_jv {
    uint8_t kind;
    bool markup;            /* J_STR: came out of safe or escape */
    union {
        bool b;
        int64_t i;
        double f;
        const struct radi_jstr *s;
        struct radi_jseq *q;
        struct radi_jdict *d;
        struct radi_jfunc *fn;
        struct radi_jloop *loop;
        const struct radi_jundef *u;
    };
};

enum radi_jseq_type {
    JQ_LIST, JQ_TUPLE, JQ_RANGE, JQ_KEYS, JQ_VALUES, JQ_ITEMS, JQ_GEN, JQ_REV
};
struct radi_jseq {
    uint8_t type;
    size_t n, pos;          /* pos: how far a generator was read */
    struct radi_jv *v;
    int64_t range[3];
};

struct radi_jpair {
    struct radi_jv key, v;
    uint64_t hash;
};
struct radi_jdict {
    size_t n, cap;
    struct radi_jpair *e;   /* in order of insertion */
    uint32_t *slot;         /* open addressing, entry + 1; NULL while small */
    size_t slots;           /* power of two */
};

struct radi_jundef {
    const struct radi_jstr *name;   /* NULL: `key` was not a string */
    const char *hint;               /* or the whole message */
    bool has_obj, unsafe;           /* unsafe: the sandbox forbids it */
    struct radi_jv obj, key;
};

struct radi_jkw {
    const struct radi_jstr *name;
    struct radi_jv v;
};
struct radi_jargs {
    size_t n, nkw;
    struct radi_jv *v;
    struct radi_jkw *kw;
};

struct radi_jev;
/* `self` is what a filter, test or method applies to; `a` has one value per
 * parameter (J_MISSING if not given); `raw` all that was given. */
typedef struct radi_jv radi_jfn(struct radi_jev *ev, struct radi_jv self,
                                const struct radi_jv *a, const struct radi_jargs *raw);
enum { J_MAX_PARAMS = 8 };
struct radi_jdef {
    const char *name;
    radi_jfn *fn;           /* NULL: the name exists, calling it is refused */
    const char *params;     /* "width,first"; NULL: anything, fn reads raw */
    int required;
};

enum radi_jfunc_type { JF_DEF, JF_METHOD, JF_MACRO, JF_LOOP, JF_CYCLER, JF_JOINER };
struct radi_jfunc {
    uint8_t type;
    const struct radi_jdef *def;
    const struct radi_jnode *macro;
    struct radi_jscope *scope;
    struct radi_jv self;
    size_t pos;             /* cycler, joiner */
};

/* ---- syntax tree */
enum radi_jop {
    JN_CONST, JN_NAME, JN_TUPLE, JN_LIST, JN_DICT, JN_COND, JN_OR, JN_AND, JN_NOT,
    JN_CMP, JN_CHAIN, JN_CONCAT, JN_NEG, JN_POS, JN_ATTR, JN_ITEM, JN_SLICE,
    JN_CALL, JN_FILTER, JN_TEST,
    JN_ARG,                 /* of a call: flag JA_*, name, a */
    JN_TEXT, JN_PRINT, JN_IF, JN_FOR, JN_SET, JN_SETBLOCK, JN_NSREF, JN_MACRO,
    JN_CALLBLOCK, JN_FILTERBLOCK, JN_WITH, JN_SCOPE, JN_BREAK, JN_CONTINUE
};
enum { JA_POS, JA_KW, JA_STAR, JA_DSTAR };
enum radi_jbinop {          /* `flag` of chain and comparison operands */
    JB_ADD, JB_SUB, JB_MUL, JB_DIV, JB_FLOORDIV, JB_MOD, JB_POW,
    JB_EQ, JB_NE, JB_LT, JB_LE, JB_GT, JB_GE, JB_IN, JB_NOTIN
};

/* What a, b, c, d hold stands with each constructor in template_parse.c. */
struct radi_jnode {
    uint8_t op, flag;
    uint32_t line;
    struct radi_jnode *a, *b, *c, *d;
    struct radi_jnode *next;        /* sibling in a list */
    const struct radi_jstr *name;   /* interned: compared by address */
    const struct radi_jdef *def;    /* filter, test; NULL: there is none */
    struct radi_jv v;
};

struct rad_template {
    struct radi_arena arena;
    struct radi_jnode *body;
    struct radi_map *names;         /* interned: text -> struct radi_jstr * */
    struct radi_jname *reads;       /* variables that are read */
    const struct radi_jstr *loop, *caller, *varargs, *kwargs;   /* interned */
};
enum { J_USES_CALLER = 1, J_USES_VARARGS = 2, J_USES_KWARGS = 4 };  /* flag of JN_MACRO */
struct radi_jname {
    struct radi_jname *next;
    const struct radi_jstr *name;
};

/* ---- evaluation */
struct radi_jbind {
    const struct radi_jstr *name;
    struct radi_jv v;
};
struct radi_jscope {
    struct radi_jscope *parent;
    struct radi_jbind *b;
    size_t n, cap;
    bool captured;          /* a macro keeps it: not to be used again */
};

struct radi_jloop {
    struct radi_jseq *items;
    size_t i;
    uint32_t depth0;
    const struct radi_jnode *node;  /* to recurse */
    struct radi_jscope *scope;      /* outside of the loop */
    struct radi_jv last;            /* of changed() */
    bool has_last;
};

struct radi_jev {
    const struct rad_template *t;
    struct radi_arena *arena;
    struct rad_err *err;
    struct rad_template_limits lim;
    const struct rad_template_clock *clock;
    struct radi_jdict *vars;
    struct radi_jscope *scope;
    struct radi_str out;    /* the one heap block; the entry function frees it */
    uint64_t steps;
    uint32_t line, depth, calls;
    rad_status st;
    jmp_buf env;
};

/* template_value.c: failure, memory, values */
_Noreturn void radi_j_fail(struct radi_jev *ev, rad_status st, const char *fmt, ...)
    RAD_PRINTF(3, 4);
void radi_j_charge(struct radi_jev *ev, uint64_t steps);
void radi_j_enter(struct radi_jev *ev);     /* one level of recursion */
static inline void radi_j_leave(struct radi_jev *ev) { ev->depth--; }
void *radi_j_alloc(struct radi_jev *ev, size_t n, size_t item);

/* A string being built in the arena. */
struct radi_jsb {
    struct radi_jev *ev;
    char *p;
    size_t len, cap;
};
void radi_jsb_add(struct radi_jsb *b, const char *s, size_t n);
void radi_jsb_adds(struct radi_jsb *b, const char *s);
void radi_jsb_addc(struct radi_jsb *b, char c);
void radi_jsb_cp(struct radi_jsb *b, uint32_t cp);
void radi_jsb_str(struct radi_jsb *b, const struct radi_jstr *s);
void radi_jsb_fill(struct radi_jsb *b, const char *s, size_t n, int64_t times);
struct radi_jv radi_jsb_done(struct radi_jsb *b);

static inline struct radi_jv radi_jv_none(void)
{
    return (struct radi_jv){ .kind = J_NONE };
}
static inline struct radi_jv radi_jv_bool(bool b)
{
    return (struct radi_jv){ .kind = J_BOOL, .b = b };
}
static inline struct radi_jv radi_jv_int(int64_t i)
{
    return (struct radi_jv){ .kind = J_INT, .i = i };
}
static inline struct radi_jv radi_jv_float(double f)
{
    return (struct radi_jv){ .kind = J_FLOAT, .f = f };
}
static inline bool radi_jv_given(struct radi_jv v) { return v.kind != J_MISSING; }

size_t radi_j_chars(const char *s, size_t n);       /* code points */
/* Borrowed bytes (they outlive the value), copied bytes, a C string. */
struct radi_jv radi_jv_borrow(struct radi_jev *ev, const char *s, size_t n);
struct radi_jv radi_jv_text(struct radi_jev *ev, const char *s, size_t n);
struct radi_jv radi_jv_str(const struct radi_jstr *s);
struct radi_jv radi_jv_cat(struct radi_jev *ev, struct radi_jv a, struct radi_jv b);
/* Part of a string by bytes; `like` gives the markup flag. */
struct radi_jv radi_jv_sub(struct radi_jev *ev, struct radi_jv like, size_t at, size_t n);
bool radi_j_streq(const struct radi_jstr *s, const char *c);

struct radi_jseq *radi_j_seq(struct radi_jev *ev, enum radi_jseq_type type, size_t cap);
struct radi_jv radi_jv_seq(struct radi_jseq *q);
void radi_j_push(struct radi_jev *ev, struct radi_jseq *q, size_t *cap, struct radi_jv v);
struct radi_jv radi_jv_pair(struct radi_jev *ev, struct radi_jv a, struct radi_jv b);
/* All items of anything that can be iterated; reads generators to their end. */
struct radi_jseq *radi_j_iter(struct radi_jev *ev, struct radi_jv v);
bool radi_j_iterable(struct radi_jv v);

struct radi_jdict *radi_j_dict(struct radi_jev *ev, size_t expect);
struct radi_jv radi_jv_dict(struct radi_jdict *d);
void radi_j_put(struct radi_jev *ev, struct radi_jdict *d, struct radi_jv k, struct radi_jv v);
struct radi_jv *radi_j_find(struct radi_jev *ev, const struct radi_jdict *d, struct radi_jv k);
struct radi_jv *radi_j_finds(struct radi_jev *ev, const struct radi_jdict *d, const char *k);

const char *radi_j_type(struct radi_jv v);          /* Python's name of the type */
bool radi_j_truth(struct radi_jv v);
bool radi_j_eq(struct radi_jev *ev, struct radi_jv a, struct radi_jv b);
/* <0, 0, >0; NaN answers 2. `op` is for the message. */
int radi_j_cmp(struct radi_jev *ev, struct radi_jv a, struct radi_jv b, const char *op);
bool radi_j_is_num(struct radi_jv v);               /* bool, int, float */
double radi_j_num(struct radi_jv v);
bool radi_j_len(struct radi_jv v, size_t *n);       /* false: has no length */
struct radi_jv radi_jv_undef(struct radi_jev *ev, const struct radi_jundef *u);
struct radi_jv radi_jv_hint(struct radi_jev *ev, const char *hint);
struct radi_jv radi_jv_noattr(struct radi_jev *ev, struct radi_jv obj, struct radi_jv key);
_Noreturn void radi_j_undef_fail(struct radi_jev *ev, struct radi_jv v);

/* template_repr.c: text of values */
void radi_jsb_float(struct radi_jsb *b, double f);
void radi_jsb_repr(struct radi_jsb *b, struct radi_jv v);
void radi_jsb_print(struct radi_jsb *b, struct radi_jv v);      /* str(v) */
struct radi_jv radi_jv_print(struct radi_jev *ev, struct radi_jv v);
struct radi_jv radi_j_escape(struct radi_jev *ev, struct radi_jv v);   /* HTML, as markup */
bool radi_j_printable(uint32_t cp);

/* template_json.c */
struct radi_jv radi_j_from_json(struct radi_jev *ev, const char *s, size_t n, const char *what);
struct radi_jjson {
    struct radi_jv item_sep, key_sep, indent;   /* strings; indent none: one line */
    bool ascii, sort;
};
void radi_jsb_json(struct radi_jsb *b, struct radi_jv v, const struct radi_jjson *o);

/* template_lex.c */
enum radi_jtok_type {
    JT_EOF, JT_DATA, JT_VAR_BEGIN, JT_VAR_END, JT_BLOCK_BEGIN, JT_BLOCK_END,
    JT_NAME, JT_STR, JT_NUM, JT_OP
};
struct radi_jtok {
    uint8_t type;
    char op[3];             /* JT_OP: its text */
    uint32_t line;
    const char *s;          /* JT_NAME, JT_DATA: its text */
    size_t n;
    struct radi_jv v;       /* JT_STR, JT_NUM */
};
/* The last token is JT_EOF. */
struct radi_jtok *radi_j_lex(struct radi_jev *ev, const char *s, size_t n);

/* template_parse.c, template_expr.c */
struct radi_jparse {
    struct radi_jev *ev;
    struct rad_template *t;
    const struct radi_jtok *k;      /* the current token */
    uint32_t depth;
    int loops;
};
void radi_j_parse(struct radi_jev *ev, struct rad_template *t, const struct radi_jtok *k);
_Noreturn void radi_jp_fail(struct radi_jparse *p, const char *fmt, ...) RAD_PRINTF(2, 3);
struct radi_jnode *radi_jp_node(struct radi_jparse *p, enum radi_jop op, uint32_t line);
const struct radi_jstr *radi_jp_intern(struct radi_jparse *p, const char *s, size_t n);
bool radi_jp_is_op(const struct radi_jtok *k, const char *op);
bool radi_jp_is_name(const struct radi_jtok *k, const char *name);
bool radi_jp_skip_op(struct radi_jparse *p, const char *op);
bool radi_jp_skip_name(struct radi_jparse *p, const char *name);
void radi_jp_want_op(struct radi_jparse *p, const char *op);
void radi_jp_enter(struct radi_jparse *p);
struct radi_jnode *radi_jp_expr(struct radi_jparse *p, bool cond);
struct radi_jnode *radi_jp_tuple(struct radi_jparse *p, bool cond, bool parens,
                                 const char *stop);
struct radi_jnode *radi_jp_args(struct radi_jparse *p);         /* "(...)" */
struct radi_jnode *radi_jp_filters(struct radi_jparse *p, struct radi_jnode *node, bool inline_);
struct radi_jnode *radi_jp_primary(struct radi_jparse *p);
struct radi_jnode *radi_jp_postfix(struct radi_jparse *p, struct radi_jnode *n);
struct radi_jnode *radi_jp_unary(struct radi_jparse *p, bool with_filter);

/* template_eval.c, template_exec.c */
struct radi_jv radi_j_eval(struct radi_jev *ev, const struct radi_jnode *n);
/* A chain of filters whose innermost applies to `input`. */
struct radi_jv radi_j_eval_filters(struct radi_jev *ev, const struct radi_jnode *n,
                                   struct radi_jv input);
struct radi_jscope *radi_j_scope(struct radi_jev *ev, struct radi_jscope *parent);
void radi_j_bind(struct radi_jev *ev, struct radi_jscope *s, const struct radi_jstr *name,
                 struct radi_jv v);
void radi_j_exec_root(struct radi_jev *ev, const struct radi_jnode *body);
struct radi_jv radi_j_call_macro(struct radi_jev *ev, const struct radi_jfunc *fn,
                                 const struct radi_jargs *args);
struct radi_jv radi_j_call_loop(struct radi_jev *ev, const struct radi_jloop *loop,
                                const struct radi_jargs *args);
void radi_j_gather(struct radi_jev *ev, const struct radi_jnode *args, struct radi_jargs *out);

/* template_ops.c */
struct radi_jv radi_j_binary(struct radi_jev *ev, enum radi_jbinop op, struct radi_jv a,
                             struct radi_jv b);
bool radi_j_contains(struct radi_jev *ev, struct radi_jv item, struct radi_jv in);
bool radi_j_compare(struct radi_jev *ev, enum radi_jbinop op, struct radi_jv a,
                    struct radi_jv b);
struct radi_jv radi_j_attr(struct radi_jev *ev, struct radi_jv obj, const struct radi_jstr *name);
struct radi_jv radi_j_item(struct radi_jev *ev, struct radi_jv obj, struct radi_jv key);
struct radi_jv radi_j_slice(struct radi_jev *ev, struct radi_jv obj, struct radi_jv start,
                            struct radi_jv stop, struct radi_jv step);
size_t radi_j_byte_at(const struct radi_jstr *s, size_t chars);

/* template_call.c */
struct radi_jv radi_j_call(struct radi_jev *ev, struct radi_jv fn, const struct radi_jargs *args);
struct radi_jv radi_j_apply(struct radi_jev *ev, const struct radi_jdef *def,
                            struct radi_jv self, const struct radi_jargs *args);
const struct radi_jdef *radi_j_global(const struct radi_jstr *name);
struct radi_jv radi_j_loop_attr(struct radi_jev *ev, struct radi_jv loop,
                                const struct radi_jstr *name);
const struct radi_jdef *radi_j_lookup(const struct radi_jdef *t, const char *s, size_t n);

/* Tables that end with a NULL name. */
extern const struct radi_jdef radi_j_str_methods[], radi_j_dict_methods[], radi_j_list_methods[];
extern const struct radi_jdef radi_j_cycler_methods[];
extern const struct radi_jdef radi_j_filters_text[], radi_j_filters_seq[], radi_j_tests[];
const struct radi_jdef *radi_j_filter(const char *s, size_t n);
const struct radi_jdef *radi_j_test(const char *s, size_t n);

/* template_format.c */
struct radi_jv radi_j_percent(struct radi_jev *ev, struct radi_jv fmt, struct radi_jv args);
struct radi_jv radi_j_str_format(struct radi_jev *ev, struct radi_jv fmt,
                                 const struct radi_jargs *args);

/* template_time.c */
struct radi_jv radi_j_strftime(struct radi_jev *ev, const struct radi_jstr *fmt);

/* template_unicode.c */
bool radi_j_is_space(uint32_t cp);          /* str.isspace */
size_t radi_j_lstrip(const char *s, size_t n);      /* bytes of white space at the start */
size_t radi_j_rstrip(const char *s, size_t n);      /* length without those at the end */
enum radi_jcase { JC_UPPER, JC_LOWER, JC_TITLE, JC_CAPITALIZE, JC_SWAP, JC_FOLD };
struct radi_jv radi_j_recase(struct radi_jev *ev, struct radi_jv s, enum radi_jcase how);
enum radi_jclass { JCL_ALPHA, JCL_ALNUM, JCL_DIGIT, JCL_DECIMAL, JCL_NUMERIC, JCL_SPACE,
                   JCL_UPPER, JCL_LOWER, JCL_TITLE, JCL_ASCII, JCL_PRINTABLE, JCL_IDENT };
bool radi_j_class(const struct radi_jstr *s, enum radi_jclass c);
bool radi_j_ident(uint32_t cp, bool first);

#endif
