/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON writer of the commands. Lost output shows in cmd_finish. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "json.h"

/* Length of the UTF-8 sequence at s; 0 when there is none (RFC 3629). */
static int sequence(const unsigned char *s)
{
    int n = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3
        : s[0] < 0xf5 ? 4 : 0;

    for (int i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)       /* also at the end: NUL */
            return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f)
        || (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return n;
}

static void put_string(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;

    putchar('"');
    while (*s) {
        int n = sequence(s);

        if (!n) {
            fputs("\\ufffd", stdout);
            n = 1;
        } else if (*s == '"' || *s == '\\') {
            printf("\\%c", *s);
        } else if (*s == '\n') {
            fputs("\\n", stdout);
        } else if (*s < 0x20 || *s == 0x7f) {
            printf("\\u%04x", *s);
        } else {
            fwrite(s, 1, (size_t)n, stdout);
        }
        s += n;
    }
    putchar('"');
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
