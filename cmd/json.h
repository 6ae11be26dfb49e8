/* SPDX-License-Identifier: Apache-2.0 */
/* Writes JSON to stdout as it goes; nothing is built up in memory. `key` is
 * NULL inside an array and at the top. Strings from files may hold anything:
 * what is not UTF-8 becomes U+FFFD. The server's events take the strings alone. */
#ifndef CMD_JSON_H
#define CMD_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* n bytes as a JSON string with its quotes, given to put piece by piece. */
typedef void (*cmd_json_put)(void *user, const char *s, size_t n);
void cmd_json_quote(cmd_json_put put, void *user, const char *s, size_t n);

struct cmd_json {
    bool comma;                  /* something stands before the next value */
    int depth;
};

void cmd_json_object(struct cmd_json *j, const char *key);
void cmd_json_array(struct cmd_json *j, const char *key);
void cmd_json_end_object(struct cmd_json *j);     /* the outermost ends the line */
void cmd_json_end_array(struct cmd_json *j);
void cmd_json_str(struct cmd_json *j, const char *key, const char *s);   /* NULL: null */
void cmd_json_int(struct cmd_json *j, const char *key, int64_t v);
void cmd_json_uint(struct cmd_json *j, const char *key, uint64_t v);
/* Infinities and NaN, which JSON has not, become null. */
void cmd_json_f64(struct cmd_json *j, const char *key, double v);
void cmd_json_bool(struct cmd_json *j, const char *key, bool v);

#endif
