/* SPDX-License-Identifier: Apache-2.0 */
/* Tokenizers from inside. Without arguments: unit cases (TAP). Verbs, each with
 * exit 1 when something differs:
 *   golden DIR          expected.json of a golden folder: cases, chats, prefixes
 *   llamacpp TOK IN OUT texts and ids of llama.cpp's vocabulary tests
 *   container TOK FILE  the vocab section: write, read back, write again
 *   flip FILE           each byte of a container's tables changed, one at a time
 *   gguf TOK PRE        the same vocabulary as GGUF metadata
 *   stream TOK          random ids through the streaming detokeniser
 *   long TOK            texts without a space: time and heap stay in proportion
 *   bad FILE            a tokenizer.json that must be refused */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "config.h"

#include <cjson/cJSON.h>
#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <rad/ckpt.h>
#include <rad/model_write.h>

#include "tap.h"
#include "text/tok.h"

static struct rad_err err;
static uint64_t rng = 88172645463325252u;
static uint32_t rnd(uint32_t n)
{
    rng ^= rng << 13;
    rng ^= rng >> 7;
    rng ^= rng << 17;
    return (uint32_t)((rng >> 20) % n);
}

_Noreturn static void die(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, err.text);
    exit(3);
}

/* ---- splitters against PCRE2. Code points of every class that the patterns
 * tell apart, from blocks that no Unicode version has changed. */
static const uint32_t points[] = {
    'a', 'b', 'Z', 'S', 's', 't', 'r', 'e', 'E', 'v', 'm', 'L', 'l', 'd', '\'', '\'', '0', '7',
    ' ', ' ', ' ', '\n', '\r', '\t', 0x0b, 0x0c, 0x85, 0xa0, 0x180e, 0x2003, 0x2028, 0x3000, 0x200b,
    '!', '"', '#', '$', '/', '_', '-', '.', '<', '=', '^', '|', '~', '`', '\\', '[', ']',
    0, 1, 0x7f,
    0xe9, 0xc9, 0xdf, 0x17f, 0x1c5, 0x2b0, 0x301, 0x308, 0x903, 0x20dd, 0x5d0, 0x627, 0x915,
    0x4e00, 0x9fa5, 0x9fa6, 0x3042, 0x30a2, 0x30ff, 0x3100, 0xac00, 0xb2, 0xbd, 0x2160, 0x663,
    0x2019, 0x3001, 0x20ac, 0x2211, 0x2603, 0x1f642, 0x1f3fd, 0x200d, 0xfeff, 0xe000, 0x10400,
    0x10428, 0xfffd, 0x212a,
};

static size_t random_text(char *buf, uint32_t chars)
{
    struct radi_str s = { 0 };
    for (uint32_t i = 0; i < chars; i++) {
        uint32_t cp = points[rnd(RADI_COUNT(points))];
        uint32_t n = rnd(8) ? 1 : 1 + rnd(5);
        while (n--)
            radi_str_add_utf8(&s, cp);
    }
    memcpy(buf, s.s ? s.s : "", s.len);
    size_t len = s.len;
    radi_str_release(&s);
    return len;
}

static void splitters(void)
{
    static char text[4096];
    pcre2_match_data *md = pcre2_match_data_create(4, NULL);
    for (const struct radi_known_pattern *k = radi_known_patterns; k->name; k++) {
        void *code = NULL;
        if (radi_regex_compile(k->pattern, strlen(k->pattern), &code, &err))
            die(k->name);
        int bad = 0;
        for (int round = 0; round < 20000 && bad < 3; round++) {
            size_t n = random_text(text, 1 + rnd(24)), at = 0;
            while (at < n && bad < 3) {
                int rc = pcre2_match(code, (PCRE2_SPTR)text, n, at, PCRE2_NO_UTF_CHECK, md, NULL);
                PCRE2_SIZE *ov = pcre2_get_ovector_pointer(md);
                size_t ms = rc > 0 ? ov[0] : n, me = rc > 0 ? ov[1] : n;
                bool matched;
                if (ms > at) {           /* a gap, told in one or more steps */
                    size_t e = at;
                    while (e < ms) {
                        size_t f = k->fn(text, n, e, &matched);
                        if (matched || f > ms || f <= e)
                            break;
                        e = f;
                    }
                    bad += e != ms;
                    CHECK_MSG(e == ms && !k->total, "%s: gap at %zu of '%.*s': %zu, want %zu",
                              k->name, at, (int)n, text, e, ms);
                }
                if (ms < n) {
                    size_t e = k->fn(text, n, ms, &matched);
                    bad += !matched || e != me;
                    CHECK_MSG(matched && e == me, "%s: at %zu of '%.*s': %zu, want %zu", k->name,
                              ms, (int)n, text, e, me);
                }
                at = me;
            }
        }
        pcre2_code_free(code);
    }
    pcre2_match_data_free(md);
}

