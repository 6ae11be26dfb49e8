/* SPDX-License-Identifier: Apache-2.0 */
/* Chat templates against what Python's Jinja renders. Without arguments: the
 * limits and the API. With arguments, files of cases:
 *     template-check vectors  FILES-DIR CONVERSATIONS VECTORS.jsonl
 *     template-check disputed FILES-DIR CONVERSATIONS DISPUTED.jsonl
 *     template-check upstream FILES-DIR UPSTREAM.jsonl
 *     template-check golden   EXPECTED.json
 *     template-check tok      TOKENIZER_CONFIG.json EXPECTED.json
 *     template-check snippets CASES.jsonl
 * Prints each case that differs and a last line "N passed, N failed"; exit 1
 * when one failed. JSON values go to the template as the file spells them. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include <rad/chat.h>

#include "base/base.h"
#include "tap.h"

static int passed, failed;

static const struct rad_template_clock clock_2026 = { 2026, 1, 15, 12, 30, 0, 0 };
static const struct rad_template_clock clock_2025 = { 2025, 7, 10, 12, 0, 0, 0 };

static void die(const char *what, const char *name)
{
    fprintf(stderr, "template-check: %s '%s'\n", what, name);
    exit(3);
}

static char *slurp(const char *path)
{
    struct rad_err err = { 0 };
    char *text;
    size_t n;
    if (radi_read_text(path, 64 << 20, &text, &n, &err))
        die(err.text, path);
    return text;
}

/* ---- the raw text of a member, so that 1 and 1.0 stay apart */
struct raw {
    const char *s;
    size_t n;
};

static const char *skip_value(const char *p)
{
    int depth = 0;
    do {
        if (*p == '"') {
            for (p++; *p != '"'; p++)
                p += *p == '\\';
            p++;
        } else if (*p == '{' || *p == '[') {
            depth++;
            p++;
        } else if (*p == '}' || *p == ']') {
            depth--;
            p++;
        } else if (depth)
            p++;
        else
            while (*p && !strchr(",]} \t\n", *p))
                p++;
    } while (depth);
    return p;
}

static struct raw member(struct raw obj, const char *key)
{
    const char *p = obj.s;
    size_t n = strlen(key);
    while (*p && *p != '{')
        p++;
    for (p++;;) {
        p += strspn(p, " \t\n,");
        if (*p != '"')
            return (struct raw){ NULL, 0 };
        const char *k = p + 1;
        p = skip_value(p);
        size_t len = (size_t)(p - k) - 1;
        p += strspn(p, " \t\n:");
        const char *v = p;
        p = skip_value(p);
        if (len == n && memcmp(k, key, n) == 0)
            return (struct raw){ v, (size_t)(p - v) };
    }
}

/* A string member, decoded; NULL if absent. The caller frees. */
static char *text_of(struct raw obj, const char *key)
{
    struct raw r = member(obj, key);
    if (!r.s || *r.s != '"')
        return NULL;
    cJSON *j = cJSON_ParseWithLength(r.s, r.n);
    char *s = j ? strdup(j->valuestring) : NULL;
    cJSON_Delete(j);
    return s;
}

/* ---- one case */
/* Python's "TypeError: words" against our "line 3: words"; "any" is any. */
static bool same_error(const char *want, const char *got)
{
    const char *w = strstr(want, ": ");
    w = w ? w + 2 : want;
    size_t n = strlen(got), k = strlen(w);
    return strcmp(want, "any") == 0 ||
           (n >= k && strcmp(got + n - k, w) == 0);
}

static void report(const char *name, rad_status st, const struct rad_chat_text *out,
                   const struct rad_err *err, const char *text, const char *error)
{
    bool ok = text ? !st && strcmp(out->s, text) == 0
                   : st && (!error || same_error(error, err->text));
    passed += ok;
    failed += !ok;
    if (!ok)
        printf("FAIL %s\n  want %s: %s\n  got  %s: %s\n", name, text ? "text" : "error",
               text ? text : error ? error : "any", st ? "error" : "text",
               st ? err->text : out->s);
}

