/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the methods of str, list and dict. Names without a function exist (so
 * that a key of that name is found where Python finds it) but are refused when
 * called; those that would change a value never get here. */
#include "config.h"

#include "text/template.h"

#include "banned.h"

#define METHOD(name)                                                                      \
    static struct radi_jv name(struct radi_jev *ev, struct radi_jv self,                  \
                               const struct radi_jv *a, const struct radi_jargs *raw)
#define UNUSED (void)ev, (void)self, (void)a, (void)raw

static const struct radi_jstr *want_str(struct radi_jev *ev, struct radi_jv v)
{
    if (v.kind == J_UNDEF)
        radi_j_undef_fail(ev, v);
    if (v.kind != J_STR)
        radi_j_fail(ev, RAD_E_FORMAT, "must be str, not %s", radi_j_type(v));
    return v.s;
}

static int64_t want_int(struct radi_jev *ev, struct radi_jv v, int64_t absent)
{
    if (!radi_jv_given(v) || v.kind == J_NONE)
        return absent;
    if (v.kind == J_UNDEF)
        radi_j_undef_fail(ev, v);
    if (v.kind != J_INT && v.kind != J_BOOL)
        radi_j_fail(ev, RAD_E_FORMAT, "'%s' object cannot be interpreted as an integer",
                    radi_j_type(v));
    return v.kind == J_BOOL ? v.b : v.i;
}

static struct radi_jv boolean(bool b)
{
    return radi_jv_bool(b);
}

/* ---- strip */
static bool in_set(const struct radi_jstr *set, const char *p, size_t n)
{
    size_t k;
    uint32_t cp;
    for (size_t i = 0; i < set->len; i += k ? k : 1) {
        k = radi_utf8_next(set->p + i, set->len - i, &cp);
        if (k == n && memcmp(set->p + i, p, n) == 0)
            return true;
    }
    return false;
}

static struct radi_jv strip(struct radi_jev *ev, struct radi_jv self, struct radi_jv chars,
                            bool left, bool right)
{
    const char *s = self.s->p;
    size_t from = 0, to = self.s->len, k;
    uint32_t cp;

    radi_j_charge(ev, to / 64);
    if (!radi_jv_given(chars) || chars.kind == J_NONE) {
        from = left ? radi_j_lstrip(s, to) : 0;
        to = right ? from + radi_j_rstrip(s + from, to - from) : to;
        return radi_jv_sub(ev, self, from, to - from);
    }
    const struct radi_jstr *set = want_str(ev, chars);
    while (left && from < to && (k = radi_utf8_next(s + from, to - from, &cp)) &&
           in_set(set, s + from, k)) {
        radi_j_charge(ev, 1 + set->len / 64);
        from += k;
    }
    while (right && to > from) {
        size_t at = to - 1;
        while (at > from && ((unsigned char)s[at] & 0xc0) == 0x80)
            at--;
        if (!in_set(set, s + at, to - at))
            break;
        radi_j_charge(ev, 1 + set->len / 64);
        to = at;
    }
    return radi_jv_sub(ev, self, from, to - from);
}

METHOD(s_strip) { UNUSED; return strip(ev, self, a[0], true, true); }
METHOD(s_lstrip) { UNUSED; return strip(ev, self, a[0], true, false); }
METHOD(s_rstrip) { UNUSED; return strip(ev, self, a[0], false, true); }

/* ---- split */
static size_t find(const struct radi_jstr *s, size_t from, size_t to, const struct radi_jstr *sub)
{
    const char *p = sub->len <= to - from ? memmem(s->p + from, to - from, sub->p, sub->len) : NULL;
    return p ? (size_t)(p - s->p) : SIZE_MAX;
}

static size_t rfind(struct radi_jev *ev, const struct radi_jstr *s, size_t from, size_t to,
                    const struct radi_jstr *sub)
{
    if (sub->len > to - from)
        return SIZE_MAX;
    for (size_t i = to - sub->len + 1; i-- > from;) {
        if (sub->len && s->p[i] != sub->p[0])
            continue;
        radi_j_charge(ev, 1 + sub->len / 256);
        if (memcmp(s->p + i, sub->p, sub->len) == 0)
            return i;
    }
    return SIZE_MAX;
}

static void reverse_items(struct radi_jseq *q)
{
    for (size_t i = 0; i < q->n / 2; i++) {
        struct radi_jv t = q->v[i];
        q->v[i] = q->v[q->n - 1 - i];
        q->v[q->n - 1 - i] = t;
    }
}

