/* SPDX-License-Identifier: Apache-2.0 */
/* rad-tokcheck: does a tokenizer do what its reference does, and how fast. All
 * the work is librad's; this reads vectors, compares and prints. */
#include "config.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rad/ckpt.h>
#include <rad/model.h>
#include <rad/tokenizer.h>

#include "cmd.h"

enum { O_HF_DIR = 256, O_NO_REF, O_USER, O_TURNS, O_REPEAT, O_CONTEXT, O_CERT, O_VECTORS,
       O_DECODE, O_ALL, O_SPECIAL };

static const struct cmd_opt opt[] = {
    { O_HF_DIR, "hf-dir", "DIR", "compare with DIR/NAME.ids (little-endian int32)" },
    { O_NO_REF, "no-ref", NULL, "do not also compare with the slow, simple encoder" },
    { O_USER, "user", NULL, "encode as user text: special tokens are plain text" },
    { O_SPECIAL, "add-special", NULL, "put the template's tokens around" },
    { O_TURNS, "turns", "N", "turns of the conversation that is timed (40)" },
    { O_REPEAT, "repeat", "N", "take the best of N times (3)" },
    { O_CONTEXT, "context", "N", "tokens shown around a difference (6)" },
    { O_CERT, "certificate", NULL, "check the certificate of a container, or make one anew" },
    { O_VECTORS, "vectors", "FILE", "encode each text of a JSONL file and compare its ids" },
    { O_DECODE, "decode-vectors", "FILE", "decode each ids of a JSONL file and compare" },
    { O_ALL, "all", NULL, "also vectors that are not marked as trusted" },
    CMD_JSON,
    CMD_COMMON,
    { 0 },
};

static const struct cmd cmd = {
    .name = "rad-tokcheck",
    .about = "check a tokenizer against its reference, and time it",
    .usage = "[-qv] [--json] [--hf-dir=DIR] [--no-ref] [--user] [--add-special] [--turns=N] "
             "[--repeat=N] [--context=N] TOKENIZER CORPUS...\n"
             "[-qv] [--json] [--user] [--add-special] TOKENIZER\n"
             "[-qv] [--json] [--all] [--user] [--add-special] [--vectors=FILE] "
             "[--decode-vectors=FILE] TOKENIZER\n"
             "[-qv] [--json] --certificate TOKENIZER",
    .opt = opt,
};

static struct {
    const char *hf_dir, *vectors, *decode;
    bool no_ref, cert, all, json;
    unsigned flags;
    int turns, repeat, context;
    size_t shown;
} o = { .turns = 40, .repeat = 3, .context = 6, .flags = RAD_TOK_PARSE_SPECIAL };

enum { REFERENCE = 1 << 21 };      /* bytes of a corpus that the slow encoder takes */

static double now_ms(void)
{
    return (double)cmd_now_ns() / 1e6;
}

static void encode(const struct rad_tokenizer *t, const char *s, size_t n, unsigned flags,
                   struct rad_ids *ids)
{
    struct rad_err err = { 0 };
    ids->n = 0;
    if (rad_tokenizer_encode(t, s, n, flags, ids, &err))
        cmd_die_err(&err);
}

/* ---- differences */
static void show_ids(const char *who, const int32_t *id, size_t n, size_t at)
{
    size_t c = (size_t)o.context, from = at > c ? at - c : 0;
    fprintf(stderr, "  %s:", who);
    for (size_t i = from; i < n && i < at + c + 1; i++)
        fprintf(stderr, "%s%" PRId32, i == at ? " >" : " ", id[i]);
    fputc('\n', stderr);
}

static bool differ(const char *name, const int32_t *want, size_t nw, const int32_t *got, size_t ng)
{
    size_t i = 0;
    while (i < nw && i < ng && want[i] == got[i])
        i++;
    if (i == nw && i == ng)
        return false;
    if (o.shown++ < 10 && !cmd_quiet()) {
        cmd_warn("'%.60s': token %zu differs (%zu wanted, %zu made)", name, i, nw, ng);
        show_ids("want", want, nw, i);
        show_ids("got ", got, ng, i);
    }
    return true;
}

/* ---- vectors */
struct tally { size_t checked, bad, left; };

static void ids_of(const cJSON *a, struct rad_ids *out, const char *file, size_t line)
{
    const cJSON *x;
    out->n = 0;
    if (!cJSON_IsArray(a))
        cmd_die("'%s' line %zu: no 'ids'", file, line);
    size_t n = (size_t)cJSON_GetArraySize(a);
    if (n > out->cap) {
        int32_t *p = realloc(out->id, n * sizeof *p);
        if (!p)
            cmd_die("out of memory");
        out->id = p;
        out->cap = n;
    }
    cJSON_ArrayForEach(x, a)
        out->id[out->n++] = (int32_t)x->valuedouble;
}