static void run(const char *name, const char *tmpl, struct raw vars, const char *text,
                const char *error, const struct rad_template_clock *clock)
{
    struct rad_err err = { 0 };
    struct rad_template *t = NULL;
    struct rad_chat_text out = { 0 };
    rad_status st = rad_template_compile(tmpl, strlen(tmpl), &t, &err);
    if (!st)
        st = rad_template_render(t, vars.s, vars.n, NULL, clock, &out, &err);
    report(name, st, &out, &err, text, error);
    rad_chat_text_release(&out);
    rad_template_free(t);
}

static char *template_file(const char *dir, const char *file)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", dir, file);
    return slurp(path);
}

static void vectors(const char *dir, const char *conversations, const char *file, bool disputed)
{
    char *conv = slurp(conversations), *all = slurp(file), *save = NULL;
    int number = 0;
    for (char *line = strtok_r(all, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        struct raw obj = { line, strlen(line) };
        char *tf = text_of(obj, "template_file"), *cn = text_of(obj, "conversation");
        struct raw want = disputed ? member(obj, "reference") : obj;
        char *text = text_of(want, "rendered"), *error = text_of(want, "error"), name[512];
        char *tmpl = template_file(dir, tf);
        snprintf(name, sizeof name, "%d %s %s", ++number, tf, cn);
        run(name, tmpl, member((struct raw){ conv, strlen(conv) }, cn), text, error, &clock_2026);
        free(tf), free(cn), free(text), free(error), radi_free(tmpl);
    }
    radi_free(conv);
    radi_free(all);
}

static void upstream(const char *dir, const char *file)
{
    char *all = slurp(file), *save = NULL;
    for (char *line = strtok_r(all, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        struct raw obj = { line, strlen(line) }, trusted = member(obj, "trusted");
        char *tf = text_of(obj, "template_file"), *text = text_of(obj, "rendered");
        char *name = text_of(obj, "name"), *tmpl = template_file(dir, tf);
        if (!trusted.s || *trusted.s == 't')
            run(name, tmpl, member(obj, "inputs"), text, NULL, &clock_2025);
        free(tf), free(text), free(name), radi_free(tmpl);
    }
    radi_free(all);
}

static void snippets(const char *file)
{
    char *all = slurp(file), *save = NULL;
    int number = 0;
    for (char *line = strtok_r(all, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        struct raw obj = { line, strlen(line) }, vars = member(obj, "vars");
        char *tmpl = text_of(obj, "template"), name[400];
        char *text = text_of(obj, "rendered"), *error = text_of(obj, "error");
        snprintf(name, sizeof name, "%d %s", ++number, tmpl);
        if (!vars.s)
            vars = (struct raw){ "{}", 2 };
        run(name, tmpl, vars, text, error, &clock_2026);
        free(tmpl), free(text), free(error);
    }
    radi_free(all);
}

/* ---- goldens go through the chat layer */
static char *printed(const cJSON *j)
{
    return j && !cJSON_IsNull(j) ? cJSON_PrintUnformatted(j) : NULL;
}

static const char *token(const cJSON *obj, const char *key)
{
    const cJSON *j = cJSON_GetObjectItemCaseSensitive(obj, key);
    if (cJSON_IsObject(j))
        j = cJSON_GetObjectItemCaseSensitive(j, "content");
    return cJSON_GetStringValue(j);
}

static void chat_case(const char *name, const char *tmpl, const cJSON *tokens,
                      const cJSON *messages, const cJSON *c)
{
    struct rad_err err = { 0 };
    struct rad_template *t = NULL;
    struct rad_chat_text out = { 0 };
    const cJSON *extra = cJSON_GetObjectItemCaseSensitive(c, "extra");
    char *msgs = printed(messages), *kwargs = printed(extra);
    struct rad_chat chat = {
        .size = sizeof chat, .messages = msgs, .kwargs = kwargs, .clock = &clock_2026,
        .add_generation_prompt = cJSON_IsTrue(
            cJSON_GetObjectItemCaseSensitive(c, "add_generation_prompt")),
        .bos_token = token(tokens, "bos_token"), .eos_token = token(tokens, "eos_token"),
        .unk_token = token(tokens, "unk_token"), .pad_token = token(tokens, "pad_token"),
    };
    rad_status st = rad_template_compile(tmpl, strlen(tmpl), &t, &err);
    if (!st)
        st = rad_chat_render(t, &chat, &out, &err);
    report(name, st, &out, &err,
           cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(c, "text")),
           cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(c, "error")));
    rad_chat_text_release(&out);
    rad_template_free(t);
    cJSON_free(msgs);
    cJSON_free(kwargs);
}

static cJSON *parse(const char *path)
{
    char *s = slurp(path);
    cJSON *j = cJSON_Parse(s);
    if (!j)
        die("no JSON in", path);
    radi_free(s);
    return j;
}

static void golden(const char *file)
{
    cJSON *g = parse(file), *c;
    int number = 0;
    cJSON_ArrayForEach(c, cJSON_GetObjectItemCaseSensitive(g, "cases")) {
        const char *tn = token(c, "template"), *cn = token(c, "conversation");
        char name[256];
        snprintf(name, sizeof name, "%d %s %s", ++number, tn, cn);
        chat_case(name, token(cJSON_GetObjectItemCaseSensitive(g, "templates"), tn), g,
                  cJSON_GetObjectItemCaseSensitive(
                      cJSON_GetObjectItemCaseSensitive(g, "conversations"), cn), c);
    }
    cJSON_Delete(g);
}

static void tok(const char *config, const char *file)
{
    cJSON *cfg = parse(config), *g = parse(file), *c;
    int number = 0;
    cJSON_ArrayForEach(c, cJSON_GetObjectItemCaseSensitive(g, "chat")) {
        char name[64];
        snprintf(name, sizeof name, "%d", ++number);
        chat_case(name, token(cfg, "chat_template"), cfg,
                  cJSON_GetObjectItemCaseSensitive(c, "messages"), c);
    }
    cJSON_Delete(cfg);
    cJSON_Delete(g);
}

/* ---- limits and API */
static rad_status try_it(const char *tmpl, const struct rad_template_limits *lim,
                         struct rad_chat_text *out, struct rad_err *err)
{
    struct rad_template *t = NULL;
    *out = (struct rad_chat_text){ 0 };
    rad_status st = rad_template_compile(tmpl, strlen(tmpl), &t, err);
    if (!st)
        st = rad_template_render(t, "{}", 2, lim, &clock_2026, out, err);
    rad_template_free(t);
    return st;
}

static void expect(const char *tmpl, rad_status want, const char *part)
{
    struct rad_err err = { 0 };
    struct rad_chat_text out;
    rad_status st = try_it(tmpl, NULL, &out, &err);
    CHECK_MSG(st == want, "%.60s: status %d, want %d: %s", tmpl, st, want, err.text);
    CHECK_MSG(strstr(err.text, part), "%.60s: '%s', want '%s'", tmpl, err.text, part);
    CHECK(!out.s && !out.len);
    rad_chat_text_release(&out);
}

static char *repeat(const char *s, int n)
{
    struct radi_str b = { 0 };
    while (n--)
        radi_str_adds(&b, s);
    return radi_str_take(&b);
}

static void endless_loops(void)
{
    expect("{% for i in range(10**9) %}{% endfor %}", RAD_E_FULL, "Range too big");
    expect("{% set r = range(99999) %}{% for i in r %}{% for j in r %}{% endfor %}{% endfor %}",
           RAD_E_FULL, "line 1: more than 10000000 steps");
    expect("a\n{% for i in range(99999) %}{{ 'a' * 1000 }}{% endfor %}", RAD_E_FULL,
           "line 2: more than 16777216 bytes of output");
    expect("{% set x = range(9999)|list %}{% for i in x %}{{ x in [x, x] and x == x * 1 }}"
           "{% endfor %}", RAD_E_FULL, "more than");
    expect("{% set x = ('a' * 9999999 + 'b') * 2 %}{% for i in range(99999) %}"
           "{{ 'bb' in x or x.count('ab') or x.rfind('bbb') }}{% endfor %}", RAD_E_FULL, "steps");
}

static void memory_bombs(void)
{
    expect("{{ 'a' * 10**9 }}", RAD_E_FULL, "more than 67108864 bytes of memory");
    expect("{{ 'a' * 10**18 }}", RAD_E_FULL, "bytes of memory");
    expect("{{ [1] * 10**9 }}", RAD_E_FULL, "bytes of memory");
    expect("{{ [1, 2] * 10**18 }}", RAD_E_FULL, "bytes of memory");
    expect("{% set ns = namespace(s='a') %}{% for i in range(99) %}{% set ns.s = ns.s ~ ns.s %}"
           "{% endfor %}", RAD_E_FULL, "bytes of memory");
    expect("{% set ns = namespace(s=[1]) %}{% for i in range(99) %}{% set ns.s = ns.s + ns.s %}"
           "{% endfor %}", RAD_E_FULL, "bytes of memory");
    expect("{{ '%1000000000d' % 1 }}", RAD_E_FULL, "width is larger");
    expect("{{ '{:999999999}'.format(1) }}", RAD_E_FULL, "width is larger");
    expect("{{ 'a'.center(10**12) }}", RAD_E_FULL, "bytes of memory");
    expect("{{ 'a\nb'|indent(10**12) }}", RAD_E_FULL, "bytes of memory");
    expect("{{ [1]|tojson(indent=10**12) }}", RAD_E_FULL, "bytes of memory");
    expect("{{ '\t'.expandtabs(10**12) }}", RAD_E_FULL, "bytes of memory");
    expect("{{ ('a' * 10**7).replace('a', 'b' * 10**7) }}", RAD_E_FULL, "bytes of memory");
}

static void deep_nesting(void)
{
    char *s = repeat("(", 100000);
    struct radi_str b = { 0 };
    radi_str_addf(&b, "{{ %s", s);
    expect(b.s, RAD_E_FORMAT, "too many open brackets");
    radi_str_clear(&b);
    s[150] = 0;
    char *close = repeat(")", 150);
    radi_str_addf(&b, "{{ %s1%s }}", s, close);
    radi_free(close);
    expect(b.s, RAD_E_FULL, "nested deeper than 100 levels");
    radi_free(s);
    static const char *const many[] = { "- ", "not ", "1 if 1 else ", "+ " };
    for (size_t i = 0; i < RADI_COUNT(many); i++) {
        s = repeat(many[i], 100000);
        radi_str_clear(&b);
        radi_str_addf(&b, "{{ %s1 }}", s);
        expect(b.s, RAD_E_FULL, "nested deeper than 100 levels");
        radi_free(s);
    }
    s = repeat("{% if 1 %}", 100000);
    expect(s, RAD_E_FULL, "nested deeper than 100 levels");
    radi_free(s);
    s = repeat("|list", 100000);
    radi_str_clear(&b);
    radi_str_addf(&b, "{{ ''%s }}", s);
    expect(b.s, RAD_E_FULL, "nested deeper than 2000 levels");
    radi_free(s);
    radi_str_release(&b);
    expect("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", RAD_E_FULL,
           "loops and macros nested deeper than 100");
    expect("{% for x in [[1]] recursive %}{{ loop([[1]]) }}{% endfor %}", RAD_E_FULL,
           "nested deeper than 100");
    expect("{% set ns = namespace(s=[]) %}{% for i in range(99999) %}{% set ns.s = [ns.s] %}"
           "{% endfor %}{{ ns.s }}", RAD_E_FULL, "nested deeper than 2000");
    expect("{% set ns = namespace(s=[]) %}{% for i in range(99999) %}{% set ns.s = [ns.s] %}"
           "{% endfor %}{{ ns.s|tojson }}", RAD_E_FULL, "nested deeper than 2000");
    expect("{% set ns = namespace() %}{% set ns.ns = ns %}{{ ns }}", RAD_E_FULL,
           "nested deeper than 2000");
    struct rad_err err = { 0 };
    struct rad_chat_text out;
    s = repeat("+ 1 ", 50000);      /* long is not deep */
    radi_str_addf(&b, "{{ 1 %s }}", s);
    CHECK_MSG(!try_it(b.s, NULL, &out, &err), "%s", err.text);
    CHECK(out.s && strcmp(out.s, "50001") == 0);
    rad_chat_text_release(&out);
    radi_free(s);
    radi_str_release(&b);
}

static void own_limits(void)
{
    struct rad_template_limits lim = RAD_TEMPLATE_LIMITS_INIT;
    struct rad_err err = { 0 };
    struct rad_chat_text out;
    lim.steps = 100;
    CHECK(try_it("{% for i in range(99) %}{{ i }}{% endfor %}", &lim, &out, &err) == RAD_E_FULL);
    lim.steps = 0;
    lim.output_bytes = 10;
    CHECK(try_it("{{ 'a' * 11 }}", &lim, &out, &err) == RAD_E_FULL);
    CHECK(!try_it("{{ 'a' * 10 }}", &lim, &out, &err) && out.len == 10);
    rad_chat_text_release(&out);
    lim.memory_bytes = 100000;
    CHECK(try_it("{% set x = 'a' * 100000 %}", &lim, &out, &err) == RAD_E_FULL);
    lim.depth = 3;
    CHECK(try_it("{% macro m(n) %}{% if n %}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(3) }}",
                 &lim, &out, &err) == RAD_E_FULL);
    lim.memory_bytes = 0;
    CHECK_MSG(!try_it("{% macro m(n) %}{% if n %}{{ m(n - 1) }}{% endif %}{% endmacro %}"
                      "{{ m(2) }}", &lim, &out, &err), "%s", err.text);
    rad_chat_text_release(&out);
}

static void error_texts(void)
{
    expect("{{ raise_exception('Roles must alternate: 100%') }}", RAD_E_ARG,
           "Roles must alternate: 100%");
    expect("a\nb\n{{ x.y }}", RAD_E_FORMAT, "line 3: 'x' is undefined");
    expect("{% if 1 %}\n\n{{ 1 + }}", RAD_E_FORMAT, "line 3: unexpected end of print statement");
    expect("\n{% include 'x' %}", RAD_E_UNSUPPORTED, "line 2: 'include'");
    expect("\xff", RAD_E_FORMAT, "not UTF-8");
    expect("{{ 9223372036854775807 + 1 }}", RAD_E_UNSUPPORTED, "64 bits");
    expect("{{ ''.__class__.__mro__ }}", RAD_E_FORMAT,
           "access to attribute '__class__' of 'str' object is unsafe.");
    expect("{% break %}", RAD_E_FORMAT, "'break' outside of a loop");
}

static void api(void)
{
    struct rad_err err = { 0 };
    struct rad_template *t;
    struct rad_chat_text out;
    const char *s = "{{ messages[0].n }} {{ tools }} {{ x }}{{ bos_token }}"
                    "{% macro m(a) %}{{ enable_thinking }}{% endmacro %}";
    CHECK(!rad_template_compile(s, strlen(s), &t, &err));
    CHECK(rad_template_reads(t, "tools") && rad_template_reads(t, "enable_thinking"));
    CHECK(!rad_template_reads(t, "documents") && !rad_template_reads(t, "a"));
    struct rad_chat c = { .size = sizeof c, .messages = "[{\"n\":18446744073709551615}]",
                          .kwargs = "{\"x\": 1.0}", .bos_token = "<s>" };
    CHECK_MSG(!rad_chat_render(t, &c, &out, &err), "%s", err.text);
    CHECK_MSG(out.s && strcmp(out.s, "18446744073709551615 None 1.0<s>") == 0, "%s", out.s);
    rad_chat_text_release(&out);
    c.kwargs = "[1]";
    CHECK(rad_chat_render(t, &c, &out, &err) == RAD_E_FORMAT);
    CHECK_MSG(strcmp(err.text, "kwargs: found a value of type list, want an object") == 0, "%s",
              err.text);
    c.kwargs = "{\"a\": [1,}";
    CHECK(rad_chat_render(t, &c, &out, &err) == RAD_E_FORMAT && strstr(err.text, "kwargs: 1:10"));
    c.kwargs = NULL;
    c.messages = NULL;
    CHECK(rad_chat_render(t, &c, &out, &err) == RAD_E_ARG);
    rad_template_free(t);
    CHECK(!rad_template_compile("", 0, &t, &err));
    CHECK(!rad_template_render(t, "{}", 2, NULL, NULL, &out, &err) && out.s && !*out.s);
    rad_chat_text_release(&out);
    rad_template_free(t);
}

/* One template, many threads: nothing in it may change. */
static void *render_many(void *arg)
{
    const struct rad_template *t = arg;
    intptr_t bad = 0;
    for (int i = 0; i < 200; i++) {
        struct rad_chat_text out;
        bad += rad_template_render(t, "{}", 2, NULL, &clock_2026, &out, NULL) != RAD_OK ||
               strcmp(out.s, "ab01ab12ab2") != 0;
        rad_chat_text_release(&out);
    }
    return (void *)bad;
}

static void shared_by_threads(void)
{
    const char *s = "{% macro m(x) %}{{ 'a' + 'b' + x|string }}{% endmacro %}{% for i in range(3) %}"
                    "{{ m(i) }}{{ loop.nextitem }}{% endfor %}";
    struct rad_err err = { 0 };
    struct rad_template *t = NULL;
    pthread_t th[4];
    CHECK_MSG(!rad_template_compile(s, strlen(s), &t, &err), "%s", err.text);
    for (size_t i = 0; i < RADI_COUNT(th); i++)
        CHECK(!pthread_create(&th[i], NULL, render_many, t));
    for (size_t i = 0; i < RADI_COUNT(th); i++) {
        void *bad = NULL;
        CHECK(!pthread_join(th[i], &bad) && !bad);
    }
    rad_template_free(t);
}

static void no_memory(void)
{
    static const char s[] = "{% macro m(a) %}{{ a|tojson }}{% endmacro %}{% for i in range(3) %}"
                            "{{ m([i, 'x' * 9000]) }}{% endfor %}";
    bool done = false;
    for (uint64_t n = 1; !done && n < 1000; n++) {
        struct rad_err err = { 0 };
        struct rad_chat_text out;
        radi_alloc_fail_at(n);
        rad_status st = try_it(s, NULL, &out, &err);
        radi_alloc_fail_at(0);
        CHECK_MSG(!st || st == RAD_E_NOMEM, "%d: %s", st, err.text);
        done = !st;
        rad_chat_text_release(&out);
    }
    CHECK(done);
}

int main(int argc, char **argv)
{
    const char *verb = argc > 1 ? argv[1] : "unit";
    if (strcmp(verb, "unit") == 0) {
        TAP_RUN(endless_loops);
        TAP_RUN(memory_bombs);
        TAP_RUN(deep_nesting);
        TAP_RUN(own_limits);
        TAP_RUN(error_texts);
        TAP_RUN(api);
        TAP_RUN(shared_by_threads);
        TAP_RUN(no_memory);
        return tap_done();
    }
    if (strcmp(verb, "vectors") == 0 && argc == 5)
        vectors(argv[2], argv[3], argv[4], false);
    else if (strcmp(verb, "disputed") == 0 && argc == 5)
        vectors(argv[2], argv[3], argv[4], true);
    else if (strcmp(verb, "upstream") == 0 && argc == 4)
        upstream(argv[2], argv[3]);
    else if (strcmp(verb, "golden") == 0 && argc == 3)
        golden(argv[2]);
    else if (strcmp(verb, "tok") == 0 && argc == 4)
        tok(argv[2], argv[3]);
    else if (strcmp(verb, "snippets") == 0 && argc == 3)
        snippets(argv[2]);
    else
        die("unknown verb or wrong arguments", verb);
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