static void alphabet(void)
{
    for (int b = 0; b < 256; b++) {
        uint32_t cp = radi_bytechar((uint8_t)b);
        CHECK_MSG(radi_bytechar_inv(cp) == b, "byte %d is %u and back %d", b, cp,
                  radi_bytechar_inv(cp));
    }
    CHECK(radi_bytechar(' ') == 0x120 && radi_bytechar('\n') == 0x10a);
    CHECK(radi_bytechar_inv(0x2581) == -1);
    CHECK(radi_byte_token("<0xAf>", 6) == 0xaf && radi_byte_token("<0xG0>", 6) == -1);
}

static struct rad_tokenizer *from_text(const char *json)
{
    struct rad_tokenizer *t = NULL;
    struct rad_tok_files f = { .size = sizeof f, .tokenizer = json,
                               .tokenizer_len = strlen(json) };
    if (rad_tokenizer_from_json(&f, &t, &err))
        die(json);
    return t;
}

static void encodes(const struct rad_tokenizer *t, const char *text, const char *want)
{
    struct rad_ids ids = { 0 };
    struct radi_str s = { 0 };
    radi_str_adds(&s, "");
    CHECK_MSG(!rad_tokenizer_encode(t, text, strlen(text), RAD_TOK_PARSE_SPECIAL, &ids, &err),
              "%s", err.text);
    for (size_t i = 0; i < ids.n; i++)
        radi_str_addf(&s, "%s%d", i ? " " : "", ids.id[i]);
    CHECK_MSG(!strcmp(s.s, want), "'%s': %s, want %s", text, s.s, want);
    radi_str_release(&s);
    rad_ids_release(&ids);
}

#define WORDS(pre) "{\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"?\",\"vocab\":" \
    "{\"?\":0,\"a\":1,\"b\":2,\" \":3,\"1\":4,\"-\":5,\"a-\":6,\"-a\":7,\"--\":8,\"12\":9," \
    "\"2\":10,\"ab\":11}},\"pre_tokenizer\":" pre "}"
#define SPLIT(behaviour, invert) WORDS("{\"type\":\"Split\",\"pattern\":{\"String\":\"-\"}," \
    "\"behavior\":\"" behaviour "\",\"invert\":" invert "}")

static void pre_tokenisers(void)
{
    static const struct { const char *json, *text, *want; } c[] = {
        { SPLIT("Removed", "false"), "a-a", "1 1" },
        { SPLIT("Isolated", "false"), "a-a", "1 5 1" },
        { SPLIT("MergedWithPrevious", "false"), "a-a", "6 1" },
        { SPLIT("MergedWithNext", "false"), "a-a", "1 7" },
        { SPLIT("Contiguous", "false"), "a--a", "1 8 1" },
        { SPLIT("MergedWithPrevious", "false"), "a--a", "6 5 1" },
        { SPLIT("MergedWithNext", "false"), "a--a", "1 5 7" },
        { SPLIT("Removed", "true"), "a-ab-", "5 5" },
        { WORDS("{\"type\":\"Digits\",\"individual_digits\":true}"), "a12", "1 4 10" },
        { WORDS("{\"type\":\"Digits\",\"individual_digits\":false}"), "a12", "1 9" },
        { WORDS("{\"type\":\"Whitespace\"}"), "a  --b", "1 8 2" },
        { WORDS("{\"type\":\"WhitespaceSplit\"}"), " ab  a- ", "11 6" },
        { WORDS("{\"type\":\"BertPreTokenizer\"}"), "a-- b", "1 5 5 2" },
        { WORDS("{\"type\":\"Punctuation\"}"), "a--b", "1 5 5 2" },
        { WORDS("{\"type\":\"CharDelimiterSplit\",\"delimiter\":\" \"}"), "a ab", "1 11" },
        { WORDS("{\"type\":\"Split\",\"pattern\":{\"Regex\":\"[a-z&&[^b]]\"},"
                "\"behavior\":\"Removed\"}"), "abab", "2 2" },
    };
    for (size_t i = 0; i < RADI_COUNT(c); i++) {
        struct rad_tokenizer *t = from_text(c[i].json);
        encodes(t, c[i].text, c[i].want);
        rad_tokenizer_free(t);
    }
}

