/* SPDX-License-Identifier: Apache-2.0 */
/* Owns Python's operators, attributes, subscripts and slices. Integers are 64
 * bits; what Python would carry further is refused, never wrapped. */
#include "config.h"

#include <math.h>

#include "text/template.h"

#include "banned.h"

static const char *const op_name[] = { "+", "-", "*", "/", "//", "%", "** or pow()", "==", "!=",
                                       "<", "<=", ">", ">=", "in", "not in" };

static _Noreturn void too_big(struct radi_jev *ev)
{
    radi_j_fail(ev, RAD_E_UNSUPPORTED, "integer of more than 64 bits in arithmetic");
}

static int64_t whole(struct radi_jv v)
{
    return v.kind == J_BOOL ? v.b : v.i;
}

static bool is_whole(struct radi_jv v)
{
    return v.kind == J_INT || v.kind == J_BOOL;
}

static struct radi_jv int_pow(struct radi_jev *ev, int64_t base, int64_t e)
{
    int64_t r = 1;
    if (e < 0) {
        if (base == 0)
            radi_j_fail(ev, RAD_E_FORMAT, "0.0 cannot be raised to a negative power");
        return radi_jv_float(pow((double)base, (double)e));
    }
    if (base == 0 || base == 1)
        return radi_jv_int(e == 0 ? 1 : base);
    if (base == -1)
        return radi_jv_int(e % 2 ? -1 : 1);
    for (; e; e--)
        if (__builtin_mul_overflow(r, base, &r))
            too_big(ev);
    return radi_jv_int(r);
}

static struct radi_jv int_op(struct radi_jev *ev, enum radi_jbinop op, int64_t a, int64_t b)
{
    int64_t r;
    bool over = false;
    switch (op) {
    case JB_ADD:
        over = __builtin_add_overflow(a, b, &r);
        break;
    case JB_SUB:
        over = __builtin_sub_overflow(a, b, &r);
        break;
    case JB_MUL:
        over = __builtin_mul_overflow(a, b, &r);
        break;
    case JB_DIV:
        if (b == 0)
            radi_j_fail(ev, RAD_E_FORMAT, "division by zero");
        return radi_jv_float((double)a / (double)b);
    case JB_FLOORDIV:
        if (b == 0)
            radi_j_fail(ev, RAD_E_FORMAT, "integer division or modulo by zero");
        if (b == -1)
            over = __builtin_sub_overflow((int64_t)0, a, &r);
        else
            r = a / b - (a % b != 0 && (a < 0) != (b < 0));
        break;
    case JB_MOD:
        if (b == 0)
            radi_j_fail(ev, RAD_E_FORMAT, "integer modulo by zero");
        r = b == -1 ? 0 : a % b;
        r += r && (r < 0) != (b < 0) ? b : 0;
        break;
    default:
        return int_pow(ev, a, b);
    }
    if (over)
        too_big(ev);
    return radi_jv_int(r);
}

static struct radi_jv float_op(struct radi_jev *ev, enum radi_jbinop op, double a, double b)
{
    double m;
    switch (op) {
    case JB_ADD:
        return radi_jv_float(a + b);
    case JB_SUB:
        return radi_jv_float(a - b);
    case JB_MUL:
        return radi_jv_float(a * b);
    case JB_DIV:
        if (b == 0)
            radi_j_fail(ev, RAD_E_FORMAT, "float division by zero");
        return radi_jv_float(a / b);
    case JB_FLOORDIV: case JB_MOD:
        if (b == 0)
            radi_j_fail(ev, RAD_E_FORMAT, op == JB_MOD ? "float modulo"
                                                       : "float floor division by zero");
        m = fmod(a, b);
        if (m != 0 && (m < 0) != (b < 0))
            m += b;
        if (op == JB_MOD)
            return radi_jv_float(m == 0 ? copysign(0, b) : m);
        m = (a - m) / b;
        return radi_jv_float(m == 0 ? copysign(0, a / b) : floor(m + 0.5));
    default:
        if (a == 0 && b < 0)
            radi_j_fail(ev, RAD_E_FORMAT, "0.0 cannot be raised to a negative power");
        if (a < 0 && isfinite(b) && b != floor(b))
            radi_j_fail(ev, RAD_E_UNSUPPORTED, "complex numbers are not supported");
        return radi_jv_float(pow(a, b));
    }
}