static struct radi_jv split_space(struct radi_jev *ev, struct radi_jv self, int64_t max, bool right)
{
    struct radi_jseq *q = radi_j_seq(ev, JQ_LIST, 0);
    size_t cap = 0, from = radi_j_lstrip(self.s->p, self.s->len), to = self.s->len;
    const char *s = self.s->p;

    to = from + radi_j_rstrip(s + from, to - from);
    while (from < to) {
        size_t i, k;
        uint32_t cp;
        if (max >= 0 && (int64_t)q->n == max) {
            size_t a = right ? 0 : from, b = right ? to : self.s->len;
            radi_j_push(ev, q, &cap, radi_jv_sub(ev, self, a, b - a));
            break;                  /* with the white space on its far side */
        }
        if (right) {
            for (i = to; i > from; i = k) {
                k = i - 1;
                while (k > from && ((unsigned char)s[k] & 0xc0) == 0x80)
                    k--;
                if (radi_utf8_next(s + k, to - k, &cp) && radi_j_is_space(cp))
                    break;
            }
            radi_j_push(ev, q, &cap, radi_jv_sub(ev, self, i, to - i));
            to = from + radi_j_rstrip(s + from, i - from);
        } else {
            for (i = from; i < to; i += k ? k : 1) {
                k = radi_utf8_next(s + i, to - i, &cp);
                if (k && radi_j_is_space(cp))
                    break;
            }
            radi_j_push(ev, q, &cap, radi_jv_sub(ev, self, from, i - from));
            from = i + radi_j_lstrip(s + i, to - i);
        }
    }
    if (right)
        reverse_items(q);
    return radi_jv_seq(q);
}

static struct radi_jv split(struct radi_jev *ev, struct radi_jv self, const struct radi_jv *a,
                            bool right)
{
    int64_t max = want_int(ev, a[1], -1);
    radi_j_charge(ev, self.s->len / 32);
    if (!radi_jv_given(a[0]) || a[0].kind == J_NONE)
        return split_space(ev, self, max, right);
    const struct radi_jstr *sep = want_str(ev, a[0]);
    struct radi_jseq *q = radi_j_seq(ev, JQ_LIST, 0);
    size_t cap = 0, from = 0, to = self.s->len;
    if (sep->len == 0)
        radi_j_fail(ev, RAD_E_FORMAT, "empty separator");
    for (;;) {
        size_t i = max >= 0 && (int64_t)q->n == max ? SIZE_MAX
                 : right ? rfind(ev, self.s, 0, to, sep) : find(self.s, from, to, sep);
        if (i == SIZE_MAX)
            break;
        if (right) {
            radi_j_push(ev, q, &cap, radi_jv_sub(ev, self, i + sep->len, to - i - sep->len));
            to = i;
        } else {
            radi_j_push(ev, q, &cap, radi_jv_sub(ev, self, from, i - from));
            from = i + sep->len;
        }
    }
    radi_j_push(ev, q, &cap, radi_jv_sub(ev, self, from, to - from));
    if (right)
        reverse_items(q);
    return radi_jv_seq(q);
}

METHOD(s_split) { UNUSED; return split(ev, self, a, false); }
METHOD(s_rsplit) { UNUSED; return split(ev, self, a, true); }

METHOD(s_splitlines)
{
    struct radi_jseq *q = radi_j_seq(ev, JQ_LIST, 0);
    bool keep = radi_jv_given(a[0]) && radi_j_truth(a[0]);
    size_t cap = 0, from = 0, k;
    UNUSED;
    for (size_t i = 0; i < self.s->len;) {
        uint32_t cp;
        k = radi_utf8_next(self.s->p + i, self.s->len - i, &cp);
        k = k ? k : 1;
        bool end = (cp >= 0xa && cp <= 0xd) || (cp >= 0x1c && cp <= 0x1e) || cp == 0x85 ||
                   cp == 0x2028 || cp == 0x2029;
        if (end && cp == '\r' && i + 1 < self.s->len && self.s->p[i + 1] == '\n')
            k = 2;
        if (end) {
            radi_j_push(ev, q, &cap, radi_jv_sub(ev, self, from, i - from + (keep ? k : 0)));
            from = i + k;
        }
        i += k;
    }
    if (from < self.s->len)
        radi_j_push(ev, q, &cap, radi_jv_sub(ev, self, from, self.s->len - from));
    return radi_jv_seq(q);
}