static void added(void)
{
    struct rad_tokenizer *t = from_text(
        "{\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"?\",\"vocab\":"
        "{\"?\":0,\"a\":1,\"b\":2}},"
        "\"normalizer\":{\"type\":\"Lowercase\"},\"pre_tokenizer\":{\"type\":\"WhitespaceSplit\"},"
        "\"added_tokens\":["
        "{\"id\":10,\"content\":\"<x>\",\"special\":true,\"normalized\":false},"
        "{\"id\":11,\"content\":\"<x>y\",\"special\":true,\"normalized\":false},"
        "{\"id\":12,\"content\":\"L\",\"lstrip\":true,\"normalized\":false},"
        "{\"id\":13,\"content\":\"R\",\"rstrip\":true,\"normalized\":false},"
        "{\"id\":14,\"content\":\"W\",\"single_word\":true,\"normalized\":false},"
        "{\"id\":15,\"content\":\"Nn\",\"normalized\":true}]}");
    encodes(t, "a<x>b", "1 10 2");
    encodes(t, "a<x>y b", "1 11 2");             /* the longest */
    encodes(t, "a<X>b", "0");
    encodes(t, "a Lb", "1 12 2");
    encodes(t, "a W b", "1 14 2");
    encodes(t, "a Wa b", "1 0 2");
    encodes(t, "a nN b", "1 15 2");              /* matched after lower case */
    encodes(t, "", "");
    rad_tokenizer_free(t);
}

static void repaired(void)
{
    struct radi_str s = { 0 };
    const char *in = "a\xff" "b\xe2\x82" "c\xf0\x9f\x99\x82\xed\xa0\x80\xc0\xaf\xe2\x82";
    radi_utf8_repair(in, strlen(in), &s);
    CHECK(!strcmp(s.s, "a\xef\xbf\xbd" "b\xef\xbf\xbd" "c\xf0\x9f\x99\x82\xef\xbf\xbd\xef\xbf\xbd"
                       "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"));
    radi_str_release(&s);
}

/* Each allocation fails once: load, encode, decode, write. Never a crash or a
 * leak, always a message. */
static void faults(void)
{
    static const char json[] =
        "{\"model\":{\"type\":\"BPE\",\"unk_token\":\"?\",\"byte_fallback\":true,\"vocab\":"
        "{\"?\":0,\"a\":1,\"b\":2,\"ab\":3,\"<0x41>\":4,\"\xe2\x96\x81\":5},\"merges\":[\"a b\"]},"
        "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFD\"},"
        "{\"type\":\"BertNormalizer\"},{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"c+\"},"
        "\"content\":\"b\"}]},\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":["
        "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"[a-z]+(?=b)\"},\"behavior\":\"Isolated\"},"
        "{\"type\":\"Metaspace\"}]},\"decoder\":{\"type\":\"Sequence\",\"decoders\":["
        "{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"}]},\"added_tokens\":[{\"id\":9,"
        "\"content\":\"<x>\",\"special\":true,\"normalized\":true}]}";
    static const char text[] = "ab <x> cab \xc3\xa9 A\xff";
    int ok = 0, round = 0;
    for (uint64_t n = 1; ok < 20 && n < 5000; n++, round++) {
        struct rad_tokenizer *t = NULL;
        struct rad_ids ids = { 0 };
        struct rad_tok_text s = { 0 };
        struct rad_tok_files f = { .size = sizeof f, .tokenizer = json,
                                   .tokenizer_len = sizeof json - 1 };
        struct rad_err e = { 0 };
        radi_alloc_fail_at(n);
        rad_status st = rad_tokenizer_from_json(&f, &t, &e);
        CHECK_MSG(!st == (t != NULL), "allocation %d: status %d", round, st);
        if (!st)
            st = rad_tokenizer_encode(t, text, sizeof text - 1, RAD_TOK_PARSE_SPECIAL, &ids, &e);
        if (!st)
            st = rad_tokenizer_decode(t, ids.id, ids.n, 0, &s, &e);
        CHECK_MSG(!st || (st == RAD_E_NOMEM && e.text[0]), "allocation %d: status %d: %s", round,
                  st, e.text);
        ok = st ? 0 : ok + 1;
        radi_alloc_fail_at(0);
        rad_tok_text_release(&s);
        rad_ids_release(&ids);
        rad_tokenizer_free(t);
    }
    CHECK_MSG(ok >= 20 && round > 60, "%d rounds, %d went through", round, ok);
}