static struct radi_jv repeat(struct radi_jev *ev, struct radi_jv v, int64_t times)
{
    if (v.kind == J_STR) {
        struct radi_jsb b = { .ev = ev };
        radi_jsb_fill(&b, v.s->p, v.s->len, times);
        struct radi_jv r = radi_jsb_done(&b);
        r.markup = v.markup;
        return r;
    }
    size_t n = 0;
    if (times > 0 && !radi_mul_size(v.q->n, (size_t)times, &n))
        n = SIZE_MAX / 2;
    struct radi_jseq *q = radi_j_seq(ev, (enum radi_jseq_type)v.q->type, n);
    while (q->n < n) {
        memcpy(q->v + q->n, v.q->v, v.q->n * sizeof *q->v);
        q->n += v.q->n;
    }
    return radi_jv_seq(q);
}

static bool is_list(struct radi_jv v)
{
    return v.kind == J_SEQ && v.q->type <= JQ_TUPLE;
}

static struct radi_jv add(struct radi_jev *ev, struct radi_jv a, struct radi_jv b)
{
    if (a.kind == J_STR && b.kind == J_STR) {
        bool markup = a.markup || b.markup;
        if (markup && !a.markup)
            a = radi_j_escape(ev, a);
        if (markup && !b.markup)
            b = radi_j_escape(ev, b);
        struct radi_jv v = radi_jv_cat(ev, a, b);
        v.markup = markup;
        return v;
    }
    if (a.kind == J_STR)
        radi_j_fail(ev, RAD_E_FORMAT, "can only concatenate str (not \"%s\") to str",
                    radi_j_type(b));
    if (!is_list(a))
        radi_j_fail(ev, RAD_E_FORMAT, "unsupported operand type(s) for +: '%s' and '%s'",
                    radi_j_type(a), radi_j_type(b));
    if (!is_list(b) || a.q->type != b.q->type)
        radi_j_fail(ev, RAD_E_FORMAT, "can only concatenate %s (not \"%s\") to %s",
                    radi_j_type(a), radi_j_type(b), radi_j_type(a));
    struct radi_jseq *q = radi_j_seq(ev, (enum radi_jseq_type)a.q->type, a.q->n + b.q->n);
    if (a.q->n)
        memcpy(q->v, a.q->v, a.q->n * sizeof *q->v);
    if (b.q->n)
        memcpy(q->v + a.q->n, b.q->v, b.q->n * sizeof *q->v);
    q->n = a.q->n + b.q->n;
    return radi_jv_seq(q);
}

struct radi_jv radi_j_binary(struct radi_jev *ev, enum radi_jbinop op, struct radi_jv a,
                             struct radi_jv b)
{
    if (op == JB_MOD && a.kind == J_STR)
        return radi_j_percent(ev, a, b);
    if (a.kind == J_UNDEF)
        radi_j_undef_fail(ev, a);
    if (b.kind == J_UNDEF)
        radi_j_undef_fail(ev, b);
    if (is_whole(a) && is_whole(b))
        return int_op(ev, op, whole(a), whole(b));
    if (radi_j_is_num(a) && radi_j_is_num(b))
        return float_op(ev, op, radi_j_num(a), radi_j_num(b));
    if ((a.kind == J_BIG || b.kind == J_BIG) && (a.kind == J_BIG || radi_j_is_num(a)) &&
        (b.kind == J_BIG || radi_j_is_num(b)))
        too_big(ev);
    if (op == JB_ADD)
        return add(ev, a, b);
    if (op == JB_MUL) {
        bool la = a.kind == J_STR || is_list(a), lb = b.kind == J_STR || is_list(b);
        if (la && is_whole(b))
            return repeat(ev, a, whole(b));
        if (lb && is_whole(a))
            return repeat(ev, b, whole(a));
        if (la || lb)
            radi_j_fail(ev, RAD_E_FORMAT, "can't multiply sequence by non-int of type '%s'",
                        radi_j_type(la ? b : a));
    }
    radi_j_fail(ev, RAD_E_FORMAT, "unsupported operand type(s) for %s: '%s' and '%s'", op_name[op],
                radi_j_type(a), radi_j_type(b));
}