/* cJSON's strings end at a NUL, which vectors may hold: \\u0000 is read as a
 * character of the private area and turned back. */
#define NUL_AS "\xef\xa3\xbf"          /* U+F8FF */
static void hide_nul(char *p, size_t n)
{
    for (size_t i = 0; i + 6 <= n; i++)
        if (p[i] == '\\') {
            if (!memcmp(p + i, "\\u0000", 6))
                memcpy(p + i, "\\uF8FF", 6);
            i++;
        }
}
static size_t show_nul(char *s)
{
    size_t k = 0;
    for (size_t i = 0; s[i]; )
        if (!strncmp(s + i, NUL_AS, 3)) {
            s[k++] = 0;
            i += 3;
        } else
            s[k++] = s[i++];
    return k;
}

static bool text_differs(const char *what, size_t line, const char *want, size_t n,
                         const struct rad_tok_text *got)
{
    if (got->len == n && !memcmp(want, got->s, n))
        return false;
    if (o.shown++ < 10 && !cmd_quiet())
        cmd_warn("%s %zu: want '%.200s', got '%.200s'", what, line, want, got->s ? got->s : "");
    return true;
}

static bool decode_line(const struct rad_tokenizer *t, const struct rad_ids *ids, unsigned flags,
                        const char *want, size_t want_len, size_t line)
{
    struct rad_tok_text whole = { 0 }, parts = { 0 };
    struct rad_detok *d = NULL;
    struct rad_err err = { 0 };
    bool bad;
    if (rad_tokenizer_decode(t, ids->id, ids->n, flags, &whole, &err) ||
        rad_detok_new(t, flags, &d, &err))
        cmd_die_err(&err);
    bad = text_differs("decode", line, want, want_len, &whole);
    for (size_t i = 0; i < ids->n; i++)
        if (rad_detok_push(d, ids->id[i], &parts, &err))
            cmd_die_err(&err);
    if (rad_detok_finish(d, &parts, &err))
        cmd_die_err(&err);
    if (whole.len != parts.len || (whole.len && memcmp(whole.s, parts.s, whole.len)))
        bad = text_differs("stream", line, whole.s, whole.len, &parts) || bad;
    rad_detok_free(d);
    rad_tok_text_release(&whole);
    rad_tok_text_release(&parts);
    return bad;
}

static void vectors(const struct rad_tokenizer *t, const char *file, bool decode,
                    struct tally *sum)
{
    size_t n, line = 0;
    char *text = cmd_read_file(file, SIZE_MAX / 2, &n), *p = text;
    struct rad_ids want = { 0 }, got = { 0 };
    while (p < text + n) {
        char *e = memchr(p, '\n', (size_t)(text + n - p));
        size_t len = e ? (size_t)(e - p) : (size_t)(text + n - p);
        line++;
        hide_nul(p, len);
        cJSON *j = len ? cJSON_ParseWithLength(p, len) : NULL;
        if (len && !j)
            cmd_die("'%s' line %zu: not JSON", file, line);
        p += len + 1;
        if (!j)
            continue;
        const cJSON *s = cJSON_GetObjectItemCaseSensitive(j, "text");
        const cJSON *d = cJSON_GetObjectItemCaseSensitive(j, "decoded");
        bool skip = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(j, "skip_special_tokens"));
        if (!o.all && cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(j, "trusted"))) {
            sum->left++;
            cJSON_Delete(j);
            continue;
        }
        ids_of(cJSON_GetObjectItemCaseSensitive(j, "ids"), &want, file, line);
        bool bad = false;
        sum->checked++;
        if (!decode) {
            if (!cJSON_IsString(s))
                cmd_die("'%s' line %zu: no 'text'", file, line);
            size_t sn = show_nul(s->valuestring);
            encode(t, s->valuestring, sn, o.flags, &got);
            bad = differ(s->valuestring, want.id, want.n, got.id, got.n);
        }
        if (cJSON_IsString(d)) {
            size_t dn = show_nul(d->valuestring);
            bad = decode_line(t, &want, skip ? RAD_TOK_SKIP_SPECIAL : 0, d->valuestring, dn,
                              line) || bad;
        }
        sum->bad += bad;
        cJSON_Delete(j);
    }
    rad_ids_release(&want);
    rad_ids_release(&got);
    free(text);
}

