/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON writer of the commands. Lost output shows in cmd_finish. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "json.h"

/* Length of the UTF-8 sequence at s; 0 when there is none (RFC 3629). */
static size_t sequence(const unsigned char *s, size_t n)
{
    unsigned c = s[0];
    size_t k = c < 0x80 ? 1 : c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;

    if (!k || k > n)
        return 0;
    for (size_t i = 1; i < k; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    if ((c == 0xe0 && s[1] < 0xa0) || (c == 0xed && s[1] > 0x9f)
        || (c == 0xf0 && s[1] < 0x90) || (c == 0xf4 && s[1] > 0x8f))
        return 0;
    return k;
}

/* The escape of what may not stand as it is; empty for what may. */
static size_t escape(unsigned char c, size_t k, char out[8])
{
    if (!k)
        return (size_t)snprintf(out, 8, "\\ufffd");
    if (c == '"' || c == '\\')
        return (size_t)snprintf(out, 8, "\\%c", c);
    if (c == '\n')
        return (size_t)snprintf(out, 8, "\\n");
    return c < 0x20 || c == 0x7f ? (size_t)snprintf(out, 8, "\\u%04x", c) : 0;
}

void cmd_json_quote(cmd_json_put put, void *user, const char *s, size_t n)
{
    size_t from = 0, i = 0;
    char esc[8];

    put(user, "\"", 1);
    while (i < n) {
        size_t k = sequence((const unsigned char *)s + i, n - i);
        size_t len = escape((unsigned char)s[i], k, esc);

        if (len) {
            put(user, s + from, i - from);
            put(user, esc, len);
            from = i + 1;
        }
        i += k ? k : 1;
    }
    put(user, s + from, i - from);
    put(user, "\"", 1);
}

static void to_stdout(void *user, const char *s, size_t n)
{
    (void)user;
    fwrite(s, 1, n, stdout);
}

static void put_string(const char *s)
{
    cmd_json_quote(to_stdout, NULL, s, strlen(s));
}

static void lead(struct cmd_json *j, const char *key)
{
    if (j->comma)
        putchar(',');
    if (key) {
        put_string(key);
        putchar(':');
    }
    j->comma = true;
}

static void begin(struct cmd_json *j, const char *key, char bracket)
{
    lead(j, key);
    putchar(bracket);
    j->comma = false;
    j->depth++;
}

static void end(struct cmd_json *j, char bracket)
{
    putchar(bracket);
    j->comma = true;
    if (--j->depth == 0)
        putchar('\n');
}

void cmd_json_object(struct cmd_json *j, const char *key)
{
    begin(j, key, '{');
}

void cmd_json_array(struct cmd_json *j, const char *key)
{
    begin(j, key, '[');
}

void cmd_json_end_object(struct cmd_json *j)
{
    end(j, '}');
}

void cmd_json_end_array(struct cmd_json *j)
{
    end(j, ']');
}

void cmd_json_str(struct cmd_json *j, const char *key, const char *s)
{
    lead(j, key);
    if (s)
        put_string(s);
    else
        fputs("null", stdout);
}

void cmd_json_int(struct cmd_json *j, const char *key, int64_t v)
{
    lead(j, key);
    printf("%" PRId64, v);
}

void cmd_json_uint(struct cmd_json *j, const char *key, uint64_t v)
{
    lead(j, key);
    printf("%" PRIu64, v);
}

void cmd_json_f64(struct cmd_json *j, const char *key, double v)
{
    lead(j, key);
    if (isfinite(v))
        printf("%.17g", v);
    else
        fputs("null", stdout);
}

void cmd_json_bool(struct cmd_json *j, const char *key, bool v)
{
    lead(j, key);
    fputs(v ? "true" : "false", stdout);
}
