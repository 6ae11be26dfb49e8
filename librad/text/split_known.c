/* SPDX-License-Identifier: Apache-2.0 */
/* Owns splitters for the pre-tokeniser patterns that most models use, chosen by
 * the pattern's exact text. Each is written from the pattern, runs in linear
 * time, and is compared with PCRE2 on random text in a test. Text is valid
 * UTF-8. Everything else goes through PCRE2 (regex.c). */
#include "config.h"

#include <utf8proc.h>

#include "text/tok.h"

#include "banned.h"

enum {
    LU = 1,      /* Lu Lt */
    LL = 2,      /* Ll */
    LO = 4,      /* Lm Lo */
    MK = 8,      /* M */
    NU = 16,     /* N */
    SP = 32,     /* \s */
    PU = 64,     /* P */
    SY = 128,    /* S */
    LETTER = LU | LL | LO,
    UPPER = LU | LO | MK,
    LOWER = LL | LO | MK,
};

static const uint8_t ascii[128] = {
    [9 ... 13] = SP, [' '] = SP,
    ['!' ... '#'] = PU, ['$'] = SY, ['%' ... '*'] = PU, ['+'] = SY, [',' ... '/'] = PU,
    ['0' ... '9'] = NU,
    [':' ... ';'] = PU, ['<' ... '>'] = SY, ['?' ... '@'] = PU,
    ['A' ... 'Z'] = LU,
    ['[' ... ']'] = PU, ['^'] = SY, ['_'] = PU, ['`'] = SY,
    ['a' ... 'z'] = LL,
    ['{'] = PU, ['|'] = SY, ['}'] = PU, ['~'] = SY,
};

static const uint8_t by_category[30] = {
    [UTF8PROC_CATEGORY_LU] = LU, [UTF8PROC_CATEGORY_LT] = LU, [UTF8PROC_CATEGORY_LL] = LL,
    [UTF8PROC_CATEGORY_LM] = LO, [UTF8PROC_CATEGORY_LO] = LO,
    [UTF8PROC_CATEGORY_MN] = MK, [UTF8PROC_CATEGORY_MC] = MK, [UTF8PROC_CATEGORY_ME] = MK,
    [UTF8PROC_CATEGORY_ND] = NU, [UTF8PROC_CATEGORY_NL] = NU, [UTF8PROC_CATEGORY_NO] = NU,
    [UTF8PROC_CATEGORY_PC] = PU, [UTF8PROC_CATEGORY_PD] = PU, [UTF8PROC_CATEGORY_PS] = PU,
    [UTF8PROC_CATEGORY_PE] = PU, [UTF8PROC_CATEGORY_PI] = PU, [UTF8PROC_CATEGORY_PF] = PU,
    [UTF8PROC_CATEGORY_PO] = PU,
    [UTF8PROC_CATEGORY_SM] = SY, [UTF8PROC_CATEGORY_SC] = SY, [UTF8PROC_CATEGORY_SK] = SY,
    [UTF8PROC_CATEGORY_SO] = SY,
};

/* Class of the character at i < n; its length in *l. */
static inline unsigned cls(const char *s, size_t n, size_t i, size_t *l)
{
    uint8_t b = (uint8_t)s[i];
    if (b < 128) {
        *l = 1;
        return ascii[b];
    }
    uint32_t cp;
    *l = radi_utf8_next(s + i, n - i, &cp);
    if (!*l) {
        *l = 1;
        return 0;
    }
    if (radi_cp_space(cp))
        return SP;
    return by_category[utf8proc_category((utf8proc_int32_t)cp)];
}

static inline size_t run(const char *s, size_t n, size_t i, unsigned set)
{
    size_t l;
    while (i < n && (cls(s, n, i, &l) & set))
        i += l;
    return i;
}

/* Characters that are in none of the classes of `not`. */
static inline size_t run_not(const char *s, size_t n, size_t i, unsigned not)
{
    size_t l;
    while (i < n && !(cls(s, n, i, &l) & not))
        i += l;
    return i;
}

static inline size_t newlines(const char *s, size_t n, size_t i)
{
    while (i < n && (s[i] == '\r' || s[i] == '\n'))
        i++;
    return i;
}

static inline char fold(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c | 32) : c;
}

/* 's 't 're 've 'm 'll 'd at i: the end, or i. Without regard to case, s also
 * is U+017F, as Unicode folds it. */
