/* SPDX-License-Identifier: Apache-2.0 */
/* What every command shares: one option table that feeds getopt_long, --help
 * and the shell completions; exit codes; messages; signals; progress.
 *
 *     static const struct cmd_opt opt[] = {
 *         { 'p', "plugin", "FILE", "list the kernels of a plugin" },
 *         CMD_JSON,
 *         CMD_COMMON,
 *         { 0 },
 *     };
 *     static const struct cmd cmd = {
 *         .name = "rad-info", .about = "show what a model file holds",
 *         .usage = "[-qv] [--json] FILE\n[-qv] -p FILE", .opt = opt,
 *     };
 *     int main(int argc, char **argv)
 *     {
 *         int c;
 *         cmd_begin(&cmd, argc, argv);
 *         while ((c = cmd_getopt()) != -1)
 *             if (c == 'p')
 *                 plugin = cmd_arg();
 *         char **file = cmd_args(1, 1);
 *         ...
 *         return cmd_finish(CMD_OK);
 *     }
 *
 * Results go to stdout, everything else to stderr. All state is the process's
 * and belongs to the main thread; the log callback may come from any. */
#ifndef CMD_H
#define CMD_H

#include <stdbool.h>
#include <stdint.h>

#include <rad/log.h>
#include <rad/status.h>

enum {
    CMD_OK = 0,         /* done */
    CMD_NO = 1,         /* the check says no */
    CMD_USAGE = 2,
    CMD_FAIL = 3,       /* could not do it */
};

/* Rows with letter >= 256 have a long name only; commands number theirs from
 * 256, the shared ones stand from 900. An `arg` in brackets is optional; one
 * that holds '|' lists the words it may be. Help starts in lower case. */
struct cmd_opt {
    int letter;
    const char *name, *arg, *help;
};

enum { CMD_LETTER_JSON = 900, CMD_LETTER_SEED, CMD_LETTER_DUMP };

/* Options that are spelled the same wherever they exist. */
#define CMD_OUTPUT  { 'o', "output", "FILE", "write to FILE; '-' is stdout" }
#define CMD_THREADS { 'j', "threads", "THREADS", "use THREADS threads, not one per CPU" }
#define CMD_JSON    { CMD_LETTER_JSON, "json", NULL, "print one JSON object" }
#define CMD_SEED    { CMD_LETTER_SEED, "seed", "N", "seed of the random numbers" }

/* Rows that every command has; cmd_getopt serves them. */
#define CMD_COMMON \
    { 'h', "help", NULL, "show this help" }, \
    { 'V', "version", NULL, "show the version" }, \
    { 'q', "quiet", NULL, "show errors only" }, \
    { 'v', "verbose", NULL, "say more; twice for still more" }

struct cmd {
    const char *name;
    const char *about;              /* one line, lower case, no full stop */
    const char *usage;              /* one line a form, without the name */
    const struct cmd_opt *opt;      /* ends in { 0 } */
};

/* Sets up log, signals and options. SIGINT, SIGTERM, SIGHUP and SIGPIPE unlink
 * partial files, say so and end the process; a server installs its own after. */
void cmd_begin(const struct cmd *c, int argc, char **argv);
/* The next option's letter, or -1. Bad ones end the command with CMD_USAGE. */
int cmd_getopt(void);
const char *cmd_arg(void);          /* of the last option; NULL if it had none */
/* What is left, NULL-terminated; fewer than min or more than max (-1: any
 * number) is a usage error. */
char **cmd_args(int min, int max);
/* The last option's argument as a number inside [min, max], or a usage error. */
int64_t cmd_arg_i64(int64_t min, int64_t max);
double  cmd_arg_f64(double min, double max);

bool cmd_quiet(void);
int  cmd_verbosity(void);           /* -1 quiet, 0, 1 for -v, 2 for -vv, ... */

/* The file a command is there to make, for the message when a signal comes;
 * "-" makes a closed stdout pipe worth a message. NULL: none. Borrowed. */
void cmd_product(const char *path);

/* "NAME: text" on stderr. */
void cmd_warn(const char *fmt, ...) RAD_PRINTF(1, 2);
/* As cmd_warn, then unlinks partial files and exits with CMD_FAIL. */
_Noreturn void cmd_die(const char *fmt, ...) RAD_PRINTF(1, 2);
_Noreturn void cmd_die_err(const struct rad_err *err);
/* As cmd_warn, then "try 'NAME --help'"; exits with CMD_USAGE. */
_Noreturn void cmd_usage(const char *fmt, ...) RAD_PRINTF(1, 2);
/* Closes stdout. Returns the code for main, or CMD_FAIL with a message when
 * output was lost. */
int cmd_finish(int code);

/* A line with bytes, rate and time left, on a terminal only. */
struct cmd_progress {
    const char *what;
    uint64_t total;                 /* bytes; 0: unknown */
    uint64_t start_ns, drawn_ns;
    bool on;
};
void cmd_progress_begin(struct cmd_progress *p, const char *what, uint64_t total);
void cmd_progress_at(struct cmd_progress *p, uint64_t done);
void cmd_progress_end(struct cmd_progress *p);     /* takes the line away */

/* "1.25 GiB". Returns buf. */
const char *cmd_bytes(uint64_t n, char buf[32]);

uint64_t cmd_now_ns(void);          /* of a clock that only goes forward */
/* The whole file ("-": stdin) with a NUL behind it; free() it. Ends the command
 * when it cannot be read or has more than `most` bytes. len may be NULL. */
char *cmd_read_file(const char *path, size_t most, size_t *len);

#endif
