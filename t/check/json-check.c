/* SPDX-License-Identifier: Apache-2.0 */
/* Checks librad/base's JSON: what is read, what is refused and where, typed
 * members, and every allocation failing in turn. */
#include "config.h"

#include <cjson/cJSON.h>

#include "base/base.h"
#include "tap.h"

static void json_good(void)
{
    static const char *const good[] = {
        "null", " true\n", "0", "-0", "1e5", "1E+5", "1.5e-300", "1e-999", "\"\"",
        "\"\\ud83d\\ude00 \\u00e9 \xc3\xa9 \\/\"", "[]", "{}", "[ ]", "{ }",
        "[1,2,[3,{\"a\":{}}]]", "{\"a\":1,\"b\":[{\"a\":1},{\"a\":2}]}",
        "\xef\xbb\xbf{}", ("\xef\xbb\xbf" "0"), "123456789012345678901234567890",
        "{\"\":0,\"a\":{\"\":0}}",
    };
    struct rad_err e = { 0 };
    struct cJSON *j;
    for (size_t i = 0; i < RADI_COUNT(good); i++) {
        rad_status st = radi_json_parse(good[i], strlen(good[i]), 0, 0, &j, &e);
        CHECK_MSG(st == RAD_OK && j, "%s: %s", good[i], e.text);
        radi_json_free(j);
    }
    radi_json_free(NULL);
    char deep[256];
    memset(deep, '[', 128);
    memset(deep + 128, ']', 128);
    CHECK(radi_json_parse(deep, 256, 256, 0, &j, &e) == RAD_OK);
    radi_json_free(j);
    CHECK(radi_json_parse(deep, 256, 255, 0, &j, &e) == RAD_E_FORMAT && !j);
}

static void json_bad(void)
{
    static const struct { const char *text, *want; unsigned flags; } bad[] = {
        { "", "1:1: the text ends, want a value", 0 },
        { "  ", "1:3: the text ends", 0 },
        { "{", "1:2: the text ends, want a key", 0 },
        { "[1,\n 2", "2:3: the text ends, want ',' or ']'", 0 },
        { "[1,]", "1:4: found ']', want a value", 0 },
        { "[1 2]", "1:4: found '2', want ',' or ']'", 0 },
        { "{\"a\":1,}", "1:8: found '}', want a key", 0 },
        { "{\"a\" 1}", "1:6: found '1', want ':'", 0 },
        { "{a:1}", "1:2: found 'a', want a key", 0 },
        { "[1}", "1:3: found '}'", 0 },
        { "{} x", "1:4: found 'x', want the end", 0 },
        { "{}\n\n{}", "3:1: found '{', want the end", 0 },
        { "01", "1:1: number with a leading zero", 0 },
        { "-", "1:2: the text ends, want a digit", 0 },
        { "1.", "1:3: the text ends, want a digit behind the point", 0 },
        { "[1.e5]", "1:4: found 'e', want a digit behind", 0 },
        { "1e", "1:3: the text ends, want a digit of the exponent", 0 },
        { "+1", "1:1: found '+', want a value", 0 },
        { ".5", "1:1: found '.'", 0 },
        { "[1e400]", "1:2: number 1e400 is not finite", 0 },
        { "-1e999", "1:1: number -1e999 is not finite", 0 },
        { "0.1234567890123456789012345678901234567890123456789012345678901234",
          "1:1: number of 66 characters", 0 },
        { "[NaN]", "1:2: NaN is not JSON", 0 },
        { "-Infinity", "1:1: -Infinity is not JSON", 0 },
        { "nul", "1:1: found 'n'", 0 },
        { "truex", "1:5: found 'x'", 0 },
        { "\"abc", "1:1: string without an end", 0 },
        { "\"\\x\"", "1:3: found 'x', want an escape", 0 },
        { "\"\\u12g4\"", "1:6: found 'g', want four hex", 0 },
        { "\"\\ud800\"", "1:2: high surrogate \\ud800 without a low", 0 },
        { "\"\\ud800\\u0041\"", "1:2: high surrogate", 0 },
        { "\"\\udc00\"", "1:2: low surrogate", 0 },
        { "\"a\\u0000b\"", "1:3: \\u0000", 0 },
        { "\"a\tb\"", "1:3: control character 0x09", 0 },
        { "\"\xc3\xa9\xff\"", "1:3: byte 0xff is not UTF-8", 0 },
        { "\"\xed\xa0\x80\"", "1:2: byte 0xed is not UTF-8", 0 },
        { "\xff", "1:1: found byte 0xff", 0 },
        { "{\"a\":1,\n\"b\":2, \"a\":3}", "2:8: key 'a' a second time", 0 },
        { "{\"a\":1,\"\\u0061\":3}", "1:8: key 'a' a second time", 0 },
        { "[{\"x\":{\"k\":1,\"k\":2}}]", "1:14: key 'k' a second time", 0 },
        { "{} // c", "1:4: found '/'", 0 },
        { "[1, /* x ]", "1:5: comment without an end", RADI_JSON_COMMENTS },
        { "/*\n*/ [1,,]", "2:7: found ','", RADI_JSON_COMMENTS },
        { "[Nan]", "1:2: found 'N'", RADI_JSON_LENIENT },
    };
    for (size_t i = 0; i < RADI_COUNT(bad); i++) {
        struct rad_err e = { 0 };
        struct cJSON *j = (void *)&e;
        rad_status st = radi_json_parse(bad[i].text, strlen(bad[i].text), 0,
                                        bad[i].flags, &j, &e);
        CHECK_MSG(st == RAD_E_FORMAT && !j &&
                  !strncmp(e.text, bad[i].want, strlen(bad[i].want)),
                  "%s: '%s', want '%s'", bad[i].text, e.text, bad[i].want);
    }
    struct rad_err e = { 0 };
    struct cJSON *j;
    CHECK(radi_json_parse("[1]\0", 4, 0, 0, &j, &e) == RAD_E_FORMAT);
    char *deep = malloc(1000000);
    memset(deep, '[', 1000000);
    CHECK(radi_json_parse(deep, 1000000, 0, 0, &j, &e) == RAD_E_FORMAT);
    CHECK_MSG(!strcmp(e.text, "1:129: nested deeper than 128"), "%s", e.text);
    free(deep);
}

