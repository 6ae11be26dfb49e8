/* SPDX-License-Identifier: Apache-2.0 */
/* A command that does nothing useful: shows how cmd/cmd.h behaves. Verbs:
 *   args...        prints options and arguments
 *   -o FILE hang   opens FILE, writes a little, says "ready" and waits
 *   -o FILE flood  writes FILE until something stops it */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/base.h"
#include "cmd.h"

static const struct cmd_opt opt[] = {
    { 'p', "plugin", "FILE", "list the kernels of a plugin" },
    { 'n', NULL, "N", "a number from 1 to 9" },
    { 256, "rate", "X", "a number from 0 to 1" },
    { 257, "top", "[N]", "the first N" },
    { 258, "mode", "fast|exact", "how: it's [either] way" },
    CMD_OUTPUT,
    CMD_THREADS,
    CMD_JSON,
    CMD_SEED,
    CMD_COMMON,
    { 0 },
};

static const struct cmd cmd = {
    .name = "cmd-probe",
    .about = "show how commands behave",
    .usage = "[-qv] [-p FILE] ARG...\n[-qv] -o FILE hang|flood",
    .opt = opt,
};

int main(int argc, char **argv)
{
    struct radi_outfile f;
    struct rad_err err = { 0 };
    const char *out = "-";
    char block[4096] = "x";
    int c;

    cmd_begin(&cmd, argc, argv);
    while ((c = cmd_getopt()) != -1) {
        if (c == 'n')
            printf("n %" PRId64 "\n", cmd_arg_i64(1, 9));
        else if (c == 256)
            printf("rate %g\n", cmd_arg_f64(0, 1));
        else if (c == 'o')
            out = cmd_arg();
        else
            printf("option %d %s\n", c, cmd_arg() ? cmd_arg() : "-");
    }
    char **arg = cmd_args(1, 3);
    for (char **a = arg; *a; a++)
        if (strcmp(*a, "hang") && strcmp(*a, "flood"))
            printf("arg %s\n", *a);
    rad_log(RAD_LOG_WARN, "probe", "a warning");
    rad_log(RAD_LOG_INFO, "probe", "an info line\x1b[31m");
    rad_log(RAD_LOG_DEBUG, "probe", "a debug line");
    if (strcmp(arg[0], "hang") && strcmp(arg[0], "flood"))
        return cmd_finish(strcmp(arg[0], "no") ? CMD_OK : CMD_NO);

    cmd_product(out);
    struct cmd_progress p;
    cmd_progress_begin(&p, "probe", 1 << 30);
    if (radi_outfile_open(&f, out, &err))
        cmd_die_err(&err);
    do {
        if (radi_outfile_write(&f, block, sizeof(block), &err))
            cmd_die_err(&err);
        cmd_progress_at(&p, f.written);
    } while (!strcmp(arg[0], "flood"));
    puts("ready");
    fflush(stdout);
    for (;;)
        pause();
}
