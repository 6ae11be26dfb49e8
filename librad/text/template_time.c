/* SPDX-License-Identifier: Apache-2.0 */
/* Owns strftime_now: the directives of Python's datetime.strftime in the C
 * locale, computed here so that neither locale nor time zone of the process
 * matters. */
#include "config.h"

#include <stdio.h>
#include <time.h>

#include "text/template.h"

#include "banned.h"

static const char *const days[] = { "Sunday", "Monday", "Tuesday", "Wednesday", "Thursday",
                                    "Friday", "Saturday" };
static const char *const months[] = { "January", "February", "March", "April", "May", "June",
                                      "July", "August", "September", "October", "November",
                                      "December" };

static int leap(int y)
{
    return y % 4 == 0 && (y % 100 != 0 || y % 400 == 0);
}

static int year_day(const struct rad_template_clock *c)     /* from 0 */
{
    static const int before[] = { 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334 };
    return before[c->month - 1] + c->day - 1 + (c->month > 2 && leap(c->year));
}

static int week_day(const struct rad_template_clock *c)     /* 0 is Sunday */
{
    long y = c->year - 1L;
    return (int)((1 + 365 * y + y / 4 - y / 100 + y / 400 + year_day(c)) % 7);
}

/* Year and week of ISO 8601: weeks begin on Monday, the first has a Thursday. */
static void iso_week(const struct rad_template_clock *c, int *year, int *week)
{
    int wd = (week_day(c) + 6) % 7, yd = year_day(c);
    int w = (yd - wd + 10) / 7;
    *year = c->year;
    if (w < 1) {
        struct rad_template_clock last = { .year = c->year - 1, .month = 12, .day = 31 };
        iso_week(&last, year, &w);
    } else if (w == 53 && yd - wd + 3 >= 365 + leap(c->year)) {
        w = 1;
        *year = c->year + 1;
    }
    *week = w;
}

static void put(struct radi_jsb *b, int width, int x)
{
    char text[32];
    snprintf(text, sizeof text, "%0*d", width, x);
    radi_jsb_adds(b, text);
}

static void directive(struct radi_jsb *b, char d, const struct rad_template_clock *c, bool bare);

static void all_of(struct radi_jsb *b, const char *fmt, const struct rad_template_clock *c)
{
    for (; *fmt; fmt++) {
        if (*fmt == '%')
            directive(b, *++fmt, c, false);
        else
            radi_jsb_addc(b, *fmt);
    }
}

static void directive(struct radi_jsb *b, char d, const struct rad_template_clock *c, bool bare)
{
    int wd = week_day(c), yd = year_day(c), h12 = c->hour % 12 ? c->hour % 12 : 12, y, w;
    iso_week(c, &y, &w);
    int num;

    switch (d) {
    case 'a': radi_jsb_add(b, days[wd], 3); return;
    case 'A': radi_jsb_adds(b, days[wd]); return;
    case 'b': case 'h': radi_jsb_add(b, months[c->month - 1], 3); return;
    case 'B': radi_jsb_adds(b, months[c->month - 1]); return;
    case 'c': all_of(b, "%a %b %e %H:%M:%S %Y", c); return;
    case 'D': case 'x': all_of(b, "%m/%d/%y", c); return;
    case 'F': all_of(b, "%Y-%m-%d", c); return;
    case 'R': all_of(b, "%H:%M", c); return;
    case 'r': all_of(b, "%I:%M:%S %p", c); return;
    case 'T': case 'X': all_of(b, "%H:%M:%S", c); return;
    case 'p': radi_jsb_adds(b, c->hour < 12 ? "AM" : "PM"); return;
    case 'P': radi_jsb_adds(b, c->hour < 12 ? "am" : "pm"); return;
    case 'Y': put(b, 1, c->year); return;
    case 'G': put(b, 1, y); return;
    case 'f': put(b, 6, c->microsecond); return;
    case 'j':
        put(b, bare ? 1 : 3, yd + 1);
        return;
    case 'u': put(b, 1, wd ? wd : 7); return;
    case 'w': put(b, 1, wd); return;
    case 'n': radi_jsb_addc(b, '\n'); return;
    case 't': radi_jsb_addc(b, '\t'); return;
    case '%': radi_jsb_addc(b, '%'); return;
    case 'z': case 'Z': return;     /* the time is naive */
    case 'e': case 'k': case 'l':
        num = d == 'e' ? c->day : d == 'k' ? c->hour : h12;
        if (num < 10 && !bare)
            radi_jsb_addc(b, ' ');
        put(b, 1, num);
        return;
    case 'd': num = c->day; break;
    case 'm': num = c->month; break;
    case 'y': num = c->year % 100; break;
    case 'C': num = c->year / 100; break;
    case 'g': num = y % 100; break;
    case 'V': num = w; break;
    case 'U': num = (yd + 7 - wd) / 7; break;
    case 'W': num = (yd + 7 - (wd + 6) % 7) / 7; break;
    case 'H': num = c->hour; break;
    case 'I': num = h12; break;
    case 'M': num = c->minute; break;
    case 'S': num = c->second; break;
    default:
        radi_jsb_addc(b, '%');
        if (d)
            radi_jsb_addc(b, d);
        return;
    }
    put(b, bare ? 1 : 2, num);
}

static struct rad_template_clock now(struct radi_jev *ev)
{
    struct timespec ts;
    struct tm tm;
    if (clock_gettime(CLOCK_REALTIME, &ts) || !localtime_r(&ts.tv_sec, &tm))
        radi_j_fail(ev, RAD_E_IO, "the system has no clock");
    return (struct rad_template_clock){ tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour,
                                        tm.tm_min, tm.tm_sec, (int)(ts.tv_nsec / 1000) };
}

struct radi_jv radi_j_strftime(struct radi_jev *ev, const struct radi_jstr *fmt)
{
    struct rad_template_clock c = ev->clock ? *ev->clock : now(ev);
    struct radi_jsb b = { .ev = ev };

    if (c.year < 1 || c.year > 9999 || c.month < 1 || c.month > 12 || c.day < 1 || c.day > 31 ||
        c.hour < 0 || c.hour > 23)
        radi_j_fail(ev, RAD_E_FORMAT, "the clock shows no date");
    for (size_t i = 0; i < fmt->len; i++) {
        bool bare = false;
        if (fmt->p[i] != '%') {
            radi_jsb_addc(&b, fmt->p[i]);
            continue;
        }
        if (i + 1 < fmt->len && fmt->p[i + 1] == '-') {     /* glibc: no padding */
            bare = true;
            i++;
        }
        i++;
        directive(&b, i < fmt->len ? fmt->p[i] : 0, &c, bare);
    }
    return radi_jsb_done(&b);
}