static struct radi_jv partition(struct radi_jev *ev, struct radi_jv self, struct radi_jv sep,
                                bool right)
{
    const struct radi_jstr *s = want_str(ev, sep);
    struct radi_jseq *q = radi_j_seq(ev, JQ_TUPLE, 3);
    struct radi_jv empty = radi_jv_borrow(ev, "", 0);
    if (s->len == 0)
        radi_j_fail(ev, RAD_E_FORMAT, "empty separator");
    size_t i = right ? rfind(ev, self.s, 0, self.s->len, s) : find(self.s, 0, self.s->len, s);
    q->n = 3;
    q->v[0] = q->v[1] = q->v[2] = empty;
    if (i == SIZE_MAX) {
        q->v[right ? 2 : 0] = self;
        return radi_jv_seq(q);
    }
    q->v[0] = radi_jv_sub(ev, self, 0, i);
    q->v[1] = sep;
    q->v[2] = radi_jv_sub(ev, self, i + s->len, self.s->len - i - s->len);
    return radi_jv_seq(q);
}

METHOD(s_partition) { UNUSED; return partition(ev, self, a[0], false); }
METHOD(s_rpartition) { UNUSED; return partition(ev, self, a[0], true); }

/* ---- search */
/* Byte range of [start, end) given in characters. */
static void range_of(struct radi_jev *ev, const struct radi_jstr *s, const struct radi_jv *a,
                     size_t *from, size_t *to)
{
    int64_t n = (int64_t)s->chars, start = want_int(ev, a[0], 0), end = want_int(ev, a[1], n);
    start = start < 0 ? RADI_MAX(start + n, 0) : start;
    end = end < 0 ? RADI_MAX(end + n, 0) : RADI_MIN(end, n);
    *from = start > n ? SIZE_MAX : radi_j_byte_at(s, (size_t)start);
    *to = radi_j_byte_at(s, (size_t)end);
    if (*from != SIZE_MAX && *from > *to)
        *from = SIZE_MAX;
}

static bool affix(struct radi_jev *ev, struct radi_jv self, const struct radi_jv *a, bool end)
{
    size_t from, to;
    struct radi_jv one = a[0];
    range_of(ev, self.s, a + 1, &from, &to);
    bool many = one.kind == J_SEQ && one.q->type == JQ_TUPLE;
    for (size_t i = 0; i < (many ? one.q->n : 1); i++) {
        struct radi_jv v = many ? one.q->v[i] : one;
        if (v.kind == J_UNDEF || v.kind != J_STR)
            radi_j_fail(ev, RAD_E_FORMAT, "%s first arg must be str or a tuple of str, not %s",
                        end ? "endswith" : "startswith", radi_j_type(v));
        size_t n = v.s->len;
        if (from != SIZE_MAX && n <= to - from &&
            memcmp(self.s->p + (end ? to - n : from), v.s->p, n) == 0)
            return true;
    }
    return false;
}

METHOD(s_startswith) { UNUSED; return boolean(affix(ev, self, a, false)); }
METHOD(s_endswith) { UNUSED; return boolean(affix(ev, self, a, true)); }

static int64_t search(struct radi_jev *ev, struct radi_jv self, const struct radi_jv *a, bool right,
                      bool must)
{
    size_t from, to, i = SIZE_MAX;
    const struct radi_jstr *sub = want_str(ev, a[0]);
    range_of(ev, self.s, a + 1, &from, &to);
    radi_j_charge(ev, self.s->len / 64);
    if (from != SIZE_MAX)
        i = right ? rfind(ev, self.s, from, to, sub) : find(self.s, from, to, sub);
    if (i != SIZE_MAX)
        return (int64_t)radi_j_chars(self.s->p, i);
    if (must)
        radi_j_fail(ev, RAD_E_FORMAT, "substring not found");
    return -1;
}

METHOD(s_find) { UNUSED; return radi_jv_int(search(ev, self, a, false, false)); }
METHOD(s_rfind) { UNUSED; return radi_jv_int(search(ev, self, a, true, false)); }
METHOD(s_index) { UNUSED; return radi_jv_int(search(ev, self, a, false, true)); }
METHOD(s_rindex) { UNUSED; return radi_jv_int(search(ev, self, a, true, true)); }

METHOD(s_count)
{
    size_t from, to;
    const struct radi_jstr *sub = want_str(ev, a[0]);
    int64_t n = 0;
    UNUSED;
    range_of(ev, self.s, a + 1, &from, &to);
    radi_j_charge(ev, self.s->len / 64);
    if (from == SIZE_MAX)
        return radi_jv_int(0);
    if (sub->len == 0)
        return radi_jv_int((int64_t)radi_j_chars(self.s->p + from, to - from) + 1);
    for (; (from = find(self.s, from, to, sub)) != SIZE_MAX; from += sub->len)
        n++;
    return radi_jv_int(n);
}

