/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what cmd.h promises. The state is static: a process is one command.
 * The signal handler touches only what `sig` holds, all of it set before the
 * handler is installed or by single stores. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cmd.h"

enum { MAX_OPTIONS = 128, PROGRESS_NS = 100000000, LINE = 1024 };

static struct {
    const struct cmd *c;
    int argc, verbosity;
    char **argv;
    struct option longs[MAX_OPTIONS + 2];
    char shorts[3 * MAX_OPTIONS + 2];
} me;

static struct {
    char name[64];
    atomic_bool line;           /* a progress line stands on the terminal */
    atomic_bool stdout_counts;
} sig;

/* ---- messages */
static void clear_line(void)
{
    if (atomic_exchange(&sig.line, false))
        fputs("\r\033[K", stderr);
}

RAD_PRINTF(1, 0) static void say(const char *fmt, va_list ap)
{
    char text[LINE];
    vsnprintf(text, sizeof(text), fmt, ap);
    clear_line();
    fprintf(stderr, "%s: %s\n", sig.name, text);
}

#define SAY(fmt) \
    do { va_list ap; va_start(ap, fmt); say(fmt, ap); va_end(ap); } while (0)

void cmd_warn(const char *fmt, ...)
{
    SAY(fmt);
}

static _Noreturn void quit(int code)
{
    rad_cleanup_files();
    exit(code);
}

void cmd_die(const char *fmt, ...)
{
    SAY(fmt);
    quit(CMD_FAIL);
}

void cmd_die_err(const struct rad_err *err)
{
    cmd_die("%s", err->text[0] ? err->text : rad_strstatus(err->code));
}

void cmd_usage(const char *fmt, ...)
{
    SAY(fmt);
    fprintf(stderr, "try '%s --help'\n", sig.name);
    quit(CMD_USAGE);
}

int cmd_finish(int code)
{
    bool lost = ferror(stdout) != 0;
    errno = 0;
    if (fclose(stdout))
        lost = true;
    if (lost) {
        cmd_warn("stdout: %s", errno ? strerror(errno) : "output was lost");
        code = CMD_FAIL;
    }
    rad_cleanup_files();
    return code;
}

static void log_line(void *user, enum rad_log_level level, const char *area,
                     const char *text)
{
    static const char *const tag[] = {
        [RAD_LOG_ERROR] = "error: ", [RAD_LOG_WARN] = "warning: ",
        [RAD_LOG_INFO] = "", [RAD_LOG_DEBUG] = "debug: ",
        [RAD_LOG_TRACE] = "trace: ",
    };
    char line[2 * LINE];

    (void)user;
    int n = snprintf(line, sizeof(line), "%s: %s%s%s%s\n", sig.name, tag[level],
                     area, area[0] ? ": " : "", text);
    if (n < 0)
        return;
    for (char *p = line; *p && p[1]; p++)       /* text may come from a file */
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = '?';
    clear_line();
    fputs(line, stderr);
}

/* ---- signals */
static void put(const char *s)
{
    if (write(STDERR_FILENO, s, strlen(s)) < 0)
        return;
}

static void on_signal(int s)
{
    int saved = errno, files = rad_cleanup_files();

    if (s != SIGPIPE || files || atomic_load(&sig.stdout_counts)) {
        put(atomic_load(&sig.line) ? "\n" : "");
        put(sig.name);
        put(s == SIGPIPE ? ": the reader of stdout went away" :
            s == SIGINT ? ": interrupted" :
            s == SIGHUP ? ": hung up" : ": terminated");
        put(files ? ", partial file removed\n" : "\n");
    }
    errno = saved;
    raise(s);       /* SA_RESETHAND: the default action ends us */
}

