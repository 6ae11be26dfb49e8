/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what Python's str knows of Unicode: white space, letter case (with the
 * mappings to more than one character), classes of characters. The character
 * data is utf8proc's. */
#include "config.h"

#include <utf8proc.h>

#include "text/template.h"

#include "banned.h"

static utf8proc_category_t category(uint32_t cp)
{
    return utf8proc_category((utf8proc_int32_t)cp);
}

bool radi_j_is_space(uint32_t cp)
{
    if (cp < 0x80)
        return (cp >= 9 && cp <= 13) || (cp >= 0x1c && cp <= 0x20);
    return cp == 0x85 || category(cp) == UTF8PROC_CATEGORY_ZS || cp == 0x2028 || cp == 0x2029;
}

size_t radi_j_lstrip(const char *s, size_t n)
{
    size_t i = 0, k;
    uint32_t cp;
    while (i < n && (k = radi_utf8_next(s + i, n - i, &cp)) && radi_j_is_space(cp))
        i += k;
    return i;
}

size_t radi_j_rstrip(const char *s, size_t n)
{
    while (n) {
        size_t at = n - 1;
        uint32_t cp;
        while (at && ((unsigned char)s[at] & 0xc0) == 0x80)
            at--;
        if (!radi_utf8_next(s + at, n - at, &cp) || !radi_j_is_space(cp))
            break;
        n = at;
    }
    return n;
}

bool radi_j_ident(uint32_t cp, bool first)
{
    if (cp < 0x80)
        return cp == '_' || (cp | 32) - 'a' < 26u || (!first && cp - '0' < 10u);
    switch (category(cp)) {
    case UTF8PROC_CATEGORY_LU: case UTF8PROC_CATEGORY_LL: case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM: case UTF8PROC_CATEGORY_LO: case UTF8PROC_CATEGORY_NL:
        return true;
    case UTF8PROC_CATEGORY_MN: case UTF8PROC_CATEGORY_MC: case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_PC:
        return !first;
    default:
        return false;
    }
}

/* ---- letter case. One character becomes several (Unicode SpecialCasing, the
 * entries without a condition). */
static const struct {
    uint16_t cp;
    uint16_t upper[3], title[3];
} special[] = {
    { 0x00df, { 0x53, 0x53 }, { 0x53, 0x73 } },
    { 0x0149, { 0x2bc, 0x4e }, { 0x2bc, 0x4e } },
    { 0x01f0, { 0x4a, 0x30c }, { 0x4a, 0x30c } },
    { 0x0390, { 0x399, 0x308, 0x301 }, { 0x399, 0x308, 0x301 } },
    { 0x03b0, { 0x3a5, 0x308, 0x301 }, { 0x3a5, 0x308, 0x301 } },
    { 0x0587, { 0x535, 0x552 }, { 0x535, 0x582 } },
    { 0x1e96, { 0x48, 0x331 }, { 0x48, 0x331 } },
    { 0x1e97, { 0x54, 0x308 }, { 0x54, 0x308 } },
    { 0x1e98, { 0x57, 0x30a }, { 0x57, 0x30a } },
    { 0x1e99, { 0x59, 0x30a }, { 0x59, 0x30a } },
    { 0x1e9a, { 0x41, 0x2be }, { 0x41, 0x2be } },
    { 0x1f50, { 0x3a5, 0x313 }, { 0x3a5, 0x313 } },
    { 0xfb00, { 0x46, 0x46 }, { 0x46, 0x66 } },
    { 0xfb01, { 0x46, 0x49 }, { 0x46, 0x69 } },
    { 0xfb02, { 0x46, 0x4c }, { 0x46, 0x6c } },
    { 0xfb03, { 0x46, 0x46, 0x49 }, { 0x46, 0x66, 0x69 } },
    { 0xfb04, { 0x46, 0x46, 0x4c }, { 0x46, 0x66, 0x6c } },
    { 0xfb05, { 0x53, 0x54 }, { 0x53, 0x74 } },
    { 0xfb06, { 0x53, 0x54 }, { 0x53, 0x74 } },
    { 0xfb13, { 0x544, 0x546 }, { 0x544, 0x576 } },
    { 0xfb14, { 0x544, 0x535 }, { 0x544, 0x565 } },
    { 0xfb15, { 0x544, 0x53b }, { 0x544, 0x56b } },
    { 0xfb16, { 0x54e, 0x546 }, { 0x54e, 0x576 } },
    { 0xfb17, { 0x544, 0x53d }, { 0x544, 0x56d } },
};