/* One tokenizer, four threads, the same answer; TSan watches the facts that the
 * threads find out and share. */
static const struct rad_tokenizer *shared;
static struct rad_ids got[4];
static void part(void *arg, int i, int parts)
{
    (void)arg;
    (void)parts;
    static const char text[] = "ab b abab ba ab aab 12 ab";
    for (int k = 0; k < 200; k++) {
        got[i].n = 0;
        if (rad_tokenizer_encode(shared, text, sizeof text - 1, 0, &got[i], NULL))
            got[i].n = 0;
    }
}
static void threads(void)
{
    struct rad_tokenizer *t = from_text(
        "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"aab\":3,\"\xc4\xa0\":4,"
        "\"\xc4\xa0" "ab\":5},\"merges\":[\"a b\",\"\xc4\xa0 ab\",\"a ab\"]},"
        "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false},"
        "\"decoder\":{\"type\":\"ByteLevel\"}}");
    struct radi_pool *p;
    shared = t;
    if (radi_pool_new(4, &p, &err))
        die("pool");
    radi_pool_run(p, part, NULL);
    for (int i = 1; i < radi_pool_parts(p); i++)
        CHECK(got[i].n == got[0].n && got[0].n > 5 &&
              !memcmp(got[i].id, got[0].id, got[0].n * sizeof *got[0].id));
    radi_pool_free(p);
    for (int i = 0; i < 4; i++)
        rad_ids_release(&got[i]);
    rad_tokenizer_free(t);
}

/* ---- verbs */
static struct rad_tokenizer *open_tok(const char *path)
{
    struct rad_tokenizer *t;
    if (rad_tokenizer_open(path, &t, &err))
        die(path);
    return t;
}

static int differences;
static void report(const char *what, const char *text)
{
    if (differences++ < 10)
        fprintf(stderr, "%s differs: '%.120s'\n", what, text);
}

static void check_ids(const struct rad_tokenizer *t, const char *s, size_t n, unsigned flags,
                      const cJSON *want)
{
    struct rad_ids ids = { 0 };
    const cJSON *x;
    size_t i = 0;
    if (rad_tokenizer_encode(t, s, n, flags, &ids, &err))
        die(s);
    bool same = cJSON_IsArray(want);
    cJSON_ArrayForEach(x, want) {
        same = same && i < ids.n && ids.id[i] == (int32_t)x->valuedouble;
        i++;
    }
    if (!same || i != ids.n)
        report("encoding", s);
    rad_ids_release(&ids);
}

static void check_text(const struct rad_tokenizer *t, const cJSON *ids, size_t n, unsigned flags,
                       const char *want, size_t len)
{
    int32_t *id = calloc(n + 1, sizeof *id);
    struct rad_tok_text o = { 0 };
    for (size_t i = 0; i < n; i++)
        id[i] = (int32_t)cJSON_GetArrayItem(ids, (int)i)->valuedouble;
    if (rad_tokenizer_decode(t, id, n, flags, &o, &err))
        die("decode");
    if (o.len != len || memcmp(o.s, want, len))
        report("decoding", want);
    rad_tok_text_release(&o);
    free(id);
}

static const cJSON *get(const cJSON *o, const char *k)
{
    return cJSON_GetObjectItemCaseSensitive(o, k);
}

/* cJSON ends strings at NUL: \u0000 goes through U+F8FF. */
static char *text_of(const cJSON *s, size_t *n)
{
    char *p = s->valuestring;
    size_t k = 0;
    for (size_t i = 0; p[i];)
        if (!strncmp(p + i, "\xef\xa3\xbf", 3)) {
            p[k++] = 0;
            i += 3;
        } else
            p[k++] = p[i++];
    *n = k;
    return p;
}

