/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the tokenizer certificate: texts and the ids they encode to. The texts are
 * drawn without chance from a seed text and from the vocabulary, so making it
 * again gives the same bytes. The file stores them, which keeps a check
 * independent of how they were drawn.
 *
 * Form, little-endian: "RADTOK1\0", u32 count, u32 0, then for each vector
 * u32 text bytes, u32 ids, u32 flags, the text, the ids as i32; no padding. */
#include "config.h"

#include "text/tok.h"

#include "banned.h"

enum { HEADER = 16, VECTOR = 12, FROM_VOCAB = 2400, MAX_TEXT = 4096 };

static const char magic[8] = "RADTOK1";

/* Written for this purpose: scripts, numbers, contractions, code, spaces. */
static const char *const seed[] = {
    "The quick brown fox can't jump over the lazy dog; they've tried, it'll fail, I'd bet.",
    "  leading and trailing spaces  ", "tabs\tand\r\nlines\n\n\nand   runs    of     spaces",
    "1 12 123 1234 12345 3.14159 1,000,000 0x1F 1e-9 2026-01-31T23:59:59Z",
    "int main(void)\n{\n\tfor (size_t i = 0; i < n; i++)\n\t\tputs(\"x\\n\");\n\treturn 0;\n}\n",
    "def f(x: int = 0) -> str:\n    return f'{x!r:>10}'  # comment\n",
    "{\"key\": [1, 2.5, null, true], \"text\": \"a\\u0041\"}",
    "<p class=\"a\">&amp; &lt;b&gt;</p> https://example.org/a?b=c&d=%20#e user@example.org",
    "Gr\xc3\xbc\xc3\x9f" "e aus K\xc3\xb6ln, na\xc3\xafve caf\xc3\xa9 \xe2\x80\x94 "
        "\xe2\x80\x9cquoted\xe2\x80\x9d \xe2\x80\xa6",
    "e\xcc\x81 o\xcc\x88 \xef\xac\x81 \xe2\x84\xab \xc5\xbf \xef\xbc\xa1\xef\xbc\xa2",
    "\xd0\x9f\xd1\x80\xd0\xb8\xd0\xb2\xd0\xb5\xd1\x82, \xd0\xbc\xd0\xb8\xd1\x80! "
        "\xce\x93\xce\xb5\xce\xb9\xce\xac \xcf\x83\xce\xbf\xcf\x85",
    "\xe4\xbd\xa0\xe5\xa5\xbd\xef\xbc\x8c\xe4\xb8\x96\xe7\x95\x8c\xe3\x80\x82 "
        "\xe3\x81\x93\xe3\x82\x93\xe3\x81\xab\xe3\x81\xa1\xe3\x81\xaf "
        "\xec\x95\x88\xeb\x85\x95",
    "\xd9\x85\xd8\xb1\xd8\xad\xd8\xa8\xd8\xa7 \xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d "
        "\xe0\xa4\xa8\xe0\xa4\xae\xe0\xa4\xb8\xe0\xa5\x8d\xe0\xa4\xa4\xe0\xa5\x87 "
        "\xe0\xb8\xaa\xe0\xb8\xa7\xe0\xb8\xb1\xe0\xb8\xaa\xe0\xb8\x94\xe0\xb8\xb5",
    "\xf0\x9f\x99\x82\xf0\x9f\x91\x8d\xf0\x9f\x8f\xbd "
        "\xf0\x9f\x91\xa8\xe2\x80\x8d\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7 "
        "\xe2\x88\x91\xe2\x88\x9e \xc2\xbd \xc2\xb2",
    "HTTPServer getURLFromString camelCase snake_case SCREAMING_CASE kebab-case",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa ........ -------- ======== \xc2\xa0\xc2\xa0 \xe3\x80\x80",
    "!?.,;:'\"()[]{}<>/\\|@#$%^&*-_=+~`", "'S 'T 'RE 'VE 'M 'LL 'D it'S we'Re",
};

static void add32(struct radi_str *o, uint32_t v)
{
    radi_str_add(o, (const char *)&v, 4);
}

struct maker {
    const struct rad_tokenizer *t;
    struct radi_str *out;
    struct rad_ids ids;
    uint32_t count;
    struct rad_err *err;
};

static rad_status vector(struct maker *m, const char *s, size_t n, unsigned flags)
{
    m->ids.n = 0;
    RAD_TRY(rad_tokenizer_encode(m->t, s, n, flags, &m->ids, m->err));
    add32(m->out, (uint32_t)n);
    add32(m->out, (uint32_t)m->ids.n);
    add32(m->out, flags);
    radi_str_add(m->out, s, n);
    radi_str_add(m->out, (const char *)m->ids.id, 4 * m->ids.n);
    m->count++;
    return RAD_OK;
}

/* Whole characters of at most n bytes. */
static size_t whole(const char *s, size_t n)
{
    while (n && ((uint8_t)s[n] & 0xc0) == 0x80)
        n--;
    return n;
}