METHOD(s_replace)
{
    struct radi_jsb b = { .ev = ev };
    const struct radi_jstr *s = self.s, *old = want_str(ev, a[0]), *new = want_str(ev, a[1]);
    int64_t max = want_int(ev, a[2], -1);
    size_t from = 0, k;
    uint32_t cp;
    UNUSED;
    radi_j_charge(ev, s->len / 64);
    if (old->len == 0) {            /* before every character and at the end */
        for (; max != 0 && from <= s->len; max--) {
            radi_jsb_str(&b, new);
            if (from == s->len)
                break;
            k = radi_utf8_next(s->p + from, s->len - from, &cp);
            radi_jsb_add(&b, s->p + from, k ? k : 1);
            from += k ? k : 1;
        }
    } else
        for (size_t i; max != 0 && (i = find(s, from, s->len, old)) != SIZE_MAX; max--) {
            radi_jsb_add(&b, s->p + from, i - from);
            radi_jsb_str(&b, new);
            from = i + old->len;
        }
    if (from == 0 && b.len == 0)
        return self;
    radi_jsb_add(&b, s->p + from, s->len - from);
    struct radi_jv v = radi_jsb_done(&b);
    v.markup = self.markup;
    return v;
}

METHOD(s_removeprefix)
{
    const struct radi_jstr *p = want_str(ev, a[0]);
    UNUSED;
    if (p->len > self.s->len || memcmp(self.s->p, p->p, p->len) != 0)
        return self;
    return radi_jv_sub(ev, self, p->len, self.s->len - p->len);
}

METHOD(s_removesuffix)
{
    const struct radi_jstr *p = want_str(ev, a[0]);
    UNUSED;
    if (p->len > self.s->len ||
        memcmp(self.s->p + self.s->len - p->len, p->p, p->len) != 0)
        return self;
    return radi_jv_sub(ev, self, 0, self.s->len - p->len);
}

METHOD(s_join)
{
    struct radi_jsb b = { .ev = ev };
    if (a[0].kind != J_UNDEF && !radi_j_iterable(a[0]))
        radi_j_fail(ev, RAD_E_FORMAT, "can only join an iterable");
    const struct radi_jseq *q = radi_j_iter(ev, a[0]);
    UNUSED;
    for (size_t i = 0; i < q->n; i++) {
        struct radi_jv v = q->v[i];
        if (v.kind != J_STR)
            radi_j_fail(ev, RAD_E_FORMAT, "sequence item %zu: expected str instance, %s found", i,
                        radi_j_type(v));
        if (i)
            radi_jsb_str(&b, self.s);
        radi_jsb_str(&b, self.markup ? radi_j_escape(ev, v).s : v.s);
    }
    struct radi_jv v = radi_jsb_done(&b);
    v.markup = self.markup;
    return v;
}

/* ---- case, padding, classes */
METHOD(s_upper) { UNUSED; return radi_j_recase(ev, self, JC_UPPER); }
METHOD(s_lower) { UNUSED; return radi_j_recase(ev, self, JC_LOWER); }
METHOD(s_title) { UNUSED; return radi_j_recase(ev, self, JC_TITLE); }
METHOD(s_capitalize) { UNUSED; return radi_j_recase(ev, self, JC_CAPITALIZE); }
METHOD(s_swapcase) { UNUSED; return radi_j_recase(ev, self, JC_SWAP); }
METHOD(s_casefold) { UNUSED; return radi_j_recase(ev, self, JC_FOLD); }

static struct radi_jv pad(struct radi_jev *ev, struct radi_jv self, const struct radi_jv *a,
                          char how)
{
    struct radi_jsb b = { .ev = ev };
    int64_t width = want_int(ev, a[0], 0), n = (int64_t)self.s->chars, left;
    const char *fill = " ";
    size_t fill_len = 1;
    if (radi_jv_given(a[1])) {
        if (want_str(ev, a[1])->chars != 1)
            radi_j_fail(ev, RAD_E_FORMAT,
                        "The fill character must be exactly one character long");
        fill = a[1].s->p;
        fill_len = a[1].s->len;
    }
    if (width <= n)
        return self;
    int64_t room = width - n;
    left = how == 'l' ? 0 : how == 'r' ? room : room / 2 + (room & width & 1);
    radi_jsb_fill(&b, fill, fill_len, left);
    radi_jsb_str(&b, self.s);
    radi_jsb_fill(&b, fill, fill_len, room - left);
    struct radi_jv v = radi_jsb_done(&b);
    v.markup = self.markup;
    return v;
}