bool radi_j_contains(struct radi_jev *ev, struct radi_jv item, struct radi_jv in)
{
    if (in.kind == J_STR) {
        if (item.kind != J_STR)
            radi_j_fail(ev, RAD_E_FORMAT,
                        "'in <string>' requires string as left operand, not %s",
                        radi_j_type(item));
        radi_j_charge(ev, in.s->len / 64);
        return item.s->len == 0 ||
               memmem(in.s->p, in.s->len, item.s->p, item.s->len) != NULL;
    }
    if (in.kind == J_DICT)
        return radi_j_find(ev, in.d, item) != NULL;
    if (!radi_j_iterable(in))
        radi_j_fail(ev, RAD_E_FORMAT, "argument of type '%s' is not iterable", radi_j_type(in));
    const struct radi_jseq *q = radi_j_iter(ev, in);
    for (size_t i = 0; i < q->n; i++)
        if (radi_j_eq(ev, q->v[i], item))
            return true;
    return false;
}

bool radi_j_compare(struct radi_jev *ev, enum radi_jbinop op, struct radi_jv a, struct radi_jv b)
{
    int c;
    switch (op) {
    case JB_EQ: return radi_j_eq(ev, a, b);
    case JB_NE: return !radi_j_eq(ev, a, b);
    case JB_IN: return radi_j_contains(ev, a, b);
    case JB_NOTIN: return !radi_j_contains(ev, a, b);
    default: break;
    }
    c = radi_j_cmp(ev, a, b, op_name[op]);
    if (c == 2)
        return false;
    return op == JB_LT ? c < 0 : op == JB_LE ? c <= 0 : op == JB_GT ? c > 0 : c >= 0;
}

/* ---- attributes */
static bool dunder(const struct radi_jstr *s)
{
    return s->len > 4 && memcmp(s->p, "__", 2) == 0 && memcmp(s->p + s->len - 2, "__", 2) == 0;
}

/* Methods that change a list or dict; the immutable sandbox hides them. */
static bool mutates(struct radi_jv obj, const struct radi_jstr *name)
{
    static const char *const list[] = { "append", "clear", "pop", "reverse", "insert", "sort",
                                        "extend", "remove", NULL };
    static const char *const dict[] = { "clear", "pop", "popitem", "setdefault", "update", NULL };
    const char *const *p = obj.kind == J_DICT ? dict : obj.q->type == JQ_LIST ? list : NULL;
    for (; p && *p; p++)
        if (radi_j_streq(name, *p))
            return true;
    return false;
}

static struct radi_jv unsafe(struct radi_jev *ev, struct radi_jv obj, const struct radi_jstr *name)
{
    struct radi_jundef u = { .name = name, .has_obj = true, .unsafe = true, .obj = obj,
                             .key = radi_jv_str(name) };
    return radi_jv_undef(ev, &u);
}

static const struct radi_jdef *methods(struct radi_jv obj)
{
    static const struct radi_jdef none[] = { { NULL, NULL, NULL, 0 } };
    return obj.kind == J_STR ? radi_j_str_methods : obj.kind == J_DICT ? radi_j_dict_methods
         : obj.kind == J_SEQ && obj.q->type <= JQ_RANGE ? radi_j_list_methods
         : obj.kind == J_FUNC && obj.fn->type == JF_CYCLER ? radi_j_cycler_methods : none;
}