static int golden(const char *dir)
{
    char path[4096], *raw;
    size_t n;
    snprintf(path, sizeof path, "%s/expected.json", dir);
    if (radi_read_text(path, 64 << 20, &raw, &n, &err))
        die(path);
    for (char *p = raw; (p = strstr(p, "\\u0000")) != NULL;)
        memcpy(p, "\\uF8FF", 6);
    cJSON *j = cJSON_Parse(raw);
    struct rad_tokenizer *t = open_tok(dir);
    const cJSON *c, *p = get(j, "prefix_decodes");
    int checked = 0;
    cJSON_ArrayForEach(c, get(j, "cases")) {
        if (!get(c, "text"))
            continue;                    /* a pair of texts */
        char *s = text_of(get(c, "text"), &n);
        const cJSON *ids = get(c, "ids");
        check_ids(t, s, n, RAD_TOK_PARSE_SPECIAL | RAD_TOK_ADD_SPECIAL, ids);
        check_ids(t, s, n, RAD_TOK_PARSE_SPECIAL, get(c, "ids_without_special"));
        s = text_of(get(c, "decoded"), &n);
        check_text(t, ids, (size_t)cJSON_GetArraySize(ids), 0, s, n);
        s = text_of(get(c, "decoded_skip_special"), &n);
        check_text(t, ids, (size_t)cJSON_GetArraySize(ids), RAD_TOK_SKIP_SPECIAL, s, n);
        checked++;
    }
    cJSON_ArrayForEach(c, get(j, "chat")) {
        char *s = text_of(get(c, "text"), &n);
        check_ids(t, s, n, RAD_TOK_PARSE_SPECIAL, get(c, "ids"));
        checked++;
    }
    for (int i = 0; p && i < cJSON_GetArraySize(get(p, "text")); i++) {
        char *s = text_of(cJSON_GetArrayItem(get(p, "text"), i), &n);
        check_text(t, get(p, "ids"), (size_t)i + 1, 0, s, n);
        checked++;
    }
    rad_tokenizer_free(t);
    cJSON_Delete(j);
    free(raw);
    printf("%d cases, %d differences\n", checked, differences);
    return differences || checked < 30;
}

static int llamacpp(const char *tok, const char *in, const char *out)
{
    char *a, *b;
    size_t n, m;
    static const char mark[] = "\n__ggml_vocab_test__\n";
    struct rad_tokenizer *t = open_tok(tok);
    if (radi_read_text(in, 1 << 20, &a, &n, &err) || radi_read_text(out, 1 << 20, &b, &m, &err))
        die(in);
    int checked = 0;
    char *line = b;
    for (char *p = a; p && *line;) {
        char *e = strstr(p, mark), *eol = strchr(line, '\n');
        struct rad_ids ids = { 0 };
        if (!e)
            break;                       /* behind the last mark: nothing */
        if (rad_tokenizer_encode(t, p, (size_t)(e - p), RAD_TOK_PARSE_SPECIAL, &ids, &err))
            die(p);
        size_t i = 0;
        bool same = true;
        for (char *q = line; q < eol;) {
            char *next;
            long v = strtol(q, &next, 10);
            if (next == q || next > eol)
                break;
            same = same && i < ids.n && ids.id[i] == v;
            i++;
            q = next;
        }
        if (!same || i != ids.n)
            report("encoding", p);
        rad_ids_release(&ids);
        checked++;
        p = e + strlen(mark);
        line = eol + 1;
    }
    rad_tokenizer_free(t);
    free(a);
    free(b);
    printf("%d cases, %d differences\n", checked, differences);
    return differences || checked < 40;
}

static void same_vectors(const char *what, const struct rad_tokenizer *a,
                         const struct rad_tokenizer *b)
{
    struct rad_tok_text cert = { 0 };
    size_t n;
    if (rad_tokenizer_certificate_make(a, &cert, &err))
        die("certificate");
    if (rad_tokenizer_certificate_check(b, cert.s, cert.len, &n, &err))
        report(what, err.text);
    else
        printf("%s: %zu vectors\n", what, n);
    rad_tok_text_release(&cert);
}