METHOD(s_center) { UNUSED; return pad(ev, self, a, 'c'); }
METHOD(s_ljust) { UNUSED; return pad(ev, self, a, 'l'); }
METHOD(s_rjust) { UNUSED; return pad(ev, self, a, 'r'); }

METHOD(s_zfill)
{
    struct radi_jsb b = { .ev = ev };
    int64_t width = want_int(ev, a[0], 0), n = (int64_t)self.s->chars;
    size_t sign = self.s->len && (self.s->p[0] == '-' || self.s->p[0] == '+');
    UNUSED;
    if (width <= n)
        return self;
    radi_jsb_add(&b, self.s->p, sign);
    radi_jsb_fill(&b, "0", 1, width - n);
    radi_jsb_add(&b, self.s->p + sign, self.s->len - sign);
    return radi_jsb_done(&b);
}

METHOD(s_expandtabs)
{
    struct radi_jsb b = { .ev = ev };
    int64_t size = want_int(ev, a[0], 8), col = 0;
    UNUSED;
    for (size_t i = 0; i < self.s->len; i++) {
        char c = self.s->p[i];
        if (c == '\t') {
            int64_t n = size > 0 ? size - col % size : 0;
            radi_jsb_fill(&b, " ", 1, n);
            col += n;
            continue;
        }
        radi_jsb_addc(&b, c);
        col = c == '\n' || c == '\r' ? 0 : col + (((unsigned char)c & 0xc0) != 0x80);
    }
    return radi_jsb_done(&b);
}

METHOD(s_format) { UNUSED; return radi_j_str_format(ev, self, raw); }

#define CLASS(name, cls)                                                                  \
    METHOD(name) { UNUSED; radi_j_charge(ev, self.s->len / 16);                           \
                   return boolean(radi_j_class(self.s, cls)); }
CLASS(s_isalpha, JCL_ALPHA)
CLASS(s_isalnum, JCL_ALNUM)
CLASS(s_isdigit, JCL_DIGIT)
CLASS(s_isdecimal, JCL_DECIMAL)
CLASS(s_isnumeric, JCL_NUMERIC)
CLASS(s_isspace, JCL_SPACE)
CLASS(s_isupper, JCL_UPPER)
CLASS(s_islower, JCL_LOWER)
CLASS(s_istitle, JCL_TITLE)
CLASS(s_isascii, JCL_ASCII)
CLASS(s_isprintable, JCL_PRINTABLE)
CLASS(s_isidentifier, JCL_IDENT)

const struct radi_jdef radi_j_str_methods[] = {
    { "strip", s_strip, "chars", 0 },
    { "lstrip", s_lstrip, "chars", 0 },
    { "rstrip", s_rstrip, "chars", 0 },
    { "split", s_split, "sep,maxsplit", 0 },
    { "rsplit", s_rsplit, "sep,maxsplit", 0 },
    { "splitlines", s_splitlines, "keepends", 0 },
    { "partition", s_partition, "sep", 1 },
    { "rpartition", s_rpartition, "sep", 1 },
    { "startswith", s_startswith, "prefix,start,end", 1 },
    { "endswith", s_endswith, "suffix,start,end", 1 },
    { "find", s_find, "sub,start,end", 1 },
    { "rfind", s_rfind, "sub,start,end", 1 },
    { "index", s_index, "sub,start,end", 1 },
    { "rindex", s_rindex, "sub,start,end", 1 },
    { "count", s_count, "sub,start,end", 1 },
    { "replace", s_replace, "old,new,count", 2 },
    { "removeprefix", s_removeprefix, "prefix", 1 },
    { "removesuffix", s_removesuffix, "suffix", 1 },
    { "join", s_join, "iterable", 1 },
    { "upper", s_upper, "", 0 },
    { "lower", s_lower, "", 0 },
    { "title", s_title, "", 0 },
    { "capitalize", s_capitalize, "", 0 },
    { "swapcase", s_swapcase, "", 0 },
    { "casefold", s_casefold, "", 0 },
    { "center", s_center, "width,fillchar", 1 },
    { "ljust", s_ljust, "width,fillchar", 1 },
    { "rjust", s_rjust, "width,fillchar", 1 },
    { "zfill", s_zfill, "width", 1 },
    { "expandtabs", s_expandtabs, "tabsize", 0 },
    { "format", s_format, NULL, 0 },
    { "isalpha", s_isalpha, "", 0 },
    { "isalnum", s_isalnum, "", 0 },
    { "isdigit", s_isdigit, "", 0 },
    { "isdecimal", s_isdecimal, "", 0 },
    { "isnumeric", s_isnumeric, "", 0 },
    { "isspace", s_isspace, "", 0 },
    { "isupper", s_isupper, "", 0 },
    { "islower", s_islower, "", 0 },
    { "istitle", s_istitle, "", 0 },
    { "isascii", s_isascii, "", 0 },
    { "isprintable", s_isprintable, "", 0 },
    { "isidentifier", s_isidentifier, "", 0 },
    { "encode", NULL, NULL, 0 },
    { "format_map", NULL, NULL, 0 },
    { "maketrans", NULL, NULL, 0 },
    { "translate", NULL, NULL, 0 },
    { NULL, NULL, NULL, 0 },
};