static size_t contraction(const char *s, size_t n, size_t i, bool nocase)
{
    if (n - i < 2 || s[i] != '\'')
        return i;
    char a = nocase ? fold(s[i + 1]) : s[i + 1];
    if (a == 's' || a == 't' || a == 'm' || a == 'd')
        return i + 2;
    if (n - i < 3)
        return i;
    char b = nocase ? fold(s[i + 2]) : s[i + 2];
    if ((a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l'))
        return i + 3;
    if (nocase && s[i + 1] == '\xc5' && s[i + 2] == '\xbf')
        return i + 3;
    return i;
}

/* \s*[\r\n]+ | \s+(?!\S) | \s+ at a space; without the first for GPT-2. */
static size_t spaces(const char *s, size_t n, size_t i, bool lines)
{
    size_t l, end = i, last = i, nl = 0;
    while (end < n && (cls(s, n, end, &l) & SP)) {
        last = end;
        end += l;
        if (s[last] == '\r' || s[last] == '\n')
            nl = end;
    }
    if (lines && nl)
        return nl;
    if (end == n || last == i)
        return end;
    return last;
}

static size_t digits(const char *s, size_t n, size_t i, int max)
{
    size_t l;
    for (int k = 0; k < max && i < n && (cls(s, n, i, &l) & NU); k++)
        i += l;
    return i;
}

/* The family of tiktoken's cl100k: `max` digits a piece, `letter` the class
 * that words are made of. */
static inline size_t cl100k(const char *s, size_t n, size_t i, int max, unsigned letter,
                            bool nocase)
{
    size_t l, e;
    unsigned c = cls(s, n, i, &l);
    if (c & letter)
        return run(s, n, i + l, letter);
    if (s[i] == '\'' && (e = contraction(s, n, i, nocase)) > i)
        return e;
    if (c & NU)
        return digits(s, n, i, max);
    size_t next = i + l, l2;
    unsigned c2 = next < n ? cls(s, n, next, &l2) : 0;
    if (next < n && (c2 & letter) && s[i] != '\r' && s[i] != '\n')
        return run(s, n, next + l2, letter);
    unsigned word = letter | NU | SP;
    if (!(c & word))
        return newlines(s, n, run_not(s, n, next, word));
    if (s[i] == ' ' && next < n && !(c2 & word))
        return newlines(s, n, run_not(s, n, next + l2, word));
    return spaces(s, n, i, true);
}

static size_t split_qwen2(const char *s, size_t n, size_t i, bool *matched)
{
    *matched = true;
    return cl100k(s, n, i, 1, LETTER, true);
}
static size_t split_llama3(const char *s, size_t n, size_t i, bool *matched)
{
    *matched = true;
    return cl100k(s, n, i, 3, LETTER, true);
}
static size_t split_qwen35(const char *s, size_t n, size_t i, bool *matched)
{
    *matched = true;
    return cl100k(s, n, i, 1, LETTER | MK, true);
}

size_t radi_split_bytelevel(const char *s, size_t n, size_t i, bool *matched)
{
    size_t l, e, p = i;
    *matched = true;
    if (s[i] == '\'' && (e = contraction(s, n, i, false)) > i)
        return e;
    unsigned c = cls(s, n, i, &l);
    if (s[i] == ' ' && i + 1 < n) {
        size_t l2;
        unsigned c2 = cls(s, n, i + 1, &l2);
        if (!(c2 & SP)) {
            p = i + 1;
            c = c2;
            l = l2;
        }
    }
    if (c & LETTER)
        return run(s, n, p + l, LETTER);
    if (c & NU)
        return run(s, n, p + l, NU);
    if (!(c & SP))
        return run_not(s, n, p + l, LETTER | NU | SP);
    return spaces(s, n, i, false);
}

/* U* W+ at p: the end, or p. Where the run of U is not followed by a W, the
 * last of it that is in both classes ends the match. */
static size_t upper_lower(const char *s, size_t n, size_t p)
{
    size_t l, q = p, both = p;
    unsigned c;
    while (q < n && ((c = cls(s, n, q, &l)) & UPPER)) {
        q += l;
        if (c & LOWER)
            both = q;
    }
    size_t e = run(s, n, q, LOWER);
    return e > q ? e : both;
}

static size_t split_o200k(const char *s, size_t n, size_t i, bool *matched)
{
    size_t l, l2, e, start[2];
    int tries = 0;
    *matched = true;
    unsigned c = cls(s, n, i, &l);
    if (!(c & (LETTER | NU)) && s[i] != '\r' && s[i] != '\n' && i + l < n)
        start[tries++] = i + l;
    if (c & (LETTER | MK))
        start[tries++] = i;
    for (int k = 0; k < tries; k++)
        if ((e = upper_lower(s, n, start[k])) > start[k])
            return contraction(s, n, e, true);
    for (int k = 0; k < tries; k++) {
        size_t q = run(s, n, start[k], UPPER);
        if (q > start[k])
            return contraction(s, n, run(s, n, q, LOWER), true);
    }
    if (c & NU)
        return digits(s, n, i, 3);
    unsigned word = LETTER | NU | SP;
    size_t p = i;
    if (s[i] == ' ' && i + 1 < n && !(cls(s, n, i + 1, &l2) & word))
        p = i + 1;
    if (p > i || !(c & word)) {
        e = run_not(s, n, p, word);
        while (e < n && (s[e] == '\r' || s[e] == '\n' || s[e] == '/'))
            e++;
        return e;
    }
    return spaces(s, n, i, true);
}

static size_t split_digits3(const char *s, size_t n, size_t i, bool *matched)
{
    size_t e = digits(s, n, i, 3);
    *matched = e > i;
    return e > i ? e : run_not(s, n, i, NU);
}

static size_t split_digit1(const char *s, size_t n, size_t i, bool *matched)
{
    size_t e = digits(s, n, i, 1);
    *matched = e > i;
    return e > i ? e : run_not(s, n, i, NU);
}

static bool cjk_at(const char *s, size_t n, size_t i, size_t *l)
{
    uint32_t cp = 0;
    if ((uint8_t)s[i] < 0xe3) {
        *l = 1;
        return false;
    }
    *l = radi_utf8_next(s + i, n - i, &cp);
    if (!*l)
        *l = 1;
    return (cp >= 0x4e00 && cp <= 0x9fa5) || (cp >= 0x3040 && cp <= 0x30ff);
}

static size_t split_ds_cjk(const char *s, size_t n, size_t i, bool *matched)
{
    size_t l;
    *matched = cjk_at(s, n, i, &l);
    do
        i += l;
    while (i < n && cjk_at(s, n, i, &l) == *matched);
    return i;
}

/* DeepSeek V3's third pattern at i: the end of the match, or i. */
static size_t ds_match(const char *s, size_t n, size_t i)
{
    size_t l, l2;
    unsigned c = cls(s, n, i, &l);
    size_t next = i + l;
    unsigned c2 = next < n ? cls(s, n, next, &l2) : 0;
    if ((uint8_t)s[i] < 128 && (c & (PU | SY)) && next < n &&
        (uint8_t)(fold(s[next]) - 'a') < 26) {
        do
            next++;
        while (next < n && (uint8_t)(fold(s[next]) - 'a') < 26);
        return next;
    }
    if (c & (LETTER | MK))
        return run(s, n, next, LETTER | MK);
    if (!(c & (PU | SY)) && s[i] != '\r' && s[i] != '\n' && (c2 & (LETTER | MK)))
        return run(s, n, next, LETTER | MK);
    if (c & (PU | SY))
        return newlines(s, n, run(s, n, next, PU | SY));
    if (s[i] == ' ' && (c2 & (PU | SY)))
        return newlines(s, n, run(s, n, next, PU | SY));
    return c & SP ? spaces(s, n, i, true) : i;
}

static size_t split_deepseek3(const char *s, size_t n, size_t i, bool *matched)
{
    size_t l, e = ds_match(s, n, i);
    *matched = e > i;
    if (e > i)
        return e;
    do {
        cls(s, n, i, &l);
        i += l;
    } while (i < n && ds_match(s, n, i) == i);
    return i;
}

#define NOCASE "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define TAIL "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define CL100K "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" TAIL
#define O200K_U "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define O200K_W "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define O200K_O "[^\\r\\n\\p{L}\\p{N}]?"

const struct radi_known_pattern radi_known_patterns[] = {
    { "gpt-2", "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
      radi_split_bytelevel, true },
    { "gpt-2 grouped",
      "'(?:[sdmt]|ll|ve|re)| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
      radi_split_bytelevel, true },
    { "llama-3", NOCASE CL100K, split_llama3, true },
    { "qwen2",
      NOCASE "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|" TAIL,
      split_qwen2, true },
    { "qwen3.5",
      NOCASE "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|"
      TAIL, split_qwen35, true },
    { "o200k",
      O200K_O O200K_U "*" O200K_W "+" NOCASE "?|" O200K_O O200K_U "+" O200K_W "*" NOCASE
      "?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" TAIL, split_o200k, true },
    { "digits-3", "\\p{N}{1,3}", split_digits3, false },
    { "digit", "\\p{N}", split_digit1, false },
    { "deepseek-v3 cjk",
      "[\xe4\xb8\x80-\xe9\xbe\xa5\xe3\x81\x80-\xe3\x82\x9f\xe3\x82\xa0-\xe3\x83\xbf]+",
      split_ds_cjk, false },
    { "deepseek-v3",
      "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?"
      "[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
      split_deepseek3, false },
    { NULL, NULL, NULL, false },
};

const struct radi_known_pattern *radi_pattern_known(const char *pat, size_t n)
{
    for (const struct radi_known_pattern *k = radi_known_patterns; k->name; k++)
        if (strlen(k->pattern) == n && !memcmp(k->pattern, pat, n))
            return k;
    return NULL;
}