static int container(const char *tok, const char *file)
{
    struct rad_tokenizer *t = open_tok(tok), *u;
    struct rad_tok_text v[2] = { { 0 }, { 0 } }, cert = { 0 };
    struct rad_model *m;
    for (int i = 0; i < 2; i++) {
        struct rad_model_writer *w;
        if (rad_model_writer_new(&w, &err) ||
            rad_model_writer_header(w, "llama", "t", "", "", "t", &err) ||
            rad_tokenizer_write_vocab(t, rad_model_writer_intern, w, &v[i], &err) ||
            rad_model_writer_vocab(w, v[i].s, v[i].len, &err) ||
            (!cert.len && rad_tokenizer_certificate_make(t, &cert, &err)) ||
            rad_model_writer_certificate(w, cert.s, cert.len, &err) || rad_model_writer_plan(w, &err) ||
            rad_model_writer_open(w, file, &err) || rad_model_writer_finish(w, &err))
            die("write");
        rad_model_writer_free(w);
        if (rad_model_open(file, &m, &err) || rad_tokenizer_from_model(m, &u, &err))
            die("read");
        rad_model_unref(m);
        same_vectors("container", t, u);
        if (rad_tokenizer_count(t) != rad_tokenizer_count(u) ||
            rad_tokenizer_bos(t) != rad_tokenizer_bos(u) ||
            rad_tokenizer_eot(t) != rad_tokenizer_eot(u) ||
            strcmp(rad_tokenizer_chat_template(t) ? rad_tokenizer_chat_template(t) : "",
                   rad_tokenizer_chat_template(u) ? rad_tokenizer_chat_template(u) : ""))
            report("container", "special tokens or template");
        rad_tokenizer_free(t);
        t = u;
    }
    uint32_t steps, own = 0, kind;
    uint64_t at;
    memcpy(&steps, v[0].s + 12, 4);
    memcpy(&at, v[0].s + 48, 8);
    for (uint32_t i = 0; i < steps; i++) {
        memcpy(&kind, v[0].s + at + 32 * (size_t)i, 4);
        own += kind >= 128;
        if (kind >= 128)
            printf("step %u\n", kind);
    }
    printf("own steps: %u\n", own);
    if (v[0].len != v[1].len || memcmp(v[0].s, v[1].s, v[0].len))
        report("container", "the second writing");
    rad_tok_text_release(&v[0]);
    rad_tok_text_release(&v[1]);
    rad_tok_text_release(&cert);
    rad_tokenizer_free(t);
    return differences > 0;
}

/* Loads or is refused with words; what loads encodes without harm. */
static int flip(const char *file)
{
    struct radi_filemap f;
    struct rad_model *m;
    struct rad_tokenizer *t;
    int refused = 0, loaded = 0;
    if (radi_filemap_open(file, 0, &f, &err) || rad_model_open(file, &m, &err))
        die(file);
    size_t from = rad_model_info(m)->vocab.offset, to = from + rad_model_info(m)->vocab.bytes;
    rad_model_unref(m);
    uint8_t *copy = malloc(f.size);
    memcpy(copy, f.data, f.size);
    for (size_t i = from; i < to; i += i < from + 128 ? 1 : 1 + rnd(23)) {
        copy[i] = (uint8_t)(f.data[i] ^ (1u << rnd(8)));
        struct rad_err e = { 0 };
        if (rad_model_open_memory(copy, f.size, &m, &e) == RAD_OK) {
            if (rad_tokenizer_from_model(m, &t, &e) == RAD_OK) {
                struct rad_ids ids = { 0 };
                const char *s = "Hello, world! \xe4\xb8\xad <s> 12";
                if (rad_tokenizer_encode(t, s, strlen(s), RAD_TOK_ADD_SPECIAL, &ids, &e) &&
                    !e.text[0])
                    report("flip", "an encoding without a message");
                rad_ids_release(&ids);
                rad_tokenizer_free(t);
                loaded++;
            }
            rad_model_unref(m);
        }
        refused += e.code != RAD_OK;
        if (e.code && !e.text[0])
            report("flip", "no message");
        copy[i] = f.data[i];
    }
    printf("%d refused, %d loaded\n", refused, loaded);
    free(copy);
    radi_filemap_close(&f);
    return differences || !refused || !loaded;
}

/* ---- a GGUF of metadata only */
static void g_str(struct radi_str *o, const char *s, size_t n)
{
    uint64_t l = n;
    radi_str_add(o, (const char *)&l, 8);
    radi_str_add(o, s, n);
}
static void g_u32(struct radi_str *o, uint32_t v)
{
    radi_str_add(o, (const char *)&v, 4);
}
static void g_key(struct radi_str *o, const char *key, uint32_t type)
{
    g_str(o, key, strlen(key));
    g_u32(o, type);
}
static void g_arr(struct radi_str *o, const char *key, uint32_t type, uint64_t n)
{
    g_key(o, key, 9);
    g_u32(o, type);
    radi_str_add(o, (const char *)&n, 8);
}