/* What getattr would find; false if nothing. */
static bool get_attr(struct radi_jev *ev, struct radi_jv obj, const struct radi_jstr *name,
                     struct radi_jv *out)
{
    if (obj.kind == J_LOOP) {
        *out = radi_j_loop_attr(ev, obj, name);
        return true;
    }
    if (obj.kind == J_NS) {
        const struct radi_jv *v = radi_j_find(ev, obj.d, radi_jv_str(name));
        if (v)
            *out = *v;
        return v != NULL;
    }
    if (dunder(name)) {
        *out = unsafe(ev, obj, name);
        return true;
    }
    if (obj.kind == J_FUNC && obj.fn->type == JF_MACRO && radi_j_streq(name, "name")) {
        *out = radi_jv_str(obj.fn->macro->name);
        return true;
    }
    if (obj.kind == J_FUNC && obj.fn->type == JF_CYCLER && radi_j_streq(name, "current")) {
        *out = obj.fn->self.q->v[obj.fn->pos];
        return true;
    }
    const struct radi_jdef *def = radi_j_lookup(methods(obj), name->p, name->len);
    if (!def)
        return false;
    if ((obj.kind == J_DICT || obj.kind == J_SEQ) && mutates(obj, name)) {
        *out = unsafe(ev, obj, name);
        return true;
    }
    if (obj.kind == J_SEQ && obj.q->type != JQ_LIST && !radi_j_streq(name, "count") &&
        !radi_j_streq(name, "index"))
        return false;
    struct radi_jfunc *fn = radi_j_alloc(ev, 1, sizeof *fn);
    fn->type = JF_METHOD;
    fn->def = def;
    fn->self = obj;
    *out = (struct radi_jv){ .kind = J_FUNC, .fn = fn };
    return true;
}

struct radi_jv radi_j_attr(struct radi_jev *ev, struct radi_jv obj, const struct radi_jstr *name)
{
    struct radi_jv v;
    if (obj.kind == J_UNDEF)
        radi_j_undef_fail(ev, obj);
    if (get_attr(ev, obj, name, &v))
        return v;
    if (obj.kind == J_DICT) {
        const struct radi_jv *p = radi_j_find(ev, obj.d, radi_jv_str(name));
        if (p)
            return *p;
    }
    return radi_jv_noattr(ev, obj, radi_jv_str(name));
}

/* ---- subscripts */
size_t radi_j_byte_at(const struct radi_jstr *s, size_t chars)
{
    size_t i = 0;
    if (s->chars == s->len)
        return RADI_MIN(chars, s->len);
    for (; i < s->len; i++)
        if (((unsigned char)s->p[i] & 0xc0) != 0x80 && chars-- == 0)
            break;
    return i;
}

static bool hashable(struct radi_jv v)
{
    if (v.kind == J_SEQ && v.q->type == JQ_TUPLE) {
        for (size_t i = 0; i < v.q->n; i++)
            if (v.q->v[i].kind == J_SEQ || !hashable(v.q->v[i]))
                return false;
        return true;
    }
    return v.kind != J_SEQ && v.kind != J_DICT;
}

struct radi_jv radi_j_item(struct radi_jev *ev, struct radi_jv obj, struct radi_jv key)
{
    struct radi_jv v;
    size_t n;

    if (obj.kind == J_UNDEF)
        radi_j_undef_fail(ev, obj);
    if (obj.kind == J_DICT && hashable(key)) {
        const struct radi_jv *p = radi_j_find(ev, obj.d, key);
        if (p)
            return *p;
    }
    bool indexed = obj.kind == J_STR || (obj.kind == J_SEQ && obj.q->type <= JQ_RANGE);
    if (indexed && is_whole(key) && radi_j_len(obj, &n)) {
        int64_t i = whole(key);
        if (i < 0)
            i += (int64_t)n;
        if (i >= 0 && (uint64_t)i < n) {
            if (obj.kind == J_SEQ)
                return obj.q->v[i];
            radi_j_charge(ev, obj.s->chars == obj.s->len ? 0 : obj.s->len / 64);
            size_t at = radi_j_byte_at(obj.s, (size_t)i);
            uint32_t cp;
            size_t k = radi_utf8_next(obj.s->p + at, obj.s->len - at, &cp);
            return radi_jv_sub(ev, obj, at, k ? k : 1);
        }
    }
    if (key.kind == J_STR && get_attr(ev, obj, key.s, &v))
        return v;
    return radi_jv_noattr(ev, obj, key);
}