static void put_upper(struct radi_jsb *b, uint32_t cp, bool title)
{
    if (cp < 0x80) {
        radi_jsb_addc(b, (char)(cp - 'a' < 26 ? cp - 32 : cp));
        return;
    }
    for (size_t i = 0; i < RADI_COUNT(special); i++)
        if (special[i].cp == cp) {
            const uint16_t *to = title ? special[i].title : special[i].upper;
            for (int k = 0; k < 3 && to[k]; k++)
                radi_jsb_cp(b, to[k]);
            return;
        }
    utf8proc_int32_t c = (utf8proc_int32_t)cp;
    radi_jsb_cp(b, (uint32_t)(title ? utf8proc_totitle(c) : utf8proc_toupper(c)));
}

static bool is_cased(uint32_t cp)
{
    utf8proc_int32_t c = (utf8proc_int32_t)cp;
    utf8proc_category_t k = category(cp);
    return k == UTF8PROC_CATEGORY_LU || k == UTF8PROC_CATEGORY_LL || k == UTF8PROC_CATEGORY_LT ||
           utf8proc_tolower(c) != c || utf8proc_toupper(c) != c;
}

static bool ignored_for_sigma(uint32_t cp)
{
    utf8proc_category_t k = category(cp);
    return k == UTF8PROC_CATEGORY_MN || k == UTF8PROC_CATEGORY_ME || k == UTF8PROC_CATEGORY_CF ||
           k == UTF8PROC_CATEGORY_LM || k == UTF8PROC_CATEGORY_SK || cp == '\'' || cp == '.' ||
           cp == ':' || cp == 0xb7 || cp == 0x2019;
}

/* Sigma is final when a cased letter stands before it and none after. */
static bool final_sigma(const char *s, size_t n, size_t at, size_t width)
{
    uint32_t cp;
    size_t i = at, k;
    bool before = false;

    while (i && !before) {
        do
            i--;
        while (i && ((unsigned char)s[i] & 0xc0) == 0x80);
        if (!radi_utf8_next(s + i, n - i, &cp))
            break;
        if (ignored_for_sigma(cp))
            continue;
        if (!is_cased(cp))
            break;
        before = true;
    }
    for (i = at + width; before && i < n; i += k) {
        k = radi_utf8_next(s + i, n - i, &cp);
        if (!k)
            break;
        if (!ignored_for_sigma(cp))
            return !is_cased(cp);
    }
    return before;
}

static void put_lower(struct radi_jsb *b, uint32_t cp, const char *s, size_t n, size_t at,
                      size_t width)
{
    if (cp < 0x80)
        radi_jsb_addc(b, (char)(cp - 'A' < 26 ? cp + 32 : cp));
    else if (cp == 0x3a3)
        radi_jsb_cp(b, final_sigma(s, n, at, width) ? 0x3c2 : 0x3c3);
    else if (cp == 0x130)
        radi_jsb_add(b, "i\xcc\x87", 3);
    else
        radi_jsb_cp(b, (uint32_t)utf8proc_tolower((utf8proc_int32_t)cp));
}

static void put_fold(struct radi_jsb *b, uint32_t cp)
{
    utf8proc_int32_t to[8];
    int boundary = 0;
    utf8proc_ssize_t n = utf8proc_decompose_char((utf8proc_int32_t)cp, to, 8, UTF8PROC_CASEFOLD,
                                                 &boundary);
    for (utf8proc_ssize_t i = 0; i < n && i < 8; i++)
        radi_jsb_cp(b, (uint32_t)to[i]);
}

struct radi_jv radi_j_recase(struct radi_jev *ev, struct radi_jv v, enum radi_jcase how)
{
    struct radi_jsb b = { .ev = ev };
    const char *s = v.s->p;
    size_t n = v.s->len, k;
    bool in_word = false;