static int gguf(const char *tok, const char *pre)
{
    struct rad_tokenizer *t = open_tok(tok), *u;
    const struct radi_tok_spec *s = radi_tok_spec_of(t);
    bool spm = !strcmp(pre, "llama");
    struct radi_str o = { 0 };
    uint64_t zero = 0, one = 1, eight = 8, keys = 7;
    radi_str_adds(&o, "GGUF");
    g_u32(&o, 3);
    radi_str_add(&o, (const char *)&one, 8);
    radi_str_add(&o, (const char *)&keys, 8);
    g_key(&o, "general.architecture", 8);
    g_str(&o, "llama", 5);
    g_key(&o, "tokenizer.ggml.model", 8);
    g_str(&o, spm ? "llama" : "gpt2", spm ? 5 : 4);
    g_key(&o, "tokenizer.ggml.pre", 8);
    g_str(&o, pre, strlen(pre));
    g_arr(&o, "tokenizer.ggml.tokens", 8, s->n_tokens);
    for (size_t i = 0; i < s->n_tokens; i++)
        g_str(&o, s->text[i].s ? s->text[i].s : "", s->text[i].n);
    g_arr(&o, "tokenizer.ggml.token_type", 5, s->n_tokens);
    for (size_t i = 0; i < s->n_tokens; i++)
        g_u32(&o, s->type[i]);
    if (spm) {
        g_arr(&o, "tokenizer.ggml.scores", 6, s->n_tokens);
        /* the merges were made from scores: their order gives them back */
        float *f = calloc(s->n_tokens, sizeof *f);
        for (size_t i = s->n_merges; f && i-- > 0;) {
            struct radi_str cat = { 0 };
            for (int k = 0; k < 2; k++)
                radi_str_add(&cat, s->text[s->merge[i][k]].s, s->text[s->merge[i][k]].n);
            int32_t id = rad_tokenizer_find(t, cat.s, cat.len);
            if (id >= 0)
                f[id] = -(float)i;
            radi_str_release(&cat);
        }
        radi_str_add(&o, (const char *)f, 4 * s->n_tokens);
        free(f);
    } else {
        g_arr(&o, "tokenizer.ggml.merges", 8, s->n_merges);
        for (size_t i = 0; i < s->n_merges; i++) {
            const struct radi_tstr *a = &s->text[s->merge[i][0]], *b = &s->text[s->merge[i][1]];
            uint64_t l = a->n + b->n + 1;
            radi_str_add(&o, (const char *)&l, 8);
            radi_str_add(&o, a->s, a->n);
            radi_str_addc(&o, ' ');
            radi_str_add(&o, b->s, b->n);
        }
    }
    g_key(&o, s->bos >= 0 ? "tokenizer.ggml.bos_token_id" : "tokenizer.ggml.x", 4);
    g_u32(&o, s->bos >= 0 ? (uint32_t)s->bos : 0);
    g_str(&o, "output.weight", 13);      /* one tensor: f32 [8] */
    g_u32(&o, 1);
    radi_str_add(&o, (const char *)&eight, 8);
    g_u32(&o, 0);
    radi_str_add(&o, (const char *)&zero, 8);
    while (o.len % 32)
        radi_str_addc(&o, 0);
    for (int i = 0; i < 32; i++)
        radi_str_addc(&o, 0);
    struct rad_ckpt *ck;
    if (rad_ckpt_open_memory(o.s, o.len, "made.gguf", NULL, &ck, &err) ||
        rad_tokenizer_from_ckpt(ck, &u, &err))
        die("gguf");
    rad_ckpt_close(ck);
    same_vectors("gguf", t, u);
    rad_tokenizer_free(u);
    rad_tokenizer_free(t);
    radi_str_release(&o);
    return differences > 0;
}