static rad_status from_seed(struct maker *m)
{
    static const unsigned flags[3] = { RAD_TOK_PARSE_SPECIAL, 0,
                                       RAD_TOK_PARSE_SPECIAL | RAD_TOK_ADD_SPECIAL };
    RAD_TRY(vector(m, "", 0, RAD_TOK_ADD_SPECIAL));
    for (size_t i = 0; i < RADI_COUNT(seed); i++) {
        size_t n = strlen(seed[i]);
        for (size_t f = 0; f < 3; f++)
            RAD_TRY(vector(m, seed[i], n, flags[f]));
        for (size_t k = 5; k < n; k += 7) {     /* every piece boundary shifts */
            size_t e = whole(seed[i], k), b = k / 2;
            while (b < e && ((uint8_t)seed[i][b] & 0xc0) == 0x80)
                b++;
            RAD_TRY(vector(m, seed[i] + b, e - b, RAD_TOK_PARSE_SPECIAL));
        }
    }
    return RAD_OK;
}

/* Neighbours in a walk over the vocabulary with a step that meets every part. */
static rad_status from_vocab(struct maker *m)
{
    size_t n = m->t->spec.n_tokens, made = n < FROM_VOCAB ? n : FROM_VOCAB, id = 0;
    struct rad_tok_text s = { 0 };
    rad_status st = RAD_OK;
    for (size_t i = 0; !st && i < made; i++) {
        s.len = 0;
        size_t words = 1 + i % 4;
        for (size_t w = 0; !st && w < words; w++) {
            id = (id + 0x9e3779b1u) % n;
            st = rad_tokenizer_piece(m->t, (int32_t)id, &s, m->err);
        }
        if (!st && s.len <= MAX_TEXT && radi_utf8_valid(s.s, s.len))
            st = vector(m, s.s, s.len, i % 5 ? RAD_TOK_PARSE_SPECIAL : 0);
    }
    for (size_t i = 0; !st && i < m->t->spec.n_added && i < 512; i++) {
        s.len = 0;
        const struct radi_tstr *t = &m->t->spec.text[m->t->spec.added[i].id];
        struct radi_str b = { 0 };
        radi_str_adds(&b, "a ");
        radi_str_add(&b, t->s, t->n);
        radi_str_adds(&b, " b");
        st = b.failed ? rad_fail(m->err, RAD_E_NOMEM, "out of memory for a certificate")
                      : vector(m, b.s, b.len, i % 2 ? RAD_TOK_PARSE_SPECIAL : 0);
        radi_str_release(&b);
    }
    rad_tok_text_release(&s);
    return st;
}

rad_status rad_tokenizer_certificate_make(const struct rad_tokenizer *t, struct rad_tok_text *out,
                                          struct rad_err *err)
{
    struct radi_str o = { out->s, out->len, out->cap, false };
    struct maker m = { .t = t, .out = &o, .err = err };
    size_t at = o.len;
    radi_str_add(&o, magic, sizeof magic);
    add32(&o, 0);
    add32(&o, 0);
    rad_status st = from_seed(&m);
    if (!st)
        st = from_vocab(&m);
    if (!st && o.failed)
        st = rad_fail(err, RAD_E_NOMEM, "out of memory for a certificate");
    if (!st)
        memcpy(o.s + at + 8, &m.count, 4);
    rad_ids_release(&m.ids);
    *out = (struct rad_tok_text){ o.s, o.len, o.cap };
    return st;
}

rad_status rad_tokenizer_certificate_check(const struct rad_tokenizer *t, const void *cert,
                                           size_t len, size_t *vectors, struct rad_err *err)
{
    const uint8_t *p = cert;
    struct rad_ids ids = { 0 };
    uint32_t count, h[3];
    rad_status st = RAD_OK;
    if (vectors)
        *vectors = 0;
    if (len < HEADER || memcmp(p, magic, sizeof magic))
        return rad_fail(err, RAD_E_FORMAT, "certificate: %zu bytes that do not begin as one", len);
    memcpy(&count, p + 8, 4);
    size_t at = HEADER;
    for (uint32_t i = 0; !st && i < count; i++) {
        if (len - at < VECTOR) {
            st = rad_fail(err, RAD_E_FORMAT, "certificate: ends in vector %u of %u", i, count);
            break;
        }
        memcpy(h, p + at, sizeof h);
        at += VECTOR;
        if (h[0] > len - at || h[1] > (len - at - h[0]) / 4 || h[2] > 7) {
            st = rad_fail(err, RAD_E_FORMAT, "certificate: vector %u: %u bytes, %u ids, flags %u",
                          i, h[0], h[1], h[2]);
            break;
        }
        const char *s = (const char *)p + at;
        ids.n = 0;
        st = rad_tokenizer_encode(t, s, h[0], h[2], &ids, err);
        if (!st && (ids.n != h[1] || (ids.n && memcmp(ids.id, s + h[0], 4 * ids.n))))
            st = rad_fail(err, RAD_E_MISMATCH,
                          "certificate: vector %u ('%.*s'): %zu ids made, %u wanted", i,
                          (int)RADI_MIN(h[0], 60u), s, ids.n, h[1]);
        at += h[0] + 4 * (size_t)h[1];
        if (!st && vectors)
            ++*vectors;
    }
    if (!st && at != len)
        st = rad_fail(err, RAD_E_FORMAT, "certificate: %zu bytes behind the last vector", len - at);
    rad_ids_release(&ids);
    return st;
}