    radi_j_charge(ev, n / 16);
    for (size_t i = 0; i < n; i += k) {
        uint32_t cp;
        k = radi_utf8_next(s + i, n - i, &cp);
        if (!k)
            break;
        bool up = how == JC_UPPER;
        if (how == JC_TITLE)
            up = !in_word;
        else if (how == JC_CAPITALIZE)
            up = i == 0;
        else if (how == JC_SWAP)
            up = category(cp) != UTF8PROC_CATEGORY_LU && category(cp) != UTF8PROC_CATEGORY_LT;
        if (how == JC_FOLD)
            put_fold(&b, cp);
        else if (up)
            put_upper(&b, cp, how == JC_TITLE || how == JC_CAPITALIZE);
        else
            put_lower(&b, cp, s, n, i, k);
        if (how == JC_TITLE)
            in_word = is_cased(cp);
    }
    struct radi_jv r = radi_jsb_done(&b);
    r.markup = v.markup;
    return r;
}

/* ---- classes */
static bool has_class(uint32_t cp, enum radi_jclass c)
{
    utf8proc_category_t k = category(cp);
    bool letter = k == UTF8PROC_CATEGORY_LU || k == UTF8PROC_CATEGORY_LL ||
                  k == UTF8PROC_CATEGORY_LT || k == UTF8PROC_CATEGORY_LM ||
                  k == UTF8PROC_CATEGORY_LO;
    /* superscripts, subscripts and circled digits are digits, not decimals */
    bool digit = k == UTF8PROC_CATEGORY_ND || cp == 0xb2 || cp == 0xb3 || cp == 0xb9 ||
                 cp == 0x2070 || (cp >= 0x2074 && cp <= 0x2079) ||
                 (cp >= 0x2080 && cp <= 0x2089) || (cp >= 0x2460 && cp <= 0x2468);
    bool numeric = digit || k == UTF8PROC_CATEGORY_NL || k == UTF8PROC_CATEGORY_NO;
    switch (c) {
    case JCL_ALPHA: return letter;
    case JCL_ALNUM: return letter || numeric;
    case JCL_DIGIT: return digit;
    case JCL_DECIMAL: return k == UTF8PROC_CATEGORY_ND;
    case JCL_NUMERIC: return numeric;
    case JCL_SPACE: return radi_j_is_space(cp);
    case JCL_ASCII: return cp < 0x80;
    case JCL_PRINTABLE: return radi_j_printable(cp);
    default: return false;
    }
}

/* isupper, islower, istitle: at least one cased character and none that
 * contradicts. */
static bool has_case(const struct radi_jstr *s, enum radi_jclass c)
{
    bool any = false, prev = false;
    size_t k;
    for (size_t i = 0; i < s->len; i += k) {
        uint32_t cp;
        k = radi_utf8_next(s->p + i, s->len - i, &cp);
        if (!k)
            return false;
        utf8proc_category_t t = category(cp);
        bool up = t == UTF8PROC_CATEGORY_LU, title = t == UTF8PROC_CATEGORY_LT;
        bool low = t == UTF8PROC_CATEGORY_LL;
        if (c == JCL_UPPER ? low || title : c == JCL_LOWER ? up || title
                                          : (up || title) ? prev : low && !prev)
            return false;
        prev = up || title || low;
        any |= c == JCL_UPPER ? up : c == JCL_LOWER ? low : prev;
    }
    return any;
}

bool radi_j_class(const struct radi_jstr *s, enum radi_jclass c)
{
    size_t k;
    if (c == JCL_UPPER || c == JCL_LOWER || c == JCL_TITLE)
        return has_case(s, c);
    if (s->len == 0)
        return c == JCL_ASCII || c == JCL_PRINTABLE;
    for (size_t i = 0; i < s->len; i += k) {
        uint32_t cp;
        k = radi_utf8_next(s->p + i, s->len - i, &cp);
        if (!k || !(c == JCL_IDENT ? radi_j_ident(cp, i == 0) : has_class(cp, c)))
            return false;
    }
    return true;
}

bool radi_j_printable(uint32_t cp)
{
    if (cp < 0x7f)
        return cp >= 0x20;
    switch (category(cp)) {
    case UTF8PROC_CATEGORY_CC: case UTF8PROC_CATEGORY_CF: case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO: case UTF8PROC_CATEGORY_CN: case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP: case UTF8PROC_CATEGORY_ZS:
        return false;
    default:
        return true;
    }
}