static int stream(const char *tok)
{
    struct rad_tokenizer *t = open_tok(tok);
    size_t n = rad_tokenizer_count(t);
    struct rad_detok *d;
    for (int round = 0; round < 3000; round++) {
        struct rad_tok_text whole = { 0 }, parts = { 0 };
        int32_t id[24];
        size_t k = 1 + rnd(24);
        unsigned flags = round % 2 ? RAD_TOK_SKIP_SPECIAL : 0;
        for (size_t i = 0; i < k; i++)       /* the low ids hold the bytes */
            id[i] = (int32_t)(rnd(2) ? rnd((uint32_t)n) : rnd(300));
        if (rad_tokenizer_decode(t, id, k, flags, &whole, &err) ||
            rad_detok_new(t, flags, &d, &err))
            die("decode");
        for (size_t i = 0; i <= k; i++) {
            size_t had = parts.len;
            if (i < k ? rad_detok_push(d, id[i], &parts, &err)
                      : rad_detok_finish(d, &parts, &err))
                die("push");
            if (parts.len > had && !radi_utf8_valid(parts.s + had, parts.len - had))
                report("a part is not UTF-8", parts.s + had);
        }
        if (whole.len != parts.len || (whole.len && memcmp(whole.s, parts.s, whole.len)))
            report("streaming", whole.s);
        rad_detok_free(d);
        rad_tok_text_release(&whole);
        rad_tok_text_release(&parts);
    }
    rad_tokenizer_free(t);
    printf("%d differences\n", differences);
    return differences > 0;
}

/* This thread's own time: what else the machine does is not counted. */
static uint64_t busy_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Seconds an encoding of n letters takes, the best of three. */
static double letters_s(const struct rad_tokenizer *t, const char *s, size_t n)
{
    struct rad_ids ids = { 0 };
    double best = 1e9;
    for (int i = 0; i < 3; i++) {
        uint64_t at = busy_ns();
        ids.n = 0;
        if (rad_tokenizer_encode(t, s, n, 0, &ids, &err))
            die("long");
        double e = (double)(busy_ns() - at) / 1e9;
        best = e < best ? e : best;
    }
    rad_ids_release(&ids);
    return best;
}

static int long_texts(const char *tok)
{
    enum { N = 200000 };
    static const char *const kind[] = { "a", "ab", "letters", "=", "7", "\xe4\xb8\xad", "\n" };
    struct rad_tokenizer *t = open_tok(tok);
    char *s = malloc(N + 8);
    for (size_t k = 0; s && k < RADI_COUNT(kind); k++) {
        size_t l = strlen(kind[k]);
        for (size_t i = 0; i < N; i++)
            s[i] = k == 2 ? (char)('a' + rnd(26)) : kind[k][i % l];
        double part = letters_s(t, s, N / 8), whole = letters_s(t, s, N);
        printf("%-8s %8.4f s, an eighth %8.4f s\n", k == 6 ? "newline" : kind[k], whole, part);
        /* 8 in proportion, 64 when quadratic; small times are noise */
        if (whole > 0.2 && whole > part * 28)
            report("time", kind[k]);
    }
    free(s);
    rad_tokenizer_free(t);
    return differences > 0;
}

static int refused(const char *file)
{
    struct rad_tokenizer *t;
    rad_status st = rad_tokenizer_open(file, &t, &err);
    fprintf(stderr, "%s\n", st ? err.text : "accepted");
    if (!st)
        rad_tokenizer_free(t);
    return !(st == RAD_E_FORMAT || st == RAD_E_UNSUPPORTED);
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "golden"))
        return golden(argv[2]);
    if (argc == 5 && !strcmp(argv[1], "llamacpp"))
        return llamacpp(argv[2], argv[3], argv[4]);
    if (argc == 4 && !strcmp(argv[1], "container"))
        return container(argv[2], argv[3]);
    if (argc == 3 && !strcmp(argv[1], "flip"))
        return flip(argv[2]);
    if (argc == 4 && !strcmp(argv[1], "gguf"))
        return gguf(argv[2], argv[3]);
    if (argc == 3 && !strcmp(argv[1], "stream"))
        return stream(argv[2]);
    if (argc == 3 && !strcmp(argv[1], "long"))
        return long_texts(argv[2]);
    if (argc == 3 && !strcmp(argv[1], "bad"))
        return refused(argv[2]);
    TAP_RUN(splitters);
    TAP_RUN(alphabet);
    TAP_RUN(pre_tokenisers);
    TAP_RUN(added);
    TAP_RUN(repaired);
    TAP_RUN(faults);
    TAP_RUN(threads);
    return tap_done();
}