static void json_flags(void)
{
    const char *t = "// head\n{\"a\": NaN, /* b */ \"b\": [-Infinity, \"//x\"],"
                    " \"a\": \"/*\"}";
    struct rad_err e = { 0 };
    struct cJSON *j;
    CHECK(radi_json_parse(t, strlen(t), 0, 7, &j, &e) == RAD_OK);
    CHECK_MSG(j, "%s", e.text);
    const char *s = NULL;
    bool has;
    CHECK(radi_json_str(j, "a", &s, &has, &e) == RAD_OK && !strcmp(s, "NaN"));
    const struct cJSON *b = radi_json_get(j, "b");
    CHECK(cJSON_GetArraySize(b) == 2);
    CHECK(!strcmp(cJSON_GetArrayItem(b, 0)->valuestring, "-Infinity"));
    CHECK(!strcmp(cJSON_GetArrayItem(b, 1)->valuestring, "//x"));
    radi_json_free(j);
}

static void json_members(void)
{
    const char *t = "{\"s\":\"x\",\"i\":-3,\"f\":1.5,\"t\":true,\"n\":null,"
                    "\"big\":9007199254740993,\"A\":1,\"long\":"
                    "\"0123456789012345678901234567890123456789012345\xc3\xa9\"}";
    struct rad_err e = { 0 };
    struct cJSON *j;
    const char *s = "";
    int64_t i = 0;
    double f = 0;
    bool b = false, has = true;
    char buf[64];
    CHECK(radi_json_parse(t, strlen(t), 0, 0, &j, &e) == RAD_OK);
    CHECK(!radi_json_str(j, "s", &s, &has, &e) && has && !strcmp(s, "x"));
    CHECK(!radi_json_i64(j, "i", &i, &has, &e) && has && i == -3);
    CHECK(!radi_json_f64(j, "f", &f, NULL, &e) && f == 1.5);
    CHECK(!radi_json_bool(j, "t", &b, &has, &e) && b);
    CHECK(!radi_json_i64(j, "none", &i, &has, &e) && !has && i == -3);
    CHECK(!radi_json_i64(j, "a", &i, &has, &e) && !has);    /* case counts */
    CHECK(radi_json_i64(j, "n", &i, &has, &e) == RAD_E_FORMAT && has);
    CHECK(!strcmp(e.text, "key 'n': null, want an integer"));
    CHECK(radi_json_i64(j, "f", &i, &has, &e) == RAD_E_FORMAT);
    CHECK(!strcmp(e.text, "key 'f': number 1.5, want an integer"));
    CHECK(radi_json_i64(j, "big", &i, &has, &e) == RAD_E_FORMAT);
    CHECK(radi_json_bool(j, "s", &b, &has, &e) == RAD_E_FORMAT);
    CHECK(!strcmp(e.text, "key 's': string \"x\", want true or false"));
    CHECK(radi_utf8_valid(radi_json_what(radi_json_get(j, "long"), buf), strlen(buf)));
    CHECK(radi_json_get(radi_json_get(j, "s"), "x") == NULL);
    radi_json_free(j);
}

static void json_is_not_quadratic(void)
{
    struct radi_str b = { 0 };
    struct rad_err e = { 0 };
    struct cJSON *j;
    radi_str_addc(&b, '{');
    for (int i = 0; i < 100000; i++)
        radi_str_addf(&b, "\"\\u0061%d\":[],", i);
    radi_str_adds(&b, "\"a5\":0}");
    uint64_t t = radi_now_ns();
    CHECK(radi_json_parse(b.s, b.len, 0, 0, &j, &e) == RAD_E_FORMAT);
    CHECK_MSG(strstr(e.text, "key 'a5' a second time"), "%s", e.text);
    CHECK(radi_now_ns() - t < 5000000000u);
    radi_str_release(&b);
}

static void json_without_memory(void)
{
    const char *t = "/**/{\"a\":[1,NaN,\"x\",{\"\\u0062\":null}],\"c\":{},\"d\":1}";
    for (uint64_t n = 1;; n++) {
        struct rad_err e = { 0 };
        struct cJSON *j;
        radi_alloc_fail_at(n);
        rad_status st = radi_json_parse(t, strlen(t), 0, 3, &j, &e);
        radi_alloc_fail_at(0);
        CHECK(st == RAD_OK || (st == RAD_E_NOMEM && !j && e.text[0]));
        radi_json_free(j);
        if (st == RAD_OK) {
            CHECK(n > 10);
            break;
        }
    }
}

int main(void)
{
    TAP_RUN(json_good);
    TAP_RUN(json_bad);
    TAP_RUN(json_flags);
    TAP_RUN(json_members);
    TAP_RUN(json_is_not_quadratic);
    TAP_RUN(json_without_memory);
    return tap_done();
}