/* ---- corpora */
static size_t against_ids(const char *corpus, const struct rad_ids *got)
{
    const char *base = strrchr(corpus, '/');
    char path[4096];
    size_t n, bad = 0;
    snprintf(path, sizeof path, "%s/%s.ids", o.hf_dir, base ? base + 1 : corpus);
    char *raw = cmd_read_file(path, SIZE_MAX / 2, &n);
    int32_t *want = malloc(n + 4);
    if (!want)
        cmd_die("out of memory");
    for (size_t i = 0; i < n / 4; i++) {
        const unsigned char *b = (const unsigned char *)raw + 4 * i;
        want[i] = (int32_t)((uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 |
                            (uint32_t)b[3] << 24);
    }
    bad = n % 4 || differ(corpus, want, n / 4, got->id, got->n);
    free(want);
    free(raw);
    return bad;
}

/* A conversation grows by a turn at a time and is encoded whole each time, as a
 * server without a memory of earlier turns must. */
static double turns_ms(const struct rad_tokenizer *t, const char *s, size_t n)
{
    struct rad_ids ids = { 0 };
    double at = now_ms();
    for (int i = 1; i <= o.turns; i++)
        encode(t, s, n / (size_t)o.turns * (size_t)i, o.flags, &ids);
    rad_ids_release(&ids);
    return now_ms() - at;
}

static size_t corpus(const struct rad_tokenizer *t, const char *file)
{
    size_t n, bad = 0;
    char *s = cmd_read_file(file, SIZE_MAX / 2, &n);
    struct rad_ids ids = { 0 }, again = { 0 };
    double at = now_ms(), first, best;
    encode(t, s, n, o.flags, &ids);
    best = first = now_ms() - at;
    for (int i = 0; i < o.repeat; i++) {
        at = now_ms();
        encode(t, s, n, o.flags, &again);
        at = now_ms() - at;
        best = at < best ? at : best;
    }
    if (o.hf_dir)
        bad += against_ids(file, &ids);
    if (!o.no_ref) {
        size_t m = n < REFERENCE ? n : REFERENCE;
        while (m && m < n && ((unsigned char)s[m] & 0xc0) == 0x80)
            m--;
        encode(t, s, m, o.flags | RAD_TOK_REFERENCE, &again);
        struct rad_ids fast = { 0 };
        encode(t, s, m, o.flags, &fast);
        bad += differ(file, again.id, again.n, fast.id, fast.n);
        rad_ids_release(&fast);
    }
    double turns = o.turns > 0 ? turns_ms(t, s, n < 1 << 18 ? n : 1 << 18) : 0;
    if (o.json)
        printf("%s{\"bytes\":%zu,\"tokens\":%zu,\"ms\":%.3f,\"mb_per_s\":%.2f,"
               "\"first_ms\":%.3f,\"turns_ms\":%.3f,\"differences\":%zu}", "", n, ids.n, best,
               (double)n / 1e3 / best, first, turns, bad);
    else
        printf("%s: %zu tokens, %.1f ms, %.1f MB/s, first %.1f ms, %d turns %.1f ms, "
               "%zu differences\n", file, ids.n, best, (double)n / 1e3 / best, first, o.turns,
               turns, bad);
    rad_ids_release(&ids);
    rad_ids_release(&again);
    free(s);
    return bad;
}

/* ---- lines on stdin */
static void print_json_text(const char *s)
{
    putchar('"');
    for (; *s; s++)
        if (*s == '"' || *s == '\\')
            printf("\\%c", *s);
        else if ((unsigned char)*s < 32)
            printf("\\u%04x", *s);
        else
            putchar(*s);
    putchar('"');
}

static void lines(const struct rad_tokenizer *t)
{
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    struct rad_ids ids = { 0 };
    struct rad_tok_text text = { 0 };
    struct rad_err err = { 0 };
    while ((n = getline(&line, &cap, stdin)) > 0) {
        if (line[n - 1] == '\n')
            line[--n] = 0;
        encode(t, line, (size_t)n, o.flags, &ids);
        if (o.json)
            printf("{\"ids\":[");
        for (size_t i = 0; i < ids.n; i++)
            printf("%s%" PRId32, i ? o.json ? "," : " " : "", ids.id[i]);
        if (o.json) {
            text.len = 0;
            if (rad_tokenizer_decode(t, ids.id, ids.n, 0, &text, &err))
                cmd_die_err(&err);
            printf("],\"decoded\":");
            print_json_text(text.s);
            putchar('}');
        }
        putchar('\n');
    }
    free(line);
    rad_ids_release(&ids);
    rad_tok_text_release(&text);
}

/* A tokenizer.json or a folder with one, a GGUF file, a container (*m stays open
 * for its certificate). */
static struct rad_tokenizer *open_tokenizer(const char *path, struct rad_model **m)
{
    struct rad_tokenizer *t = NULL;
    struct rad_ckpt *ck = NULL;
    struct rad_err err = { 0 };
    unsigned char head[8] = { 0 };
    rad_status st;
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(head, 1, sizeof head, f) : 0;
    if (f)
        fclose(f);
    *m = NULL;
    if (rad_model_is_container(path, head, n)) {
        st = rad_model_open(path, m, &err);
        if (!st)
            st = rad_tokenizer_from_model(*m, &t, &err);
    } else if (n >= 4 && !memcmp(head, "GGUF", 4)) {
        st = rad_ckpt_open(path, &ck, &err);
        if (!st)
            st = rad_tokenizer_from_ckpt(ck, &t, &err);
        rad_ckpt_close(ck);
    } else
        st = rad_tokenizer_open(path, &t, &err);
    if (st)
        cmd_die_err(&err);
    return t;
}

/* A container's own certificate, or one made here and now: then the check is
 * that encoding is repeatable, and -v tells how large it came out. */
static int certificate(const struct rad_tokenizer *t, const struct rad_model *m)
{
    struct rad_err err = { 0 };
    struct rad_tok_text made = { 0 };
    const void *p = NULL;
    size_t n = 0, vectors = 0;
    if (m)
        rad_model_certificate(m, &p, &n);
    if (m && !p) {
        cmd_warn("the container has no certificate");
        return CMD_NO;
    }
    if (!m) {
        if (rad_tokenizer_certificate_make(t, &made, &err))
            cmd_die_err(&err);
        p = made.s;
        n = made.len;
    }
    rad_status st = rad_tokenizer_certificate_check(t, p, n, &vectors, &err);
    if (st && st != RAD_E_MISMATCH && st != RAD_E_FORMAT)
        cmd_die_err(&err);
    if (st)
        cmd_warn("%s", err.text);
    if (o.json)
        printf("{\"certificate\":%s,\"vectors\":%zu,\"bytes\":%zu,\"made_here\":%s}\n",
               st ? "false" : "true", vectors, n, m ? "false" : "true");
    else
        printf("certificate%s: %zu vectors, %zu bytes, %s\n", m ? "" : " (made here)", vectors, n,
               st ? "differs" : "holds");
    rad_tok_text_release(&made);
    return st ? CMD_NO : CMD_OK;
}

int main(int argc, char **argv)
{
    int c;
    cmd_begin(&cmd, argc, argv);
    while ((c = cmd_getopt()) != -1)
        switch (c) {
        case O_HF_DIR: o.hf_dir = cmd_arg(); break;
        case O_NO_REF: o.no_ref = true; break;
        case O_USER: o.flags &= ~(unsigned)RAD_TOK_PARSE_SPECIAL; break;
        case O_SPECIAL: o.flags |= RAD_TOK_ADD_SPECIAL; break;
        case O_TURNS: o.turns = (int)cmd_arg_i64(0, 100000); break;
        case O_REPEAT: o.repeat = (int)cmd_arg_i64(1, 100000); break;
        case O_CONTEXT: o.context = (int)cmd_arg_i64(0, 1000); break;
        case O_CERT: o.cert = true; break;
        case O_VECTORS: o.vectors = cmd_arg(); break;
        case O_DECODE: o.decode = cmd_arg(); break;
        case O_ALL: o.all = true; break;
        case CMD_LETTER_JSON: o.json = true; break;
        }
    char **arg = cmd_args(1, -1);
    struct rad_model *m;
    struct rad_tokenizer *t = open_tokenizer(arg[0], &m);
    struct tally sum = { 0 };
    if (o.cert) {
        int code = certificate(t, m);
        rad_tokenizer_free(t);
        rad_model_unref(m);
        return cmd_finish(code);
    }
    if (o.vectors)
        vectors(t, o.vectors, false, &sum);
    if (o.decode)
        vectors(t, o.decode, true, &sum);
    if (o.vectors || o.decode) {
        if (o.json)
            printf("{\"checked\":%zu,\"differences\":%zu,\"left_out\":%zu}\n", sum.checked,
                   sum.bad, sum.left);
        else
            printf("%zu checked, %zu differences, %zu left out\n", sum.checked, sum.bad,
                   sum.left);
        rad_tokenizer_free(t);
        rad_model_unref(m);
        return cmd_finish(sum.bad ? CMD_NO : CMD_OK);
    }
    if (!arg[1]) {
        lines(t);
        rad_tokenizer_free(t);
        rad_model_unref(m);
        return cmd_finish(CMD_OK);
    }
    size_t bad = 0, files = 0;
    if (o.json)
        printf("{\"corpora\":[");
    for (char **a = arg + 1; *a; a++) {
        if (o.json && files)
            putchar(',');
        bad += corpus(t, *a);
        files++;
    }
    if (o.json)
        printf("],\"differences\":%zu}\n", bad);
    else
        printf("%zu corpora, %zu differences\n", files, bad);
    rad_tokenizer_free(t);
    rad_model_unref(m);
    return cmd_finish(bad ? CMD_NO : CMD_OK);
}