/* ---- list */
METHOD(l_count)
{
    int64_t n = 0;
    UNUSED;
    for (size_t i = 0; i < self.q->n; i++)
        n += radi_j_eq(ev, self.q->v[i], a[0]);
    return radi_jv_int(n);
}

METHOD(l_index)
{
    int64_t n = (int64_t)self.q->n, from = want_int(ev, a[1], 0), to = want_int(ev, a[2], n);
    struct radi_jsb b = { .ev = ev };
    UNUSED;
    from = from < 0 ? RADI_MAX(from + n, 0) : from;
    to = to < 0 ? to + n : RADI_MIN(to, n);
    for (int64_t i = from; i < to; i++)
        if (radi_j_eq(ev, self.q->v[i], a[0]))
            return radi_jv_int(i);
    radi_jsb_repr(&b, a[0]);
    radi_j_fail(ev, RAD_E_FORMAT, "%.*s is not in list", (int)RADI_MIN(b.len, (size_t)200), b.p);
}

METHOD(l_copy) { UNUSED; return self; }

const struct radi_jdef radi_j_list_methods[] = {
    { "count", l_count, "value", 1 },
    { "index", l_index, "value,start,stop", 1 },
    { "copy", l_copy, "", 0 },
    { "append", NULL, NULL, 0 },
    { "clear", NULL, NULL, 0 },
    { "extend", NULL, NULL, 0 },
    { "insert", NULL, NULL, 0 },
    { "pop", NULL, NULL, 0 },
    { "remove", NULL, NULL, 0 },
    { "reverse", NULL, NULL, 0 },
    { "sort", NULL, NULL, 0 },
    { NULL, NULL, NULL, 0 },
};

/* ---- dict */
METHOD(d_get)
{
    const struct radi_jv *v = radi_j_find(ev, self.d, a[0]);
    UNUSED;
    return v ? *v : radi_jv_given(a[1]) ? a[1] : radi_jv_none();
}

static struct radi_jv view(struct radi_jev *ev, const struct radi_jdict *d,
                           enum radi_jseq_type type)
{
    struct radi_jseq *q = radi_j_seq(ev, type, d->n);
    for (size_t i = 0; i < d->n; i++)
        q->v[q->n++] = type == JQ_KEYS ? d->e[i].key : type == JQ_VALUES ? d->e[i].v
                     : radi_jv_pair(ev, d->e[i].key, d->e[i].v);
    return radi_jv_seq(q);
}

METHOD(d_items) { UNUSED; return view(ev, self.d, JQ_ITEMS); }
METHOD(d_keys) { UNUSED; return view(ev, self.d, JQ_KEYS); }
METHOD(d_values) { UNUSED; return view(ev, self.d, JQ_VALUES); }
METHOD(d_copy) { UNUSED; return self; }

const struct radi_jdef radi_j_dict_methods[] = {
    { "get", d_get, "key,default", 1 },
    { "items", d_items, "", 0 },
    { "keys", d_keys, "", 0 },
    { "values", d_values, "", 0 },
    { "copy", d_copy, "", 0 },
    { "fromkeys", NULL, NULL, 0 },
    { "clear", NULL, NULL, 0 },
    { "pop", NULL, NULL, 0 },
    { "popitem", NULL, NULL, 0 },
    { "setdefault", NULL, NULL, 0 },
    { "update", NULL, NULL, 0 },
    { NULL, NULL, NULL, 0 },
};