/* A slice index, clipped to [low, high]. */
static int64_t bound(struct radi_jev *ev, struct radi_jv v, int64_t absent, int64_t n, int64_t low,
                     int64_t high)
{
    if (v.kind == J_NONE)
        return absent;
    if (!is_whole(v))
        radi_j_fail(ev, RAD_E_FORMAT, "slice indices must be integers or None or have an "
                    "__index__ method");
    int64_t i = whole(v);
    if (i < 0)
        i = i < -n ? low : i + n;
    return i < low ? low : i > high ? high : i;
}

static struct radi_jv slice_str(struct radi_jev *ev, struct radi_jv obj, int64_t from, int64_t to,
                                int64_t step)
{
    radi_j_charge(ev, obj.s->len / 64);
    if (step == 1) {
        size_t a = radi_j_byte_at(obj.s, (size_t)from);
        size_t b = to > from ? radi_j_byte_at(obj.s, (size_t)to) : a;
        return radi_jv_sub(ev, obj, a, b - a);
    }
    struct radi_jsb b = { .ev = ev };
    const struct radi_jseq *q = radi_j_iter(ev, obj);
    for (int64_t i = from; step > 0 ? i < to : i > to;) {
        radi_jsb_str(&b, q->v[i].s);
        if (__builtin_add_overflow(i, step, &i))
            break;
    }
    struct radi_jv v = radi_jsb_done(&b);
    v.markup = obj.markup;
    return v;
}

struct radi_jv radi_j_slice(struct radi_jev *ev, struct radi_jv obj, struct radi_jv start,
                            struct radi_jv stop, struct radi_jv step)
{
    size_t len;
    if (obj.kind == J_UNDEF)
        radi_j_undef_fail(ev, obj);
    if (obj.kind == J_DICT)
        radi_j_fail(ev, RAD_E_FORMAT, "unhashable type: 'slice'");
    if (obj.kind != J_STR && !(obj.kind == J_SEQ && obj.q->type <= JQ_RANGE))
        radi_j_fail(ev, RAD_E_FORMAT, "'%s' object is not subscriptable", radi_j_type(obj));
    (void)radi_j_len(obj, &len);
    int64_t n = (int64_t)len;
    int64_t by = step.kind == J_NONE ? 1 : is_whole(step) ? whole(step) : 0;
    if (by == 0)
        radi_j_fail(ev, RAD_E_FORMAT, is_whole(step) ? "slice step cannot be zero"
                    : "slice indices must be integers or None or have an __index__ method");
    int64_t low = by > 0 ? 0 : -1, high = by > 0 ? n : n - 1;
    int64_t from = bound(ev, start, by > 0 ? low : high, n, low, high);
    int64_t to = bound(ev, stop, by > 0 ? high : low, n, low, high);
    if (obj.kind == J_STR)
        return slice_str(ev, obj, from, to, by);

    bool range = obj.q->type == JQ_RANGE;
    struct radi_jseq *q = radi_j_alloc(ev, 1, sizeof *q);
    q->type = obj.q->type;
    if (range) {
        int64_t s;
        if (__builtin_mul_overflow(obj.q->range[2], by, &s))
            too_big(ev);
        uint64_t first = (uint64_t)obj.q->range[0], unit = (uint64_t)obj.q->range[2];
        q->range[0] = (int64_t)(first + (uint64_t)from * unit);
        q->range[1] = (int64_t)(first + (uint64_t)to * unit);
        q->range[2] = s;
    }
    if (by == 1) {
        q->v = obj.q->v + from;
        q->n = to > from ? (size_t)(to - from) : 0;
        return radi_jv_seq(q);
    }
    size_t cap = 0;
    for (int64_t i = from; by > 0 ? i < to : i > to;) {
        radi_j_push(ev, q, &cap, obj.q->v[i]);
        if (__builtin_add_overflow(i, by, &i))
            break;
    }
    return radi_jv_seq(q);
}
