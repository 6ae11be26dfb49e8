/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest test harness that speaks TAP: a C check program calls
 * tap_begin/tap_end around each case, CHECK inside, and returns tap_done().
 * A failed CHECK is reported once with its place; the case goes on. */
#ifndef T_TAP_H
#define T_TAP_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Weak: the files of one program share them. */
__attribute__((weak)) int tap_n, tap_failed, tap_bad;
__attribute__((weak)) const char *tap_name;

__attribute__((unused)) static void tap_begin(const char *name)
{
    tap_name = name;
    tap_bad = 0;
}

__attribute__((unused)) static void tap_end(void)
{
    tap_n++;
    tap_failed += tap_bad > 0;
    printf("%s %d - %s\n", tap_bad ? "not ok" : "ok", tap_n, tap_name);
    fflush(stdout);
}

__attribute__((unused)) static void tap_skip(const char *name, const char *why)
{
    printf("ok %d - %s # SKIP %s\n", ++tap_n, name, why);
}

__attribute__((unused, format(printf, 3, 4)))
static void tap_note(const char *file, int line, const char *fmt, ...)
{
    va_list ap;
    if (tap_bad++ >= 10)
        return;
    va_start(ap, fmt);
    printf("# %s:%d: ", file, line);
    vprintf(fmt, ap);
    printf("\n");
    va_end(ap);
}

#define CHECK(cond) \
    ((cond) ? (void)0 : tap_note(__FILE__, __LINE__, "not true: %s", #cond))
#define CHECK_MSG(cond, ...) \
    ((cond) ? (void)0 : tap_note(__FILE__, __LINE__, __VA_ARGS__))

/* Runs a function as one case. */
#define TAP_RUN(fn) (tap_begin(#fn), fn(), tap_end())

/* The plan comes last, so a program that dies half-way has none. Under the
 * TAP driver a failed case is known from its line, and the exit code is left
 * to say that the program itself (or a sanitizer) went wrong. */
__attribute__((unused)) static int tap_done(void)
{
    printf("1..%d\n", tap_n);
    return tap_failed && !getenv("RAD_TAP");
}

#endif