static void catch_signals(void)
{
    static const int list[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE };
    struct sigaction sa = { .sa_handler = on_signal }, old;

    sigemptyset(&sa.sa_mask);
    sa.sa_flags = (int)(SA_RESETHAND | SA_NODEFER);
    for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
        if (sigaction(list[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(list[i], &sa, NULL);      /* nohup stays in force */
}

void cmd_product(const char *path)
{
    atomic_store(&sig.stdout_counts, path && !strcmp(path, "-"));
}

/* ---- options */
static bool is_optional(const struct cmd_opt *o)
{
    return o->arg && o->arg[0] == '[';
}

static void make_tables(const struct cmd_opt *opt)
{
    int n = 0;
    char *s = me.shorts;

    *s++ = ':';                 /* tells a missing argument from a bad option */
    for (; opt->letter; opt++) {
        if (n >= MAX_OPTIONS)
            cmd_die("bug: more than %d options", MAX_OPTIONS);
        if (opt->letter < 256) {
            *s++ = (char)opt->letter;
            if (opt->arg)
                *s++ = ':';
            if (is_optional(opt))
                *s++ = ':';
        }
        if (opt->name)
            me.longs[n++] = (struct option){
                opt->name, !opt->arg ? no_argument : is_optional(opt) ?
                optional_argument : required_argument, NULL, opt->letter,
            };
    }
    me.longs[n] = (struct option){ "dump-options", no_argument, NULL,
                                   CMD_LETTER_DUMP };
}

/* A caller may have closed 0, 1 or 2: the next file to be opened would take the
 * place, and be read, or written to. What stands there now fails instead. */
static void keep_standard_fds(void)
{
    static const int mode[] = { O_WRONLY, O_RDONLY, O_RDWR };
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", mode[fd]) != fd)
            _exit(3);
}

void cmd_begin(const struct cmd *c, int argc, char **argv)
{
    struct rad_err err = { 0 };

    keep_standard_fds();
    me.c = c;
    me.argc = argc;
    me.argv = argv;
    snprintf(sig.name, sizeof(sig.name), "%s", c->name);
    make_tables(c->opt);
    catch_signals();
    rad_log_set(log_line, NULL);
    if (rad_log_select(NULL, &err))
        cmd_usage("RAD_LOG: %s", err.text);
    opterr = 0;
}

/* "-p, --plugin=FILE", as help shows it. */
static int spell(const struct cmd_opt *o, char *buf, size_t size)
{
    char arg[64] = "", letter[8] = "    ";

    if (is_optional(o))
        snprintf(arg, sizeof(arg), "[%s%.*s]", o->name ? "=" : "",
                 (int)strcspn(o->arg + 1, "]"), o->arg + 1);
    else if (o->arg)
        snprintf(arg, sizeof(arg), "%s%s", o->name ? "=" : " ", o->arg);
    if (o->letter < 256)
        snprintf(letter, sizeof(letter), "-%c%s", o->letter,
                 o->name ? ", " : "");
    return snprintf(buf, size, "%s%s%s%s", letter, o->name ? "--" : "",
                    o->name ? o->name : "", arg);
}

static void print_help(void)
{
    const char *s = me.c->usage, *lead = "usage:";
    char buf[160];
    int width = 0;

    while (*s) {
        size_t n = strcspn(s, "\n");
        printf("%s %s%s%.*s\n", lead, me.c->name, n ? " " : "", (int)n, s);
        s += n + (s[n] == '\n');
        lead = "      ";
    }
    printf("\n%s\n\n", me.c->about);
    for (const struct cmd_opt *o = me.c->opt; o->letter; o++) {
        int n = spell(o, buf, sizeof(buf));
        if (n > width && n <= 28)
            width = n;
    }
    for (const struct cmd_opt *o = me.c->opt; o->letter; o++) {
        int n = spell(o, buf, sizeof(buf));
        if (n > width)          /* too long to align: text on its own line */
            printf("  %s\n  %*s  %s\n", buf, width, "", o->help);
        else
            printf("  %-*s  %s\n", width, buf, o->help);
    }
}

/* For scripts/mkcomplete and the manual's test: tab-separated, one row an
 * option: letter or '-', name or '-', argument or '-', help. */
static void dump_options(void)
{
    printf("command\t%s\t%s\n", me.c->name, me.c->about);
    for (const char *s = me.c->usage; *s;) {
        size_t n = strcspn(s, "\n");
        printf("usage\t%s\t%.*s\n", me.c->name, (int)n, s);
        s += n + (s[n] == '\n');
    }
    for (const struct cmd_opt *o = me.c->opt; o->letter; o++) {
        char letter[2] = { o->letter < 256 ? (char)o->letter : '-', 0 };
        printf("option\t%s\t%s\t%s\t%s\n", letter, o->name ? o->name : "-",
               o->arg ? o->arg : "-", o->help);
    }
}

/* Names the option that getopt_long refused (`c` is '?' or ':'). */
static _Noreturn void bad_option(int c)
{
    /* optind stands behind a long option, but on a cluster of letters */
    const char *word = optind > 0 && optind <= me.argc ? me.argv[optind - 1] : "";
    bool is_long = !strncmp(word, "--", 2);
    int n = (int)strcspn(word, "=");

    if (optopt == 0)
        cmd_usage("unknown option '%.*s'", n, word);
    if (c == ':' && is_long)
        cmd_usage("option '%.*s' wants an argument", n, word);
    if (c == ':')
        cmd_usage("option '-%c' wants an argument", optopt);
    if (is_long && strchr(word, '='))
        cmd_usage("option '%.*s' takes no argument", n, word);
    cmd_usage("unknown option '-%c'", optopt);
}

static void set_verbosity(int v)
{
    static const char *const level[] = { "error", "warn", "info", "debug", "trace" };
    me.verbosity = v;
    (void)rad_log_select(level[v + 1], NULL);   /* named areas keep theirs */
}

/* What getopt_long means by the last option, for messages. */
static int last_letter;

int cmd_getopt(void)
{
    for (;;) {
        int c = getopt_long(me.argc, me.argv, me.shorts, me.longs, NULL);
        last_letter = c;
        switch (c) {
        case '?':
        case ':':
            bad_option(c);
        case 'h':
            print_help();
            exit(cmd_finish(CMD_OK));
        case 'V':
            printf("%s (%s) %s\n", me.c->name, PACKAGE_NAME, PACKAGE_VERSION);
            exit(cmd_finish(CMD_OK));
        case CMD_LETTER_DUMP:
            dump_options();
            exit(cmd_finish(CMD_OK));
        case 'q':
            set_verbosity(-1);
            break;
        case 'v':
            set_verbosity(me.verbosity < 0 ? 1 :
                          me.verbosity < 3 ? me.verbosity + 1 : 3);
            break;
        default:
            return c;
        }
    }
}

const char *cmd_arg(void)
{
    return optarg;
}

char **cmd_args(int min, int max)
{
    int n = me.argc - optind;

    if (n < min && me.c->usage[0])
        cmd_usage(n == 0 ? "an argument is missing" : "too few arguments");
    if (max >= 0 && n > max)
        cmd_usage("unexpected argument '%s'", me.argv[optind + max]);
    return me.argv + optind;
}

/* "-j" or "--seed" of the option that was read last. */
static const char *last_name(char buf[64])
{
    for (const struct cmd_opt *o = me.c->opt; o->letter; o++)
        if (o->letter == last_letter) {
            if (o->letter < 256)
                snprintf(buf, 64, "-%c", o->letter);
            else
                snprintf(buf, 64, "--%s", o->name);
            return buf;
        }
    return "option";
}

int64_t cmd_arg_i64(int64_t min, int64_t max)
{
    char name[64], *end;

    errno = 0;
    long long v = optarg && *optarg ? strtoll(optarg, &end, 10) : 0;
    if (!optarg || !*optarg || *end || errno || *optarg == ' ' || v < min || v > max)
        cmd_usage("%s '%s': want a whole number from %lld to %lld",
                  last_name(name), optarg ? optarg : "", (long long)min,
                  (long long)max);
    return v;
}

double cmd_arg_f64(double min, double max)
{
    char name[64], *end;

    double v = optarg && *optarg ? strtod(optarg, &end) : 0;
    if (!optarg || !*optarg || *end || *optarg == ' ' || !isfinite(v) ||
        v < min || v > max)
        cmd_usage("%s '%s': want a number from %g to %g", last_name(name),
                  optarg ? optarg : "", min, max);
    return v;
}

bool cmd_quiet(void)
{
    return me.verbosity < 0;
}

int cmd_verbosity(void)
{
    return me.verbosity;
}

/* ---- the clock and files */
uint64_t cmd_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

char *cmd_read_file(const char *path, size_t most, size_t *len)
{
    FILE *f = strcmp(path, "-") ? fopen(path, "rb") : stdin;
    size_t cap = 0, n = 0, k;
    char *s = NULL;

    if (!f)
        cmd_die("'%s': cannot be read: %s", path, strerror(errno));
    do {
        if (n + 65536 >= cap) {
            cap = cap ? 2 * cap : 1 << 18;
            char *p = realloc(s, cap);
            if (!p)
                cmd_die("'%s': out of memory", path);
            s = p;
        }
        k = fread(s + n, 1, 65536, f);
        n += k;
    } while (k == 65536 && n <= most);
    if (ferror(f))
        cmd_die("'%s': cannot be read: %s", path, strerror(errno));
    if (n > most)
        cmd_die("'%s': more than %zu bytes", path, most);
    if (f != stdin)
        fclose(f);
    s[n] = 0;
    if (len)
        *len = n;
    return s;
}

/* ---- progress */
const char *cmd_bytes(uint64_t n, char buf[32])
{
    static const char *const unit[] = { "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
    double v = (double)n;
    size_t u = 0;

    if (n < 1024) {
        snprintf(buf, 32, "%u bytes", (unsigned)n);
        return buf;
    }
    for (v /= 1024; v >= 1023.995 && u + 1 < sizeof(unit) / sizeof(unit[0]); u++)
        v /= 1024;
    snprintf(buf, 32, "%.*f %s", v < 10 ? 2 : v < 100 ? 1 : 0, v, unit[u]);
    return buf;
}

void cmd_progress_begin(struct cmd_progress *p, const char *what, uint64_t total)
{
    *p = (struct cmd_progress){
        .what = what, .total = total, .start_ns = cmd_now_ns(),
        .on = isatty(STDERR_FILENO) && !cmd_quiet(),
    };
}

void cmd_progress_at(struct cmd_progress *p, uint64_t done)
{
    char line[160], a[32], b[32], r[32];
    uint64_t now;

    if (!p->on || (now = cmd_now_ns()) - p->drawn_ns < PROGRESS_NS)
        return;
    p->drawn_ns = now;
    double sec = (double)(now - p->start_ns) / 1e9;
    double rate = sec > 0 ? (double)done / sec : 0;
    int n = snprintf(line, sizeof(line), "%s: %s%s%s, %s/s", p->what,
                     cmd_bytes(done, a), p->total ? " of " : "",
                     p->total ? cmd_bytes(p->total, b) : "",
                     cmd_bytes((uint64_t)rate, r));
    if (n > 0 && n < (int)sizeof(line) && p->total > done && rate > 0 &&
        sec > 0.5) {
        double left = (double)(p->total - done) / rate;
        if (left < 360000)
            snprintf(line + n, sizeof(line) - (size_t)n, ", ETA %d:%02d",
                     (int)left / 60, (int)left % 60);
    }
    fprintf(stderr, "\r%.79s\033[K", line);
    atomic_store(&sig.line, true);
}

void cmd_progress_end(struct cmd_progress *p)
{
    if (p->on)
        clear_line();
    p->on = false;
}
